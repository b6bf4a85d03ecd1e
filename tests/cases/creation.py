"""Making tensors: constants, ranges, nested lists, likenesses, casts, and what random numbers must obey."""

import itertools
import math

import numpy as np

from tests.cases.case import EDGES, Case, Input, bools, given, integers, randn, script, uniform

CASES: list[Case] = []
DTYPES = ("float32", "float16", "bfloat16", "int64", "int32", "int8", "uint8", "bool")


def case(name: str, fn, *inputs: Input, tolerance: str = "pointwise", **options) -> None:
    CASES.append(Case(name, fn, inputs, tolerance=tolerance, **options))


for name in ("zeros", "ones"):
    for shape in ((), (0,), (3,), (2, 0, 3), (2, 3, 4)):
        suffix = "x".join(map(str, shape)) or "scalar"
        case(f"{name}_{suffix}", lambda torch, n=name, s=shape: getattr(torch, n)(s))
        case(f"{name}_{suffix}_unpacked", lambda torch, n=name, s=shape: getattr(torch, n)(*s or ((),)))
    case(f"{name}_list", lambda torch, n=name: getattr(torch, n)([2, 3]))
    case(f"{name}_size", lambda torch, n=name: getattr(torch, n)(size=(2, 3)))
    case(f"{name}_torch_size", lambda torch, n=name: getattr(torch, n)(torch.ones(2, 3).shape))
    case(f"{name}_requires_grad", lambda torch, n=name: getattr(torch, n)(3, requires_grad=True))
for name, dtype in itertools.product(("zeros", "ones"), DTYPES):
    case(f"{name}_{dtype}", lambda torch, n=name, d=dtype: getattr(torch, n)(2, 3, dtype=getattr(torch, d)))
for dtype in DTYPES:
    value = True if dtype == "bool" else 3
    case(f"full_{dtype}", lambda torch, d=dtype, v=value: torch.full((2, 3), v, dtype=getattr(torch, d)))
    case(f"eye_{dtype}", lambda torch, d=dtype: torch.eye(3, dtype=getattr(torch, d)))
for text, value in {"int": 3, "float": 2.5, "bool": True, "inf": math.inf, "nan": math.nan, "negative": -1}.items():
    case(f"full_infers_{text}", lambda torch, v=value: torch.full((2,), v))
    case(f"full_like_{text}", lambda torch, a, v=value: torch.full_like(a, v), randn(2, 3))
    case(f"tensor_of_{text}", lambda torch, v=value: (torch.tensor(v), torch.tensor([v, v]), torch.as_tensor(v)))
    case(f"scalar_tensor_{text}", lambda torch, v=value: torch.scalar_tensor(v, dtype=torch.float32))
case("full_zero_dim", lambda torch: torch.full((), 2.0))
case("empty_shapes", lambda torch: (torch.empty(2, 3).shape, torch.empty((0,)).shape, torch.empty(2).dtype))
case("empty_like", lambda torch, a: (torch.empty_like(a).shape, torch.empty_like(a).dtype), integers(2, 3))
case("eye_rectangular", lambda torch: (torch.eye(3, 5), torch.eye(4, 2), torch.eye(0)))

ARANGES = {
    "stop": (5,), "start": (2, 7), "step": (0, 10, 3), "negative_step": (5, 0, -2), "empty": (0,), "float_stop": (4.5,),
    "float_step": (0, 1, 0.25), "float_start": (0.5, 3), "float_down": (1.0, -1.0, -0.5), "negative": (-3, 3),
    "thirds": (0, 2, 0.3), "tenths": (0.0, 1.0, 0.1), "large": (1000,), "equal": (3, 3),
}  # fmt: skip
for name, args in ARANGES.items():
    case(f"arange_{name}", lambda torch, a=args: torch.arange(*a))
for dtype in ("float32", "float16", "int32", "int64", "uint8"):
    case(f"arange_{dtype}", lambda torch, d=dtype: torch.arange(0, 7, 2, dtype=getattr(torch, d)))
case("arange_keywords", lambda torch: torch.arange(start=1, end=9, step=2))
LINSPACES = {
    "five": (0, 1, 5),
    "one": (3, 9, 1),
    "none": (0, 1, 0),
    "down": (1, -1, 9),
    "many": (-3, 3, 257),
    "same": (2, 2, 3),
}
for name, args in LINSPACES.items():
    case(f"linspace_{name}", lambda torch, a=args: torch.linspace(*a))
case("linspace_steps", lambda torch: torch.linspace(0, 10, steps=6, dtype=torch.float32))
case("logspace", lambda torch: torch.logspace(-2, 2, 5))

NESTS = {
    "ints": [1, 2, 3], "floats": [1.0, 2.5], "bools": [True, False], "mixed": [1, 2.5], "bool_and_int": [True, 2],
    "nested": [[1, 2], [3, 4]], "deep": [[[1.0], [2.0]], [[3.0], [4.0]]], "empty": [], "empty_rows": [[], []],
    "tuple": (1, 2), "tuples": ((1, 2), (3, 4)), "one": [[7]], "bool_and_float": [True, 0.5],
}  # fmt: skip
for name, nest in NESTS.items():
    case(f"tensor_{name}", lambda torch, n=nest: (torch.tensor(n), torch.as_tensor(n)))
for dtype in DTYPES:
    case(f"tensor_as_{dtype}", lambda torch, d=dtype: torch.tensor([[0, 1], [2, 3]], dtype=getattr(torch, d)))
    case(f"tensor_floats_as_{dtype}", lambda torch, d=dtype: torch.tensor([0.0, 1.5, 2.9], dtype=getattr(torch, d)))
    case(
        f"dtype_facts_{dtype}", lambda torch, d=dtype: (getattr(torch, d).is_floating_point, getattr(torch, d).itemsize)
    )
case("tensor_requires_grad", lambda torch: torch.tensor([1.0, 2.0], requires_grad=True))
case("tensor_from_numpy_float32", lambda torch: torch.tensor(np.arange(6, dtype="float32").reshape(2, 3)))
case("tensor_from_numpy_int32", lambda torch: torch.tensor(np.arange(6, dtype="int32")[::2]))
case("tensor_from_numpy_scalar", lambda torch: torch.tensor(np.float32(1.5)))
case(
    "from_numpy_dtypes",
    lambda torch: [torch.from_numpy(np.ones(3, d)).dtype for d in ("float32", "int64", "bool", "uint8")],
)
case("from_numpy_strided", lambda torch: torch.from_numpy(np.arange(12, dtype="float32").reshape(3, 4).T[1:]))
case("as_tensor_numpy", lambda torch: torch.as_tensor(np.eye(2, dtype="float32")))
for kind in ("uint8", "int16", "int64", "float16", "float32"):
    case(f"tensor_of_numpy_{kind}", lambda torch, kind=kind: [
        torch.tensor([getattr(np, kind)(1), getattr(np, kind)(0)]), torch.tensor([[1, getattr(np, kind)(1)]]),
        torch.tensor([np.ones(2, kind), np.zeros(2, kind)]),
    ])  # fmt: skip
for dtype in ("float32", "float16", "bfloat16", "int32", "bool"):
    case(
        f"tensor_of_float64_as_{dtype}",
        lambda torch, d=dtype: torch.tensor(np.array([[1.5, -2.7, 0.0]]), dtype=getattr(torch, d)),
    )
case("tensor_class_of_numpy", lambda torch: (torch.Tensor(np.ones(3)), torch.FloatTensor(np.ones((2, 2)))))
case("tensor_of_numpy_bool", lambda torch: torch.tensor([[np.True_], [np.False_]]))
case("tensor_of_numpy_float64", lambda torch: [torch.tensor([np.float64(0.5), 1.5]), torch.tensor([1, np.float64(2)])],
     devices=("cpu",))  # fmt: skip
case("tensor_of_zero_dims", lambda torch: torch.tensor([torch.tensor(1.0), torch.tensor(2.0)]))
case("tensor_constructors", lambda torch: (torch.Tensor([1, 2]), torch.FloatTensor([1, 2]), torch.LongTensor([1, 2])))
case("tensor_constructor_sizes", lambda torch: (torch.Tensor(2, 3).shape, torch.Tensor().shape))
case("byte_and_bool_tensors", lambda torch: (torch.ByteTensor([1, 2]), torch.BoolTensor([True, False])))
case("float64", lambda torch: (torch.zeros(2, dtype=torch.float64), torch.tensor([1.0], dtype=torch.double)),
     devices=("cpu",))  # fmt: skip
case("float64_from_numpy", lambda torch: torch.tensor(np.ones(3)), devices=("cpu",))

for name in ("zeros_like", "ones_like"):
    case(name, lambda torch, a, n=name: getattr(torch, n)(a), randn(2, 3))
    case(f"{name}_int64", lambda torch, a, n=name: getattr(torch, n)(a), integers(2, 3))
    case(f"{name}_dtype", lambda torch, a, n=name: getattr(torch, n)(a, dtype=torch.int32), randn(2, 3))
    case(f"{name}_bool", lambda torch, a, n=name: getattr(torch, n)(a), bools(5))
case(
    "new_zeros",
    lambda torch, a: (a.new_zeros(2, 3), a.new_zeros((2, 3)), a.new_zeros(2, dtype=torch.int32)),
    integers(1),
)
case("new_ones", lambda torch, a: (a.new_ones(2), a.new_ones((1, 2))), randn(1, dtype="float16"))
case("new_full", lambda torch, a: a.new_full((2, 3), 4), randn(1))
case("new_tensor", lambda torch, a: (a.new_tensor([1, 2]), a.new_tensor(3.5)), randn(1))
case("new_empty", lambda torch, a: a.new_empty(2, 3).shape, randn(1))

# Casts between all pairs of dtypes.
for source, target in itertools.product(DTYPES, repeat=2):
    values = integers(6, low=0, high=100, dtype=source) if source != "bool" else bools(6)
    case(f"cast_{source}_{target}", lambda torch, a, t=target: a.to(getattr(torch, t)), values, grad=False)
case("tensor_as_uint32", lambda torch: torch.tensor([0, 7, 2**31, 2**32 - 1], dtype=torch.uint32))
for source, numbers in {"float32": [0.0, 2.9, 3e9], "int32": [0, 5, -1], "uint32": [0, 7, 2**31]}.items():
    for target in ("float32", "int32", "uint32") if source == "uint32" else ("uint32",):
        case(f"cast_{source}_{target}_word", lambda torch, a, t=target: a.to(getattr(torch, t)), given(numbers, source),
             grad=False)  # fmt: skip
FRACTIONS = given([0.0, -0.0, 0.3, -0.3, 0.9, 1.5, 2.5, -2.5, 100.7, -100.7])
for target in ("int64", "int32", "int8", "bool", "float16", "bfloat16"):
    case(f"cast_fractions_{target}", lambda torch, a, t=target: a.to(getattr(torch, t)), FRACTIONS, tolerance="exact")
HALF_EDGES = [
    1e-8,
    6e-8,
    6.1e-5,
    65504.0,
    65519.0,
    65520.0,
    1e6,
    1.0009765625,
    1.00048828125,
    1.0014648,
    math.inf,
    math.nan,
]
for target in ("float16", "bfloat16"):
    there_and_back = lambda torch, a, t=target: a.to(getattr(torch, t)).to(torch.float32)  # noqa: E731
    case(f"cast_{target}_rounding", there_and_back, given(HALF_EDGES), grad=False, tolerance="exact")
    case(f"cast_{target}_edges", there_and_back, given(EDGES), grad=False, tolerance="exact")
    case(f"cast_{target}_gradient", there_and_back, uniform(3, 5))
    case(f"cast_{target}_odd_size", there_and_back, integers(7, 9, dtype="float32"))
case("cast_bool_of_edges", lambda torch, a: a.bool(), given(EDGES), grad=False)
SHORT = ("float", "half", "bfloat16", "int", "long", "bool", "char", "short")
for name in SHORT[:-1]:
    case(f"cast_method_{name}", lambda torch, a, n=name: getattr(a, n)(), integers(5, dtype="float32"), grad=False)
case("cast_type", lambda torch, a: (a.type(torch.int32), a.type(torch.float16)), integers(4))
case("cast_type_as", lambda torch, a, b: a.type_as(b), integers(4), randn(1, grad=False))
case("cast_to_other", lambda torch, a, b: a.to(b), integers(4), randn(1, grad=False))
case("cast_to_device", lambda torch, a: (a.to(a.device), a.to("cpu").cpu()), randn(3))
case("cast_to_device_and_dtype", lambda torch, a: a.to(a.device, torch.float16), randn(3))
case("cast_keywords", lambda torch, a: a.to(dtype=torch.float16, device=a.device), randn(3))
case("cast_chain", lambda torch, a: a.half().float().int().float() + a, uniform(9, low=-9, high=9))
case("cast_of_view", lambda torch, a: a.t()[1:].half().t(), randn(4, 5))
case("uint8_to_floats", lambda torch, a: a.float() / 255, integers(3, 7, low=0, high=256, dtype="uint8"))
case("clone_detach", lambda torch, a: (a.clone(), a.detach(), a.data), randn(3))
case("contiguous_of_view", lambda torch, a: a.t().contiguous(), randn(3, 4))


@script(CASES)
def constants(torch):
    info, whole = torch.finfo(torch.float32), torch.iinfo(torch.int32)
    return (
        torch.pi,
        torch.inf,
        torch.e,
        info.eps,
        info.max,
        info.min,
        info.tiny,
        whole.max,
        torch.finfo(torch.float16).max,
    )


@script(CASES)
def predicates(torch):
    a = torch.ones(2)
    return (
        torch.is_tensor(a),
        torch.is_tensor([1]),
        torch.is_floating_point(a),
        torch.numel(a),
        isinstance(a, torch.Tensor),
    )


@script(CASES)
def dtype_aliases(torch):
    return [torch.float, torch.half, torch.int, torch.long], torch.float is torch.float32, torch.long == torch.int64


@script(CASES)
def random_ranges(torch):
    torch.manual_seed(0)
    a, b, c = torch.rand(1000), torch.randint(3, 9, (1000,)), torch.randint(5, (10, 10))
    return (bool((a >= 0).all()), bool((a < 1).all()), bool((b >= 3).all()), bool((b < 9).all()), b.dtype, c.shape,
            bool((c >= 0).all() & (c < 5).all()), b.unique(), abs(a.mean().item() - 0.5) < 0.05)  # fmt: skip


@script(CASES)
def random_normal(torch):
    torch.manual_seed(1)
    a = torch.randn(50, 200)
    b = torch.empty(10000).normal_(3.0, 2.0)
    c = torch.normal(torch.zeros(3), torch.ones(3))
    return (a.shape, abs(a.mean().item()) < 0.05, abs(a.std().item() - 1) < 0.05, abs(b.mean().item() - 3) < 0.1,
            abs(b.std().item() - 2) < 0.1, c.shape, torch.randn_like(a).shape,
            bool(torch.isfinite(a).all()))  # fmt: skip


@script(CASES)
def random_seeds(torch):
    torch.manual_seed(7)
    a, b = torch.rand(9), torch.rand(9)
    torch.manual_seed(7)
    c, d = torch.rand(9), torch.rand(9)
    return torch.equal(a, c), torch.equal(b, d), torch.equal(a, b)


@script(CASES)
def random_generator(torch):
    first = torch.randn(5, generator=torch.Generator().manual_seed(3))
    again = torch.randn(5, generator=torch.Generator().manual_seed(3))
    other = torch.randn(5, generator=torch.Generator().manual_seed(4))
    return torch.equal(first, again), torch.equal(first, other)


@script(CASES)
def random_permutation(torch):
    a = torch.randperm(65)
    return a.sort().values, a.dtype, torch.equal(a, torch.arange(65))


@script(CASES)
def random_draws(torch):
    torch.manual_seed(0)
    weights = torch.tensor([0.0, 1.0, 3.0])
    a = torch.multinomial(weights, 4000, replacement=True)
    b = torch.multinomial(torch.ones(2, 5), 5)
    share = (a == 2).float().mean().item()
    return (
        a.dtype,
        bool((a > 0).all()),
        abs(share - 0.75) < 0.05,
        b.sort(-1).values,
        torch.multinomial(weights, 1).shape,
    )


@script(CASES)
def random_in_place(torch):
    torch.manual_seed(0)
    a = torch.empty(1000).uniform_(-2, 3)
    b = torch.bernoulli(torch.full((2000,), 0.25))
    c = torch.empty(2000).bernoulli_(0.5)
    return (bool((a >= -2).all() & (a < 3).all()), b.unique(), abs(b.mean().item() - 0.25) < 0.06, c.unique(),
            torch.rand_like(a).shape, torch.randint_like(a, 3).dtype)  # fmt: skip


@script(CASES)
def random_dtypes(torch):
    return (
        torch.rand(3, dtype=torch.float16).dtype,
        torch.randn(0, 2).shape,
        torch.randint(0, 2, (3,), dtype=torch.int32).dtype,
    )
