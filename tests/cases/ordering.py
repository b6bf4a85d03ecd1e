"""Order, search, counting, and reductions into places, over dtypes and edges: what tests/cases/indexing.py starts."""

import numpy as np

from tests.cases.case import Case, Input, distinct, given, integers, randn, script

CASES: list[Case] = []
SMALL = ("float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")
HOST = ("cpu",)
SPECIAL = [3.0, -0.0, 0.0, np.nan, 1.0, -np.inf, np.inf, 0.0, -1.0, np.nan, 1.0, -0.0]


def case(name: str, fn, *inputs: Input, grad: bool = False, **options) -> None:
    CASES.append(Case(name, fn, inputs, grad=grad, **options))


def whole(*shape: int, dtype: str) -> Input:
    """A few different values, so that many are equal."""
    return integers(*shape, low=0 if dtype in ("uint8", "bool") else -2, high=3, dtype=dtype)


def of_sort(torch, x, **options):
    return tuple(torch.sort(x, stable=True, **options))


# Order, with many equal elements.
for dtype in (*SMALL, "float64"):
    on = {"devices": HOST} if dtype == "float64" else {}
    x = whole(4, 9, dtype=dtype)
    for descending in (False, True):
        for dim in (0, 1):
            case(f"sort_{dtype}_{descending}_{dim}",
                 lambda torch, x, d=descending, a=dim: of_sort(torch, x, dim=a, descending=d), x, **on)  # fmt: skip
    case(f"argsort_{dtype}", lambda torch, x: torch.argsort(x, dim=1, stable=True), x, **on)
    case(f"mode_{dtype}", lambda torch, x: tuple(torch.mode(x, 1)), x, **on)
    case(f"unique_{dtype}", lambda torch, x: torch.unique(x, return_inverse=True, return_counts=True), x, **on)
    case(f"unique_rows_{dtype}",
         lambda torch, x: torch.unique(x[:, :2], dim=0, return_inverse=True, return_counts=True), x, **on)  # fmt: skip
    case(f"unique_columns_{dtype}", lambda torch, x: torch.unique(x[:2], dim=1, return_counts=True), x, **on)
    case(f"unique_consecutive_{dtype}",
         lambda torch, x: torch.unique_consecutive(x, return_inverse=True, return_counts=True), x, **on)  # fmt: skip
    case(f"nonzero_{dtype}", lambda torch, x: torch.nonzero(x), x, **on)
    case(f"triangles_{dtype}", lambda torch, x: (x.tril(1), x.triu(-1), x.tril(-3), x.triu(4)), x, **on)
    if dtype != "bool":
        case(f"topk_{dtype}", lambda torch, x: (x.topk(3).values, x.topk(3, 0, largest=False).values), x, **on)
        case(f"median_{dtype}", lambda torch, x: (x.median(), x.median(1).values, x.kthvalue(4, 1).values), x, **on)
        case(f"isin_{dtype}", lambda torch, x: (torch.isin(x, x[0, :2]), torch.isin(x, x[0, :2], invert=True)), x, **on)
for descending in (False, True):
    for dtype in ("float32", "float16", "bfloat16"):
        case(f"sort_special_{dtype}_{descending}", lambda torch, x, d=descending: of_sort(torch, x, descending=d),
             given(SPECIAL, dtype))  # fmt: skip
    case(f"topk_special_{descending}", lambda torch, x, d=descending: x.topk(5, largest=d).values, given(SPECIAL))
case("sort_int64_beyond_32_bits", of_sort, given([2**40, -(2**40), 5, 2**40 + 1, -(2**62)], "int64"), devices=HOST)
case("sort_int32_ends", of_sort, given([2**31 - 1, -(2**31), 0, -1, 1], "int32"))
case("sort_long_ties", of_sort, integers(3, 700, low=0, high=4, dtype="float32"))
case("sort_zero_dim", lambda torch, x: (of_sort(torch, x), x.argsort(), tuple(x.topk(1)), tuple(x.kthvalue(1)),
     tuple(x.mode()), tuple(x.median(0))), randn())  # fmt: skip
case(
    "sort_of_nothing",
    lambda torch: (of_sort(torch, torch.zeros(2, 0)), torch.zeros(0, 3).argsort(1), torch.zeros(0).median()),
)
for name in ("median", "nanmedian"):
    case(f"{name}_special", lambda torch, x, n=name: getattr(torch, n)(x), given(SPECIAL))
    case(
        f"{name}_special_rows",
        lambda torch, x, n=name: getattr(torch, n)(x, 1, keepdim=True).values,
        given([SPECIAL[:6], SPECIAL[6:]]),
    )
    case(f"{name}_of_nan", lambda torch, x, n=name: getattr(torch, n)(x, 1).values, given([[np.nan] * 3] * 2))
case("median_gradient", lambda torch, x: (x.median(), x.median(0).values), distinct(5, 7), grad=True)
case("median_indices", lambda torch, x: tuple(x.median(1)), distinct(4, 6), grad=True)
case("kthvalue_gradient", lambda torch, x: tuple(x.kthvalue(2, 0, keepdim=True)), distinct(4, 6), grad=True)
case("mode_gradient", lambda torch, x: tuple(x.mode(0)), integers(9, 3, low=0, high=3, dtype="float32"), grad=True)

# Search.
for n in (1, 5, 128, 129, 600):
    for dtype in ("float32", "int64"):
        both = integers(n + 40, low=-300, high=300, dtype=dtype)
        for right in (False, True):
            case(f"searchsorted_{n}_{dtype}_{right}",
                 lambda torch, x, n=n, r=right: torch.searchsorted(x[:n].sort().values, x, right=r), both)  # fmt: skip
    case(f"searchsorted_rows_{n}", lambda torch, e, x: torch.searchsorted(e.sort().values, x), randn(3, n), randn(3, 7))
    case(f"isin_{n}", lambda torch, x, n=n: torch.isin(x, x[:n]), integers(n + 40, low=-300, high=300))
case("searchsorted_edges", lambda torch, e, x: (torch.searchsorted(e, x), torch.searchsorted(e, x, side="right"),
     torch.searchsorted(e, x, out_int32=True)), given([0.0, 1, 1, 2]), given(SPECIAL))  # fmt: skip
case(
    "searchsorted_of_number", lambda torch, e: (torch.searchsorted(e, 1.5), torch.bucketize(1.5, e)), given([0.0, 1, 2])
)
case("searchsorted_in_nothing", lambda torch, x: torch.searchsorted(torch.zeros(0), x), randn(3))

# Into places.


def puts(torch, x, v):
    once = x.put(torch.tensor([1, -3]), v[0, :2])
    return once, x.clone().put_(torch.tensor([[1, 1]]), v[:1, :2], accumulate=True)


def diagonals(torch, x):
    taken = x.diag(), x.diag(1), x.diag(-2), x.trace()
    made = x[0].diag(2), x[0].diag(-1), torch.diagflat(x, 1), torch.diag_embed(x, 1), torch.diag_embed(x, -2, 0, 2)
    filled = x.clone().fill_diagonal_(7), torch.cat([x, x]).fill_diagonal_(7, wrap=True)
    return taken, made, filled


def repeated(torch, x):
    each, one = torch.tensor([1, 0, 2, 3]), torch.tensor([2])
    return x.repeat_interleave(2), x.repeat_interleave(3, 1), x.repeat_interleave(each, 0), x.repeat_interleave(one, 0)


def replaced(torch, x, v):
    row, part = torch.select_scatter(x, v[0], 0, 1), torch.slice_scatter(x, v[:2], 0, 1, 3)
    return row, part, torch.diagonal_scatter(x, v[0, :4])


for dtype in ("float32", "int64", "float16"):
    base, source, places = whole(4, 5, dtype=dtype), whole(3, 5, dtype=dtype), integers(3, 5, low=0, high=4)
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        for include in (True, False):
            name = f"{reduce}_{include}_{dtype}"
            case(f"scatter_reduce_in_place_{name}",
                 lambda torch, x, i, v, r=reduce, s=include: x.clone().scatter_reduce_(0, i, v, r, include_self=s),
                 base, places, source)  # fmt: skip
            if reduce != "sum":
                case(f"index_reduce_{name}",
                     lambda torch, x, i, v, r=reduce, s=include: x.index_reduce(0, i[:, 0], v, r, include_self=s),
                     base, places, source)  # fmt: skip
    case(f"scatter_by_name_{dtype}",
         lambda torch, x, i, v: (x.scatter(0, i, v, reduce="add"), x.scatter(0, i, v, reduce="multiply"),
                                 x.scatter(dim=0, index=i, value=3)), base, places, source)  # fmt: skip
    case(f"put_{dtype}", puts, base, source)
    case(f"diagonals_{dtype}", diagonals, base)
    case(
        f"kron_{dtype}", lambda torch, x, v: (torch.kron(x, v[0]), torch.kron(v[0], x), torch.kron(v, x)), base, source
    )
    case(f"repeat_interleave_{dtype}", repeated, base)
    case(f"parts_replaced_{dtype}", replaced, base, source)
case(
    "diag_gradient", lambda torch, x: (x.diag(1), x[0].diag(-1), torch.diag_embed(x), x.trace()), randn(4, 4), grad=True
)
case("kron_gradient", lambda torch, x, y: torch.kron(x, y), randn(2, 3), randn(3, 2), grad=True)
case(
    "put_gradient",
    lambda torch, x, v: x.put(torch.tensor([5, 0]), v, accumulate=True),
    randn(3, 4),
    randn(2),
    grad=True,
)
case(
    "repeat_interleave_gradient",
    lambda torch, x: x.repeat_interleave(torch.tensor([2, 0, 3]), 0),
    randn(3, 2),
    grad=True,
)


@script(CASES)
def counts(torch):
    x = torch.tensor([1, 2, 2])
    whole, weighed = torch.bincount(x), torch.bincount(x, weights=torch.tensor([1.0, 2.0, 3.0]))
    return (
        whole,
        weighed,
        torch.bincount(torch.tensor([], dtype=torch.int64), minlength=3),
        torch.histc(torch.ones(3), 4),
    )


@script(CASES)
def repeats_alone(torch):
    return torch.repeat_interleave(torch.tensor([1, 0, 3]))


@script(CASES)
def triangles_of_indices(torch):
    return [
        (torch.tril_indices(*sizes), torch.triu_indices(*sizes))
        for sizes in ((3, 4, 0), (4, 3, 1), (4, 3, -2), (2, 5, 3), (5, 2, -4), (0, 3, 0), (3, 3, 7), (3, 3, -7))
    ]


for args in ((0, 1, 0.1), (-1, 1, 0.01), (0, 1000, 0.7), (1.5, -3, -0.25), (0.0, 100.0, 1e-3),
             (10**6, 10**6 + 10, 0.37), (0, 1, 1 / 7), (2**24 - 9, 2**24),
             (1e-3, 1e-2, 1e-4), (0, 5, 2.0)):  # fmt: skip
    case(
        f"arange_{'_'.join(map(str, args))}",
        lambda torch, a=args: (torch.arange(*a), torch.arange(*a, dtype=torch.float16)),
    )
