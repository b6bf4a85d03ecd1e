"""Reading and writing by position: subscripts of every kind, gather and scatter, order, search."""

from tests.cases.case import Case, Input, bools, call, distinct, given, integers, method, randn, spiked

CASES: list[Case] = []


def case(name: str, fn, *inputs: Input, **options) -> None:
    CASES.append(Case(name, fn, inputs, **options))


def long(torch, values):
    return torch.tensor(values, dtype=torch.int64)


# name: the subscript of a tensor of shape (4, 5, 6), as a function of the library.
SUBSCRIPTS = {
    "int": lambda torch: 1,
    "int_negative": lambda torch: -1,
    "ints": lambda torch: (1, -2, 3),
    "slice": lambda torch: slice(1, 3),
    "slice_open": lambda torch: (slice(None), slice(2, None)),
    "slice_step": lambda torch: (slice(None, None, 2), slice(1, None, 3)),
    "slice_negative": lambda torch: (slice(-3, -1), slice(None, -2)),
    "slice_past_end": lambda torch: slice(2, 99),
    "slice_empty": lambda torch: slice(3, 1),
    "int_and_slice": lambda torch: (2, slice(1, 4), -1),
    "none": lambda torch: None,
    "nones": lambda torch: (None, slice(None), None, 1),
    "ellipsis": lambda torch: (..., 2),
    "ellipsis_middle": lambda torch: (1, ..., 2),
    "ellipsis_alone": lambda torch: ...,
    "ellipsis_none": lambda torch: (..., None),
    "ellipsis_of_nothing": lambda torch: (0, 1, ..., slice(2)),
    "empty_tuple": lambda torch: (),
    "true": lambda torch: True,
    "false": lambda torch: (False, slice(None)),
    "list": lambda torch: [0, 2, 2],
    "list_negative": lambda torch: [-1, 0],
    "list_empty": lambda torch: [],
    "list_of_bools": lambda torch: [True, False, True, True],
    "tensor": lambda torch: long(torch, [3, 0, 0]),
    "tensor_2d": lambda torch: long(torch, [[0, 1], [2, -1]]),
    "tensor_zero_dim": lambda torch: long(torch, 2),
    "tensor_empty": lambda torch: long(torch, []),
    "tensor_int32": lambda torch: torch.tensor([1, 3], dtype=torch.int32),
    "tensors": lambda torch: (long(torch, [0, 1, 2]), long(torch, [4, 3, -1])),
    "tensors_broadcast": lambda torch: (long(torch, [[0], [2]]), long(torch, [1, 3, 4])),
    "tensors_all": lambda torch: (long(torch, [0, 1]), long(torch, [1, 2]), long(torch, [2, 3])),
    "tensor_and_int": lambda torch: (long(torch, [0, 2]), 1),
    "tensor_second": lambda torch: (slice(None), long(torch, [0, 4, 4])),
    "tensor_last": lambda torch: (..., long(torch, [5, 0])),
    "tensor_after_int": lambda torch: (1, slice(None), long(torch, [0, 2])),
    "tensors_apart": lambda torch: (long(torch, [0, 1]), slice(None), long(torch, [2, 3])),
    "tensors_with_slice": lambda torch: (slice(1, 3), long(torch, [0, 1]), long(torch, [2, 3])),
    "tensor_with_step": lambda torch: (slice(None, None, 2), long(torch, [0, 1, 4]), slice(1, 3)),
    "tensor_with_none": lambda torch: (None, long(torch, [0, 1]), None),
    "lists": lambda torch: ([0, 1], [1, 2]),
    "list_and_slice": lambda torch: ([0, 3], slice(1, 3)),
    "mask_rows": lambda torch: torch.tensor([True, False, False, True]),
    "mask_of_nothing": lambda torch: torch.zeros(4, dtype=torch.bool),
    "mask_second": lambda torch: (slice(None), torch.tensor([True, False, True, False, True])),
    "mask_two_dims": lambda torch: torch.arange(20).view(4, 5) % 3 == 0,
    "mask_full": lambda torch: torch.arange(120).view(4, 5, 6) % 7 == 0,
    "mask_and_tensor": lambda torch: (torch.tensor([True, False, False, True]), long(torch, [1, 2])),
    "mask_last": lambda torch: (..., torch.tensor([True, False] * 3)),
}
# Subscripts under which one place is met twice, so that an assignment of several values has no single outcome.
REPEATED = {"list", "tensor", "tensor_second"}

for name, subscript in SUBSCRIPTS.items():
    read = lambda torch, a, s=subscript: a[s(torch)]  # noqa: E731
    case(f"get_{name}", read, randn(4, 5, 6))

    def write_scalar(torch, a, subscript=subscript):
        a = a * 1
        a[subscript(torch)] = 2.5
        return a

    def write_tensor(torch, a, v, name=name, subscript=subscript):
        a = a * 1
        place = subscript(torch)
        values = v[: a[place].numel()].reshape(a[place].shape)
        a[place] = values[:1].expand_as(values) if name in REPEATED else values
        return a

    def write_broadcast(torch, a, v, subscript=subscript):
        a = a * 1
        a[subscript(torch)] = v
        return a

    case(f"set_{name}_scalar", write_scalar, randn(4, 5, 6))
    case(f"set_{name}_by_tensor", write_broadcast, randn(4, 5, 6), randn())
    if name not in REPEATED or name == "list":
        case(f"set_{name}", write_tensor, randn(4, 5, 6), randn(120))
for name in ("slice_step", "tensors_apart", "mask_rows", "int_and_slice", "mask_full", "list"):
    subscript = SUBSCRIPTS[name]
    case(f"get_{name}_int64", lambda torch, a, s=subscript: a[s(torch)], integers(4, 5, 6))
    case(f"get_{name}_bool", lambda torch, a, s=subscript: a[s(torch)], bools(4, 5, 6))
    case(f"get_{name}_float16", lambda torch, a, s=subscript: a[s(torch)], randn(4, 5, 6, dtype="float16"))
    case(f"get_{name}_transposed", lambda torch, a, s=subscript: a.permute(1, 2, 0)[s(torch)], randn(6, 4, 5))


def augmented(torch, a):
    a = a * 1
    a[1:3, ::2] += 10
    a[0] *= 2
    a[..., -1] -= a[..., 0]
    return a


def augmented_mask(torch, a):
    a = a * 1
    a[a > 0] *= -2
    a[[0, 2], [1, 1]] += 5
    return a


def written_dtypes(torch, a, b):
    a, b = a.clone(), b.clone()
    a[0] = 7
    a[1] = b[1]
    b[2] = a[2] + 0.5
    b[b > 3] = True
    return a, b


def through_selected(torch, a):
    """Rows that a tensor without axes names are views."""
    a, i, j = a * 1, torch.tensor(2), torch.tensor(1)
    a[i][j] = 7.0
    a[i].mul_(2)[0].zero_()
    a[:, j, 1:].add_(1)
    a[i, j, j].sub_(3)
    a[i].detach()[3:] -= 1
    row = a[j]
    row[0], row[1:3] = row[1] * 2, 0.5
    a[i, torch.tensor([0, 1])].zero_()
    return a


def from_own_parts(torch, a):
    """What is grown before it is written may be a part of what it is written to."""
    a = a * 1
    a[0, 1:] = a[0, 1]
    a[1, 2] = a[1, 2, 3]
    a[2:] = a[3]
    a[...] = a[:, :1] * 2
    return a


case("set_from_own_parts", from_own_parts, randn(4, 5, 6))
case("set_through_selected", through_selected, randn(4, 5, 6))
case("set_augmented", augmented, randn(4, 5, 6))
case("set_augmented_mask", augmented_mask, randn(4, 5, 6))
case("set_casts", written_dtypes, integers(4, 3), integers(4, 3, dtype="float32"))
case("get_then_get", lambda torch, a: a[1:][:, [0, 2]][..., 1], randn(4, 5, 6))
case("get_repeated_gradient", lambda torch, a: a[[0, 0, 0, 1]], randn(2, 3))
case("get_uint8_values", lambda torch, a, i: a[i.long()], randn(9, 3), integers(5, low=0, high=9, dtype="uint8"))
case("embedding_rows", lambda torch, a, i: a[i], randn(11, 4), integers(3, 5, low=0, high=11))

# Along one axis.
ROWS = given([2, 0, 2], "int64")
UNIQUE = given([2, 0, 3], "int64")
for dim in (0, 1, -1):
    size = (3, 4, 5)[dim]
    index = integers(2, 3, 4, low=0, high=size)
    case(f"gather_dim{dim}", lambda torch, a, i, dim=dim: a.gather(dim, i), randn(3, 4, 5), index)
    case(f"take_along_dim{dim}", lambda torch, a, d=dim: a.take_along_dim(a.argsort(d), d), distinct(3, 4, 5))
    case(f"index_select_dim{dim}", lambda torch, a, i, dim=dim: a.index_select(dim, i), randn(3, 4, 5),
         given([2, 0, 2, 1], "int64"))  # fmt: skip
    case(f"index_add_dim{dim}", lambda torch, a, i, v, dim=dim: a.index_add(dim, i, v.transpose(0, dim)),
         randn(4, 4, 4), ROWS, randn(3, 4, 4))  # fmt: skip
    case(f"index_copy_dim{dim}", lambda torch, a, i, v, dim=dim: a.index_copy(dim, i, v.transpose(0, dim)),
         randn(4, 4, 4), UNIQUE, randn(3, 4, 4))  # fmt: skip
    case(f"index_fill_dim{dim}", lambda torch, a, i, dim=dim: a.index_fill(dim, i, 1.5), randn(4, 4, 4), ROWS)
    case(f"scatter_add_dim{dim}", lambda torch, a, i, v, dim=dim: a.scatter_add(dim, i, v), randn(4, 4, 4),
         integers(3, 4, 4, low=0, high=4), randn(3, 4, 4))  # fmt: skip
    case(f"scatter_scalar_dim{dim}", lambda torch, a, i, dim=dim: a.scatter(dim, i, 2.0), randn(4, 4, 4),
         integers(2, 3, 2, low=0, high=4))  # fmt: skip
    for reduce in ("sum", "prod", "amax", "amin", "mean"):
        for include in (True, False):
            case(
                f"scatter_reduce_{reduce}_{include}_dim{dim}",
                lambda torch, a, i, v, dim=dim, r=reduce, s=include: a.scatter_reduce(dim, i, v, r, include_self=s),
                distinct(3, 3),
                given([[0, 2, 1], [0, 0, 1]], "int64"),
                distinct(2, 3),
                grad=reduce in ("sum", "mean"),
            )
for include in (True, False):
    case(
        f"scatter_reduce_prod_zeros_{include}",
        lambda torch, a, i, v, s=include: a.scatter_reduce(0, i, v, "prod", include_self=s),
        given([2.0, 0.0, 3.0, 0.0]),
        given([0, 0, 1, 2, 2, 3], "int64"),
        given([0.0, 2.0, 5.0, 0.0, 0.0, 7.0]),
    )
PERMUTED = given([[2, 0, 1], [1, 2, 0]], "int64")
case("gather_int64", lambda torch, a, i: torch.gather(a, 1, i), integers(4, 5), integers(4, 2, low=0, high=5))
case("gather_smaller_index", lambda torch, a, i: a.gather(0, i), randn(5, 5), integers(2, 3, low=0, high=5))
case("gather_of_transposed", lambda torch, a, i: a.t().gather(0, i), randn(4, 5), integers(3, 4, low=0, high=5))
case("gather_labels", lambda torch, a, i: a.log_softmax(-1).gather(-1, i[:, None]), randn(7, 5),
     integers(7, low=0, high=5))  # fmt: skip
case("scatter", lambda torch, a, i, v: a.scatter(1, i, v), randn(2, 4), PERMUTED, randn(2, 3))
case("scatter_in_place", lambda torch, a, i, v: a.clone().scatter_(0, i, v), randn(4, 3),
     given([[2, 0, 1], [1, 2, 0]], "int64"), randn(2, 3))  # fmt: skip
case("scatter_one_hot", lambda torch, i: torch.zeros(5, 4).scatter_(1, i[:, None], 1.0), integers(5, low=0, high=4))
# No axes are as one axis of one element, in each of the three.
for name, own, numbers, updates in (
    ("all", (), 0, ()), ("long_source", (), 0, (3,)), ("listed", (), [0], (3,)),
    ("of_one", (3,), 1, (3,)), ("one_source", (3,), [1], ()),
):  # fmt: skip
    on = given(numbers, "int64")
    inputs = randn(*own), randn(*updates), on
    for word in ("scatter", "scatter_add"):
        case(f"{word}_of_no_axes_{name}", lambda torch, a, v, i, word=word: getattr(a, word)(0, i, v),
             *inputs, grad=False)  # fmt: skip
    for reduce in ("mean", "amax"):
        case(f"scatter_reduce_{reduce}_of_no_axes_{name}",
             lambda torch, a, v, i, r=reduce: a.scatter_reduce(0, i, v, r), *inputs, grad=False)  # fmt: skip
case("scatter_add_many", lambda torch, i, v: torch.zeros(7).scatter_add_(0, i, v), integers(300, low=0, high=7),
     randn(300), tolerance="reduction")  # fmt: skip
case("scatter_add_int64", lambda torch, i, v: torch.zeros(4, dtype=torch.int64).scatter_add_(0, i, v),
     integers(65, low=0, high=4), integers(65))  # fmt: skip
# So many of one row that blocks of them are folded first; the rows of the first begin and end inside of blocks.
for name, numbers in (("all", given([2] * 9000, "int64")), ("few", integers(9001, low=0, high=3))):
    case(f"index_add_of_many_{name}", lambda torch, i, v: torch.zeros(4, 2).index_add(0, i, v), numbers,
         integers(9000 + (name == "few"), 2, dtype="float32"), grad=False)  # fmt: skip
    case(f"scatter_reduce_of_many_{name}", lambda torch, i, v: torch.zeros(4).scatter_reduce(0, i, v, "amax"), numbers,
         distinct(9000 + (name == "few")), grad=False)  # fmt: skip
    case(f"bincount_of_many_{name}", lambda torch, i: torch.bincount(i, minlength=5), numbers)
case(
    "index_add_wide",
    lambda torch, i, v: torch.zeros(5, 300).index_add(0, i, v),
    integers(40, low=0, high=5),
    randn(40, 300),
)
case("index_add_alpha", lambda torch, a, i, v: a.index_add(0, i, v, alpha=-0.5), randn(4, 3), ROWS, randn(3, 3))
case("index_add_in_place", lambda torch, a, i, v: a.clone().index_add_(0, i, v), randn(4, 3), ROWS, randn(3, 3))
case("index_add_many", lambda torch, i, v: torch.zeros(5, 3).index_add_(0, i, v), integers(257, low=0, high=5),
     randn(257, 3), tolerance="reduction")  # fmt: skip
# So large that only the rows that occur are touched.
for name, rows, columns, updates, last in (
    ("rows", 3000, 36, 300, 3000), ("repeated_rows", 3000, 36, 300, 4), ("odd_rows", 4001, 33, 67, 4001),
    ("wide_rows", 40, 1027, 301, 40), ("sorted_in_parts", 300, 32, 4500, 250), ("one_row", 9000, 132, 9, 1),
):  # fmt: skip
    large = randn(rows, columns), integers(updates, low=0, high=last), randn(updates, columns)
    case(f"index_add_{name}", lambda torch, a, i, v: a.index_add(0, i, v), *large, tolerance="reduction")
    case(f"index_add_in_place_{name}", lambda torch, a, i, v: a.clone().mul_(2).index_add_(0, i, v), *large,
         tolerance="reduction", grad=False)  # fmt: skip
LARGE = randn(3000, 36), integers(300, low=0, high=30), spiked(300, 36)
for reduce in ("amax", "amin", "prod"):
    case(f"index_reduce_rows_{reduce}", lambda torch, a, i, v, r=reduce: a.index_reduce(0, i, v, r), *LARGE, grad=False)
case("index_copy_rows", lambda torch, a, i, v: a.index_copy(0, i, v), randn(3000, 36),
     given([*range(5, 2995, 10)], "int64"), randn(299, 36))  # fmt: skip
case("get_first_rows", lambda torch, a: a[torch.arange(3)] * 2 + a[torch.arange(4)][:3], randn(5, 4))
case("get_all_rows", lambda torch, a: a[torch.arange(5)], randn(5, 4))
case("index_copy_in_place", lambda torch, a, i, v: a.clone().index_copy_(0, i, v), randn(4, 3), UNIQUE, randn(3, 3))
case("index_fill_in_place", lambda torch, a, i: a.clone().index_fill_(1, i, -1), randn(3, 4), ROWS)
case("index_put", lambda torch, a, i, v: a.index_put((i,), v), randn(4, 3), UNIQUE, randn(3, 3))
case("index_put_accumulate", lambda torch, a, i, v: a.index_put((i,), v, accumulate=True), randn(4, 3), ROWS,
     randn(3, 3))  # fmt: skip
case("take", lambda torch, a, i: a.take(i), randn(3, 4), integers(2, 5, low=-12, high=12))
case("masked_fill", method("masked_fill", value=1.5), randn(3, 4), bools(3, 4))
case("masked_fill_broadcast", method("masked_fill", value=float("-inf")), randn(2, 3, 4), bools(3, 1), grad=False)
case("masked_fill_in_place", lambda torch, a, m: a.clone().masked_fill_(m, 0), randn(3, 4), bools(4))
case("masked_fill_int64", method("masked_fill", value=9), integers(3, 4), bools(3, 4))
case("masked_fill_tensor", lambda torch, a, m, v: a.masked_fill(m, v), randn(3, 4), bools(3, 4), randn())
case("masked_select", method("masked_select"), randn(3, 4), bools(3, 4))
case("masked_select_broadcast", method("masked_select"), randn(3, 4), bools(4))
case("masked_scatter", method("masked_scatter"), randn(3, 4), bools(3, 4), randn(12))
case("causal_mask", lambda torch, a: a.masked_fill(torch.tril(torch.ones(5, 5)) == 0, -1e9).softmax(-1), randn(2, 5, 5))
case("nonzero", call("nonzero"), integers(3, 4, low=0, high=2))
case("nonzero_tuple", call("nonzero", as_tuple=True), bools(3, 4))
case("nonzero_of_nothing", lambda torch, a: (a.nonzero(), a.nonzero(as_tuple=True)), given([0, 0], "int64"))
case("argwhere", call("argwhere"), bools(3, 4))
case("where_condition", lambda torch, m: torch.where(m), bools(3, 4))

# Order.
for options in ({}, {"descending": True}, {"dim": 0}, {"dim": 0, "descending": True}, {"stable": True}):
    text = "_".join(options) or "default"
    case(f"sort_{text}", lambda torch, a, o=options: tuple(torch.sort(a, **o)), distinct(5, 7))
    case(f"argsort_{text}", method("argsort", **options), distinct(5, 7))
for size in (1, 2, 7, 64, 65, 257, 1000):
    case(f"sort_{size}", lambda torch, a: tuple(a.sort()), distinct(2, size))
    case(f"topk_of_{size}", lambda torch, a: tuple(a.topk((a.shape[-1] + 1) // 2)), distinct(2, size))
case("sort_int64", lambda torch, a: tuple(a.sort(stable=True)), integers(65))
case("sort_stable_ties", lambda torch, a: tuple(a.sort(stable=True, descending=True)), integers(65, dtype="float32"))
case("sort_nan", lambda torch, a: a.sort().values, spiked(7), grad=False)
case("sort_named", lambda torch, a: (a.sort(-1).values, a.sort(-1).indices), distinct(3, 5))
case("sort_bool", lambda torch, a: a.sort().values, bools(9))
case("msort", call("msort"), distinct(5, 3))
case("topk", lambda torch, a: tuple(torch.topk(a, 3)), distinct(4, 9))
case("topk_smallest", lambda torch, a: tuple(a.topk(2, largest=False)), distinct(4, 9))
case("topk_dim", lambda torch, a: tuple(a.topk(2, dim=0)), distinct(4, 9))
case("topk_named", lambda torch, a: (a.topk(2).values, a.topk(2).indices), distinct(9))
case("topk_all", lambda torch, a: tuple(a.topk(9)), distinct(9))
case("topk_threshold", lambda torch, a: a.masked_fill(a < a.topk(3).values[:, [-1]], 0), distinct(4, 9))
case("kthvalue", lambda torch, a: tuple(a.kthvalue(3, dim=1)), distinct(4, 9))
case("unique", call("unique"), integers(4, 9))
case("unique_all", call("unique", return_inverse=True, return_counts=True), integers(40))
case("unique_float", call("unique"), integers(20, dtype="float32", low=-3, high=3), grad=False)
case("unique_consecutive", call("unique_consecutive", return_counts=True), given([1, 1, 2, 2, 2, 1], "int64"))
case("bincount", call("bincount"), integers(40, low=0, high=6))
case("bincount_minlength", call("bincount", minlength=9), integers(40, low=0, high=6))
case("histc", call("histc", bins=4, min=0, max=3), given([0.1, 0.9, 1.4, 2.9, 3.0, 5.0]), grad=False)

# Search.
EDGES = given([0.0, 1.0, 2.0, 4.0], grad=False)
POINTS = given([[-1.0, 0.0, 0.5], [1.0, 4.0, 9.0]], grad=False)
for right in (False, True):
    case(f"searchsorted_{right}", lambda torch, e, p, r=right: torch.searchsorted(e, p, right=r), EDGES, POINTS)
    case(f"bucketize_{right}", lambda torch, p, e, r=right: torch.bucketize(p, e, right=r), POINTS, EDGES)
case("searchsorted_rows", lambda torch, e, p: torch.searchsorted(e, p), given([[1, 3, 5], [2, 4, 6]], grad=False),
     given([[0, 3], [5, 7]], grad=False))  # fmt: skip
case("isin", call("isin"), integers(9), given([0, 2, 3], "int64"))
for classes in (-1, 7):
    case(f"one_hot_{classes}", call("nn.functional.one_hot", classes), integers(3, 4, low=0, high=5))
