"""The dtype of a result: pairs of dtypes, Python scalars, zero-dimensional tensors, and what each function makes."""

import itertools

from tests.cases.case import Case, Input, call, integers

CASES: list[Case] = []
DTYPES = ("float32", "float16", "bfloat16", "int64", "int32", "int8", "uint8", "bool")
PAIRS = {
    "add": lambda torch, a, b: a + b,
    "mul": lambda torch, a, b: a * b,
    "div": lambda torch, a, b: a / b,
    "lt": lambda torch, a, b: a < b,
    "maximum": call("maximum"),
    "where": lambda torch, a, b: torch.where(a > 0, a, b),
}
SCALARS = {"True": True, "2": 2, "1.5": 1.5}
SCALAR_OPS = {
    "add": lambda torch, a, s: a + s,
    "rsub": lambda torch, a, s: s - a,
    "mul": lambda torch, a, s: a * s,
    "div": lambda torch, a, s: a / s,
    "floordiv": lambda torch, a, s: a // s,
    "mod": lambda torch, a, s: a % s,
    "pow": lambda torch, a, s: a**s,
}
REDUCTIONS = ("sum", "prod", "mean", "amax", "cumsum", "any", "softmax")


def small(dtype: str, *shape: int) -> Input:
    return integers(*shape, low=1, high=2 if dtype == "bool" else 5, dtype=dtype)


def refused(name: str, dtype: str, scalar: str = "") -> bool:
    """What torch has no rule for; tests/cases/errors.py holds that it raises."""
    if name == "rsub":
        return "bool" in (dtype, scalar.replace("True", "bool"))
    if name in ("floordiv", "mod", "pow") and dtype == "bool":
        return scalar == "True"
    if name in ("mean", "softmax"):
        return not dtype.startswith(("float", "bfloat"))
    return False


for (name, fn), (a, b) in itertools.product(PAIRS.items(), itertools.combinations_with_replacement(DTYPES, 2)):
    CASES.append(Case(f"{name}_{a}_{b}", fn, (small(a, 3), small(b, 3)), grad=False))

for (name, fn), dtype, (text, scalar) in itertools.product(SCALAR_OPS.items(), DTYPES, SCALARS.items()):
    if not refused(name, dtype, text):
        with_scalar = lambda torch, a, fn=fn, scalar=scalar: fn(torch, a, scalar)  # noqa: E731
        CASES.append(Case(f"{name}_{dtype}_{text}", with_scalar, (small(dtype, 4),), grad=False))

for a, b in itertools.product(DTYPES, repeat=2):
    CASES.append(Case(f"add_{a}_zero_dim_{b}", lambda torch, x, y: x + y, (small(a, 3), small(b)), grad=False))

for name, dtype in itertools.product(REDUCTIONS, DTYPES):
    if not refused(name, dtype):
        dim = () if name in ("sum", "prod", "mean", "any") else (-1,)
        CASES.append(Case(f"{name}_of_{dtype}", call(name, *dim), (small(dtype, 2, 3),), grad=False))

for a, b in itertools.product(DTYPES, repeat=2):
    result = lambda torch, a=a, b=b: torch.promote_types(getattr(torch, a), getattr(torch, b))  # noqa: E731
    CASES.append(Case(f"promote_types_{a}_{b}", result))


def add(name: str, fn, *inputs: Input, **options) -> None:
    CASES.append(Case(name, fn, inputs, **options))


add("result_type", lambda torch, a: (torch.result_type(a, 1.5), torch.result_type(a, 1)), small("int32", 2))
add("can_cast", lambda torch: (torch.can_cast(torch.float32, torch.int32), torch.can_cast(torch.int8, torch.float32)))
add("in_place_keeps_dtype", lambda torch, a, b: a.clone().add_(b), small("float16", 3), small("float32", 3), grad=False)
add("in_place_int_by_int", lambda torch, a, b: a.clone().mul_(b), small("int32", 3), small("int64", 3))
add("gradients_keep_dtypes", lambda torch, a, b: a * b, small("float16", 3), small("float32", 3))
add("gradients_of_zero_dim", lambda torch, a, b: a * b, small("float16", 3), small("float32"))
add("gradient_through_cast", lambda torch, a: a.to(torch.float16).float() * 2, small("float32", 3))
add("cat_promotes", lambda torch, a, b: torch.cat([a, b]), small("int64", 3), small("float32", 3))
add("stack_promotes", lambda torch, a, b: torch.stack([a, b]), small("uint8", 3), small("int32", 3))
add("sum_dtype", lambda torch, a: (a.sum(dtype=torch.float32), a.sum(dtype=torch.int32)), small("int64", 5))
add("mean_dtype", lambda torch, a: a.mean(dtype=torch.float32), small("int64", 5))
add("softmax_dtype", lambda torch, a: torch.softmax(a, 0, dtype=torch.float32), small("int64", 5))
add("cumsum_dtype", lambda torch, a: a.cumsum(0, dtype=torch.float32), small("int64", 5))
add("float64_pairs", lambda torch, a, b: (a + b, a * 2, a > b), small("float64", 3), small("float32", 3),
    devices=("cpu",))  # fmt: skip
add("float64_by_int", lambda torch, a, b: a / b, small("float64", 3), small("int64", 3), devices=("cpu",))
add("default_dtype", lambda torch: (torch.get_default_dtype(), torch.ones(2).dtype, torch.tensor([1.5]).dtype))
