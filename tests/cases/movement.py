"""Elements that move and do not change: views, joins, repeats, padding, triangles."""

from tests.cases.case import Case, Input, bools, call, integers, method, randn

CASES: list[Case] = []


def case(name: str, fn, *inputs: Input, **options) -> None:
    CASES.append(Case(name, fn, inputs, tolerance="pointwise", **options))


# name: method, arguments, keyword arguments, shape.
METHODS = {
    "view": ("view", (6, 4), {}, (2, 3, 4)),
    "view_infer": ("view", (-1, 8), {}, (4, 6)),
    "view_tuple": ("view", ((3, 2),), {}, (6,)),
    "view_flat": ("view", (-1,), {}, (2, 3, 4)),
    "view_zero_dim": ("view", (1, 1), {}, ()),
    "reshape": ("reshape", (4, -1), {}, (2, 3, 4)),
    "reshape_list": ("reshape", ([12, 2],), {}, (2, 3, 4)),
    "reshape_to_zero_dim": ("reshape", ((),), {}, (1, 1)),
    "reshape_empty": ("reshape", (0, 3), {}, (3, 0)),
    "permute": ("permute", (2, 0, 1), {}, (2, 3, 4)),
    "permute_negative": ("permute", (0, -1, -2), {}, (2, 3, 4)),
    "permute_tuple": ("permute", ((1, 0),), {}, (2, 3)),
    "transpose": ("transpose", (0, 1), {}, (2, 3, 4)),
    "transpose_negative": ("transpose", (-2, -1), {}, (2, 3, 4)),
    "t": ("t", (), {}, (2, 3)),
    "t_vector": ("t", (), {}, (3,)),
    "swapaxes": ("swapaxes", (0, 2), {}, (2, 3, 4)),
    "swapdims": ("swapdims", (0, -1), {}, (2, 3, 4)),
    "movedim": ("movedim", (0, -1), {}, (2, 3, 4)),
    "movedim_several": ("movedim", ((0, 1), (2, 0)), {}, (2, 3, 4)),
    "moveaxis": ("moveaxis", (2, 0), {}, (2, 3, 4)),
    "expand": ("expand", (3, 4), {}, (3, 1)),
    "expand_new_dims": ("expand", (2, 3, 4), {}, (4,)),
    "expand_keep": ("expand", (5, -1, -1), {}, (1, 2, 3)),
    "expand_zero_dim": ("expand", (2, 2), {}, ()),
    "broadcast_to": ("broadcast_to", ((2, 3, 4),), {}, (3, 1)),
    "squeeze": ("squeeze", (), {}, (1, 3, 1, 2)),
    "squeeze_dim": ("squeeze", (0,), {}, (1, 3, 1)),
    "squeeze_negative": ("squeeze", (-1,), {}, (1, 3, 1)),
    "squeeze_no_one": ("squeeze", (1,), {}, (1, 3, 1)),
    "squeeze_several": ("squeeze", ((0, 2),), {}, (1, 3, 1)),
    "unsqueeze": ("unsqueeze", (1,), {}, (2, 3)),
    "unsqueeze_last": ("unsqueeze", (-1,), {}, (2, 3)),
    "unsqueeze_zero_dim": ("unsqueeze", (0,), {}, ()),
    "flatten": ("flatten", (), {}, (2, 3, 4)),
    "flatten_from": ("flatten", (1,), {}, (2, 3, 4)),
    "flatten_range": ("flatten", (), {"start_dim": 1, "end_dim": 2}, (2, 3, 4, 5)),
    "flatten_zero_dim": ("flatten", (), {}, ()),
    "ravel": ("ravel", (), {}, (2, 3)),
    "unflatten": ("unflatten", (1, (2, 3)), {}, (4, 6)),
    "unflatten_infer": ("unflatten", (-1, (2, -1)), {}, (4, 6)),
    "narrow": ("narrow", (1, 1, 2), {}, (3, 4)),
    "narrow_negative": ("narrow", (-1, -3, 2), {}, (3, 4)),
    "narrow_empty": ("narrow", (0, 1, 0), {}, (3, 4)),
    "select": ("select", (1, 2), {}, (3, 4)),
    "select_negative": ("select", (-1, -1), {}, (3, 4)),
    "split": ("split", (2,), {}, (5, 3)),
    "split_dim": ("split", (2,), {"dim": 1}, (3, 4)),
    "split_sizes": ("split", ([1, 3, 2],), {"dim": -1}, (2, 6)),
    "split_with_sizes": ("split_with_sizes", ([2, 1],), {}, (3, 2)),
    "tensor_split": ("tensor_split", (3,), {}, (7, 2)),
    "tensor_split_at": ("tensor_split", ((1, 4),), {"dim": 1}, (2, 6)),
    "chunk": ("chunk", (3,), {}, (7, 2)),
    "chunk_dim": ("chunk", (2,), {"dim": -1}, (2, 6)),
    "chunk_more_than_there_is": ("chunk", (5,), {}, (3,)),
    "unbind": ("unbind", (), {}, (3, 2)),
    "unbind_dim": ("unbind", (1,), {}, (3, 2)),
    "flip": ("flip", (0,), {}, (3, 4)),
    "flip_several": ("flip", ((0, -1),), {}, (2, 3, 4)),
    "flip_no_dim": ("flip", ((),), {}, (3,)),
    "fliplr": ("fliplr", (), {}, (3, 4)),
    "flipud": ("flipud", (), {}, (3, 4)),
    "rot90": ("rot90", (1, (0, 1)), {}, (3, 4)),
    "roll": ("roll", (2,), {}, (3, 4)),
    "roll_dim": ("roll", (1, 0), {}, (3, 4)),
    "roll_several": ("roll", ((1, -2), (0, 1)), {}, (3, 4)),
    "roll_far": ("roll", (-9, 1), {}, (3, 4)),
    "repeat": ("repeat", (2, 3), {}, (2, 3)),
    "repeat_new_dim": ("repeat", (2, 1, 3), {}, (2, 3)),
    "repeat_zero": ("repeat", (0, 2), {}, (2, 3)),
    "tile": ("tile", ((2,),), {}, (2, 3)),
    "tile_new_dim": ("tile", ((2, 1, 2),), {}, (2, 3)),
    "repeat_interleave": ("repeat_interleave", (2,), {"dim": 1}, (2, 3)),
    "repeat_interleave_flat": ("repeat_interleave", (3,), {}, (2, 2)),
    "unfold": ("unfold", (0, 3, 1), {}, (7,)),
    "unfold_step": ("unfold", (1, 2, 2), {}, (2, 6)),
    "unfold_overlap": ("unfold", (-1, 4, 2), {}, (2, 3, 9)),
    "tril": ("tril", (), {}, (4, 5)),
    "tril_above": ("tril", (1,), {}, (4, 4)),
    "tril_below": ("tril", (), {"diagonal": -2}, (2, 5, 4)),
    "triu": ("triu", (), {}, (4, 5)),
    "triu_above": ("triu", (), {"diagonal": 1}, (4, 4)),
    "triu_below": ("triu", (-1,), {}, (2, 5, 4)),
    "diag": ("diag", (), {}, (4, 5)),
    "diag_build": ("diag", (), {}, (3,)),
    "diag_offset": ("diag", (1,), {}, (4, 5)),
    "diag_build_offset": ("diag", (-1,), {}, (3,)),
    "diagonal": ("diagonal", (), {}, (4, 5)),
    "diagonal_offset": ("diagonal", (), {"offset": -1, "dim1": 1, "dim2": 2}, (2, 4, 5)),
    "diagonal_of_swapped_dims": ("diagonal", (1, 2, 0), {}, (3, 2, 4)),
    "diag_embed": ("diag_embed", (), {}, (2, 3)),
    "trace": ("trace", (), {}, (4, 4)),
    "view_as_itself": ("contiguous", (), {}, (2, 3)),
}  # fmt: skip
for name, (attribute, args, options, shape) in METHODS.items():
    case(name, method(attribute, *args, **options), randn(*shape))

FUNCTIONS = {
    "reshape": ((6, 2),), "permute": ((1, 2, 0),), "transpose": (0, 2), "squeeze": (0,), "unsqueeze": (-1,),
    "flatten": (1,), "narrow": (0, 1, 1), "select": (1, 1), "split": (2, 1), "chunk": (2, 2), "unbind": (0,),
    "flip": ((0, 1),), "roll": (1, 2), "tile": ((1, 2, 1),), "movedim": (0, 1), "swapaxes": (0, 1), "tril": (),
    "triu": (1,), "broadcast_to": ((3, 2, 3, 2),), "repeat_interleave": (2, 0), "unflatten": (1, (3, 1)), "ravel": (),
    "diagonal": (0, 0, 1), "atleast_2d": (), "clone": (), "rot90": (1, (0, 1)),
}  # fmt: skip
for name, args in FUNCTIONS.items():
    case(f"{name}_function", call(name, *args), randn(2, 3, 2))

SHORT = {
    "tril": (),
    "permute": (1, 0),
    "flip": (0,),
    "repeat": (2, 1),
    "roll": (1,),
    "diagonal": (),
    "unfold": (0, 2, 1),
}
for name, args in SHORT.items():
    case(f"{name}_int64", method(name, *args), integers(3, 4))
    case(f"{name}_bool", method(name, *args), bools(3, 4))
    case(f"{name}_float16", method(name, *args), randn(3, 4, dtype="float16"))
    case(f"{name}_uint8", method(name, *args), integers(3, 5, low=0, high=99, dtype="uint8"))

for kind, shapes in {
    "cat": ((2, 3), (4, 3)), "cat_one": ((2, 3),), "cat_empty_part": ((2, 3), (0, 3)),
    "cat_legacy_empty": ((2, 3), (0,)),
    "cat_many": ((1, 5),) * 12,
}.items():  # fmt: skip
    case(kind, lambda torch, *parts: torch.cat(parts), *(randn(*shape) for shape in shapes))
case("cat_dim", lambda torch, a, b: torch.cat([a, b], dim=1), randn(2, 3), randn(2, 5))
case("cat_negative_dim", lambda torch, a, b: torch.cat((a, b), -1), randn(2, 3, 1), randn(2, 3, 4))
case("cat_itself", lambda torch, a: torch.cat([a, a * 2, a]), randn(65))
case("cat_views", lambda torch, a: torch.cat([a.t(), a.t()[:, 1:]], 1), randn(3, 4))
case("cat_rotated_halves", lambda torch, a: torch.cat([-a[..., 2:], a[..., :2]], -1), randn(2, 3, 4))
case("cat_int64", lambda torch, a, b: torch.cat([a, b]), integers(3), integers(4))
case("concat", lambda torch, a, b: (torch.concat([a, b]), torch.concatenate([a, b])), randn(2, 3), randn(2, 3))
for dim in (0, 1, -1):
    case(f"stack_dim{dim}", lambda torch, a, b, dim=dim: torch.stack([a, b], dim), randn(2, 3), randn(2, 3))
case("stack_zero_dim", lambda torch, a, b: torch.stack([a, b]), randn(), randn())
for name in ("hstack", "vstack", "dstack", "column_stack"):
    case(name, lambda torch, a, b, name=name: getattr(torch, name)([a, b]), randn(3), randn(3))
    case(f"{name}_2d", lambda torch, a, b, name=name: getattr(torch, name)((a, b)), randn(2, 3), randn(2, 3))
case("block_diag", call("block_diag"), randn(2, 3), randn(1, 2))

for indexing in ("ij", "xy"):
    case(f"meshgrid_{indexing}", call("meshgrid", indexing=indexing), randn(3), randn(2))
case("cartesian_prod", call("cartesian_prod"), integers(3), integers(2))
case("broadcast_tensors", call("broadcast_tensors"), randn(3, 1), randn(4))
case("broadcast_shapes", lambda torch: torch.broadcast_shapes((2, 1), (3,), (1, 1)))
case("expand_as", method("expand_as"), randn(3, 1), randn(2, 3, 4))
case("view_as", method("view_as"), randn(6), randn(2, 3))
case("reshape_as", method("reshape_as"), randn(6), randn(2, 3))
case("repeat_interleave_counts", lambda torch, a, n: a.repeat_interleave(n, dim=0), randn(3, 2),
     integers(3, low=0, high=4))  # fmt: skip
case("tril_indices", lambda torch: (torch.tril_indices(3, 4), torch.triu_indices(3, 3, 1)))
case("properties", lambda torch, a: (a.T, a.mT, a.transpose(0, 1).mT), randn(3, 4))
case("mT_batched", lambda torch, a: a.mT, randn(2, 3, 4))
case("real_pairs", lambda torch, a: a.unflatten(-1, (-1, 2)).unbind(-1), randn(2, 6))

PADS = {
    "last": ((1, 2), (3, 4)), "two": ((1, 2, 3, 0), (3, 4)), "crop": ((-1, -1), (3, 4)),
    "mixed": ((-1, 2, 1, -1), (3, 4)),
    "three": ((1, 0, 0, 1, 2, 2), (2, 3, 4)), "none": ((0, 0), (3,)), "empty": ((1, 1), (2, 0)),
}  # fmt: skip
for name, (amounts, shape) in PADS.items():
    case(f"pad_{name}", call("nn.functional.pad", amounts), randn(*shape))
case("pad_value", call("nn.functional.pad", (1, 1), value=2.5), randn(2, 3))
case("pad_int64", call("nn.functional.pad", (1, 1), value=7), integers(2, 3))
case("pad_bool", call("nn.functional.pad", (1, 0), value=True), bools(3))
for mode in ("reflect", "replicate", "circular"):
    case(f"pad_{mode}", call("nn.functional.pad", (1, 2), mode=mode), randn(2, 3, 4))
    case(f"pad_{mode}_2d", call("nn.functional.pad", (1, 2, 2, 0), mode=mode), randn(2, 1, 4, 5))

# Chains of views, each folded into the next.
CHAINS = {
    "transpose_then_view": lambda torch, a: a.transpose(0, 1).contiguous().view(-1, 2),
    "transpose_then_reshape": lambda torch, a: a.transpose(0, 1).reshape(-1),
    "slices": lambda torch, a: a[1:, ::2][:, 1:].flip(0),
    "split_heads": lambda torch, a: a.view(4, 2, 3).transpose(0, 1),
    "merge_heads": lambda torch, a: a.view(4, 2, 3).transpose(0, 1).contiguous().view(2, 12),
    "expand_then_reshape": lambda torch, a: a[:, None].expand(4, 3, 6).reshape(12, 6),
    "pad_then_unfold": lambda torch, a: torch.nn.functional.pad(a, (1, 1)).unfold(1, 3, 2) * 2,
    "flip_flip": lambda torch, a: a.flip(0).flip(0),
    "permute_back": lambda torch, a: a.permute(1, 0).permute(1, 0) + 1,
    "overlapping_windows_summed": lambda torch, a: a.unfold(1, 3, 1).sum(-1),
    "slice_of_cat": lambda torch, a: torch.cat([a, a + 1])[3:6, 1:-1],
    "narrow_of_expand": lambda torch, a: a[0].expand(5, 6).narrow(0, 1, 3).sum(0),
    "roll_of_permuted": lambda torch, a: a.t().roll((1, 2), (0, 1)) * a.t(),
    "as_strided": lambda torch, a: torch.as_strided(a, (3, 2), (2, 1), 1),
    "chunks_swapped": lambda torch, a: torch.cat(a.chunk(2, 1)[::-1], 1),
    "diagonal_of_product": lambda torch, a: (a[:, None] * a[None]).diagonal(),
}
for name, fn in CHAINS.items():
    case(name, fn, randn(4, 6))

# What a tensor says about itself.
case("facts", lambda torch, a: (a.shape, a.size(), a.size(1), a.size(-1), a.ndim, a.dim(), a.numel(), a.nelement(),
                                len(a), a.is_contiguous(), a.t().is_contiguous(), a.stride(), a.t().stride(),
                                a.stride(0), a[1:].storage_offset(), a.element_size(), a.dtype, a.is_floating_point(),
                                a.nbytes, a.itemsize, a.t().contiguous().stride()), randn(3, 4))  # fmt: skip
case("strides_of_views", lambda torch, a: (a[::2].stride(), a.expand(5, 3, 4).stride(), a[:, None].stride(),
                                           a.unfold(1, 2, 1).stride(), a.view(2, 6).stride()), randn(3, 4))  # fmt: skip
case("shape_arithmetic", lambda torch, a: (a.shape[0], a.shape[:2], a.shape.numel(), list(a.shape)), randn(3, 4, 2))
case("iteration", lambda torch, a: [row * i for i, row in enumerate(a)], randn(3, 4))
case("tolist", lambda torch, a, b: (a.tolist(), b.tolist(), a[0, 0].tolist()), integers(2, 3), bools(2))
case("item", lambda torch, a: (a[1].item(), float(a[2]), int(a[2]), bool(a[0] == a[0]), a[:1].item()), integers(3))
case("index_protocol", lambda torch, a: [10, 20, 30, 40][a[0]], integers(2, low=0, high=3))
