"""Arguments that PyTorch refuses, by the exception type that it raises: each was accepted once. See errors.py."""

from tests.cases.case import Case
from tests.cases.errors import a

CASES: list[Case] = []


def bag(torch, *offsets, rows=(1, 2), **options):
    return torch.nn.functional.embedding_bag(torch.tensor(rows), torch.ones(4, 2), torch.tensor(offsets), **options)


def long(torch, *values):
    return torch.tensor(values, dtype=torch.int64)


MOVEMENT = {
    "flip_of_no_axes": lambda torch: a(torch, 2, 3).flip(),
    "roll_by_nothing": lambda torch: a(torch, 2, 3).roll((), ()),
    "roll_by_nothing_along_an_axis": lambda torch: a(torch, 2, 3).roll((), 1),
    "dsplit_indivisible": lambda torch: torch.dsplit(a(torch, 2, 2, 5), 2),
    "dsplit_of_a_matrix": lambda torch: torch.dsplit(a(torch, 2, 2), 2),
    "hsplit_indivisible": lambda torch: torch.hsplit(a(torch, 5), 2),
    "hsplit_of_0d": lambda torch: torch.hsplit(a(torch), 2),
    "vsplit_indivisible": lambda torch: torch.vsplit(a(torch, 5, 2), 2),
    "vsplit_of_a_vector": lambda torch: torch.vsplit(a(torch, 4), 2),
    "view_of_a_larger_dtype_from_between": lambda torch: a(torch, 12)[1:5].view(torch.float64),
    "view_of_a_larger_dtype_with_gaps": lambda torch: a(torch, 4, 4)[:, 1:3].view(torch.float64),
    "view_of_a_larger_dtype_transposed": lambda torch: a(torch, 4, 4).t().view(torch.float64),
    "unflatten_into_nothing": lambda torch: a(torch, 1).unflatten(0, []),
    "unflatten_of_0d": lambda torch: a(torch).unflatten(0, [1]),
    "unflatten_by_name": lambda torch: a(torch, 4).unflatten("A", (2, 2)),
    "index_select_twice_of_0d": lambda torch: a(torch).index_select(0, long(torch, 0, 0)),
    "set_to_another_dtype": lambda torch: a(torch, 2).set_(a(torch, 2, dtype="int32")),
}
NUMBERS = {
    "unravel_index_of_floats": lambda torch: torch.unravel_index(a(torch, 1), (3,)),
    "unravel_index_into_floats": lambda torch: torch.unravel_index(long(torch, 1), (3.0,)),
    "unravel_index_into_negative": lambda torch: torch.unravel_index(long(torch, 1), (-3,)),
    "vander_of_a_matrix": lambda torch: torch.vander(a(torch, 2, 2)),
    "vander_of_fewer_than_no_columns": lambda torch: torch.vander(a(torch, 2), N=-1),
    "repeat_interleave_by_floats": lambda torch: torch.repeat_interleave(a(torch, 3)),
    "repeat_interleave_by_a_matrix": lambda torch: torch.repeat_interleave(a(torch, 2, 2, dtype="int64")),
    "chain_matmul_of_vectors": lambda torch: torch.chain_matmul(a(torch, 1), a(torch, 1)),
    "chain_matmul_of_nothing": lambda torch: torch.chain_matmul(),
    "einsum_of_a_point": lambda torch: torch.einsum(". ..", a(torch, 2)),
    "embedding_bag_beyond_its_input": lambda torch: bag(torch, 0, 5),
    "embedding_bag_that_ends_beyond_its_input": lambda torch: bag(torch, 0, 3, include_last_offset=True),
    "embedding_bag_with_float_offsets": lambda torch: bag(torch, 0.0, 1.0),
    "embedding_bag_of_floats": lambda torch: bag(torch, 0, 1, rows=(1.0, 2.0)),
    "embedding_bag_padding_beyond_its_rows": lambda torch: bag(torch, 0, 1, padding_idx=4),
    "threads_none": lambda torch: torch.set_num_threads(0),
    "threads_a_part": lambda torch: torch.set_num_threads(1.5),
    "threads_between_operators_below_0": lambda torch: torch.set_num_interop_threads(-1),
}
CREATION = {
    "size_of_a_tensor": lambda torch: torch.Size(torch.ones(3)),
    "size_of_floats": lambda torch: torch.Size([1.5]),
    "meshgrid_of_nothing": lambda torch: torch.meshgrid(),
    "meshgrid_of_two_dtypes": lambda torch: torch.meshgrid(a(torch, 1), long(torch, 1)),
    "sizes_of_more_than_64_bits": lambda torch: torch.zeros(2**62, 2**4),
    "sizes_of_more_than_64_bits_and_0": lambda torch: torch.zeros(0, 4, 2**61),
    "legacy_tensor_of_a_tensor_on_a_device": lambda torch: torch.Tensor(torch.ones(1), device="cpu"),
    "frombuffer_of_nothing": lambda torch: torch.frombuffer(bytearray(), dtype=torch.float32),
    "frombuffer_of_none_of_it": lambda torch: torch.frombuffer(bytearray(8), dtype=torch.float32, count=0),
}
# function: its arguments; results that are not float32 come second. `out` is of another dtype than the result.
EXACT = {
    "nonzero": (), "argmax": (), "argmin": (), "addmm": ("m", "m"), "mm": ("m",), "mv": ("v",), "take": ("i",),
    "index_select": (0, "i"), "masked_select": ("b",), "tril": (), "triu": (), "diag": (), "all": (), "any": (),
    "amax": (), "amin": (), "norm": (), "histc": (), "gather": (0, "ii"), "multinomial": (1,),
}  # fmt: skip
EXACT_PAIRS = {
    "sort": (), "topk": (1,), "max": (0,), "min": (0,), "kthvalue": (1,), "median": (0,), "nanmedian": (0,),
    "cummax": (0,), "cummin": (0,), "mode": (0,), "aminmax": (),
}  # fmt: skip


def into_another_dtype(torch, name, args):
    known = {"m": a(torch, 2, 2), "v": a(torch, 2), "i": long(torch, 0), "b": a(torch, 2, 2) > 1}
    known["ii"] = long(torch, 0).reshape(1, 1)
    args = [known.get(arg, arg) for arg in args]
    count = 2 if name in EXACT_PAIRS else 1
    outs = tuple(torch.empty(0, dtype=torch.complex64) for _ in range(count))
    getattr(torch, name)(a(torch, 2, 2), *args, out=outs if count == 2 else outs[0])


OUT = {
    f"{name}_into_another_dtype": lambda torch, name=name, args=args: into_another_dtype(torch, name, args)
    for name, args in (EXACT | EXACT_PAIRS).items()
}
LAYERS = {
    "broadcast_shapes_below_0": lambda torch: torch.broadcast_shapes((-1, 2)),
    "take_along_dim_by_int32": lambda torch: torch.take_along_dim(
        a(torch, 2, 2), torch.zeros(1, 1, dtype=torch.int32), 0
    ),
    "cosine_embedding_loss_of_vectors": lambda torch: torch.nn.functional.cosine_embedding_loss(
        a(torch, 4), a(torch, 4), torch.ones(1)
    ),
    "cosine_embedding_loss_of_one_target": lambda torch: torch.nn.functional.cosine_embedding_loss(
        a(torch, 3, 4), a(torch, 3, 4), torch.tensor(1.0)
    ),
    "unflatten_layer_of_floats": lambda torch: torch.nn.Unflatten(1, (2, 5.0)),
    "unflatten_layer_of_a_number": lambda torch: torch.nn.Unflatten(1, 2),
    "sequential_insert_of_a_list": lambda torch: torch.nn.Sequential(torch.nn.ReLU()).insert(0, [1]),
    "grad_of_no_inputs": lambda torch: torch.autograd.grad(a(torch, 2, grad=True).sum(), []),
    "backward_of_no_inputs": lambda torch: a(torch, 2, grad=True).sum().backward(inputs=[]),
    "ctc_loss_of_float_lengths": lambda torch: torch.nn.functional.ctc_loss(
        a(torch, 5, 1, 3), torch.ones(1, 2, dtype=torch.int64), torch.tensor([5.0]), torch.tensor([2])
    ),
    "hessian_of_several_results": lambda torch: torch.autograd.functional.hessian(
        lambda x: (x.sum(), x.sum()), a(torch, 2)
    ),
    "jacobian_strict_and_vectorized": lambda torch: torch.autograd.functional.jacobian(
        lambda x: x, a(torch, 2), strict=True, vectorize=True
    ),
}
for table in (MOVEMENT, NUMBERS, CREATION, OUT, LAYERS):
    for name, fn in table.items():
        is_wide = name.startswith("view_of")
        CASES.append(Case(name, fn, grad=False, devices=("cpu",) if is_wide else ("cpu", "webgpu")))
