"""torch.nn.functional without its losses: activations, norms, convolution, pooling, embedding, attention."""

import math

from tests.cases.case import (
    Case,
    Function,
    Input,
    bools,
    distinct,
    edge_pairs,
    edges,
    given,
    integers,
    randn,
    resolve,
    uniform,
)

CASES: list[Case] = []


def case(name: str, fn, *inputs: Input, tolerance: str = "reduction", **options) -> None:
    CASES.append(Case(name, fn, inputs, tolerance=tolerance, **options))


def functional(name: str, *args, **options) -> Function:
    return lambda torch, *tensors: resolve(torch.nn.functional, name)(*tensors, *args, **options)


ACTIVATIONS = {
    "relu": {}, "silu": {}, "gelu": {}, "sigmoid": {}, "tanh": {}, "elu": {}, "softplus": {}, "leaky_relu": {},
    "relu6": {},
    "hardtanh": {}, "hardswish": {}, "hardsigmoid": {}, "mish": {}, "selu": {}, "celu": {}, "logsigmoid": {},
    "softsign": {},
    "tanhshrink": {}, "softshrink": {}, "hardshrink": {},
}  # fmt: skip
VARIANTS = {
    "gelu_tanh": ("gelu", {"approximate": "tanh"}), "elu_alpha": ("elu", {"alpha": 0.5}),
    "softplus_beta": ("softplus", {"beta": 2.0, "threshold": 3.0}),
    "leaky_relu_slope": ("leaky_relu", {"negative_slope": 0.2}),
    "hardtanh_range": ("hardtanh", {"min_val": -0.5, "max_val": 0.7}), "celu_alpha": ("celu", {"alpha": 0.7}),
    "softshrink_lambda": ("softshrink", {"lambd": 0.3}), "threshold": ("threshold", {"threshold": 0.2, "value": -1.0}),
}  # fmt: skip
# torch's gradients at NaN, which depend on where in the tensor it stands, or are numbers where all else is NaN.
ODD = {"relu6", "hardtanh", "hardtanh_range", "hardshrink", "softshrink", "softshrink_lambda", "hardswish"}
for name, (function, options) in {**{name: (name, {}) for name in ACTIVATIONS}, **VARIANTS}.items():
    case(name, functional(function, **options), uniform(3, 35, low=-4, high=4), tolerance="pointwise")
    odd = (math.inf,) if name == "gelu" else ()  # torch's is NaN there.
    case(f"{name}_edges", functional(function, **options), edges(but=odd), grad=name not in ODD, tolerance="pointwise")
    for dtype in ("float16", "bfloat16"):
        case(f"{name}_edges_{dtype}", functional(function, **options), edges(dtype, but=odd), grad=False,
             tolerance="pointwise")  # fmt: skip
    case(f"{name}_float16", functional(function, **options), uniform(9, low=-4, high=4, dtype="float16"),
         tolerance="pointwise")  # fmt: skip
for name in ("relu", "elu", "leaky_relu", "silu", "hardtanh", "relu6"):
    case(f"{name}_in_place", lambda torch, a, f=name: resolve(torch.nn.functional, f)(a * 1, inplace=True), randn(9))
case("prelu", functional("prelu"), randn(2, 3, 4), uniform(3))
case("prelu_shared", functional("prelu"), randn(2, 3, 4), uniform(1))
case("prelu_edges", lambda torch, a, w: torch.nn.functional.prelu(a[None], w), *edge_pairs(), tolerance="pointwise")
case("glu", functional("glu"), randn(3, 8))
case("glu_edges", lambda torch, a, b: torch.nn.functional.glu(torch.stack([a, b]), 0), *edge_pairs(),
     tolerance="pointwise")  # fmt: skip
case("glu_dim", functional("glu", dim=0), randn(4, 3))
case("swiglu", lambda torch, a, b: torch.nn.functional.silu(a) * b, randn(3, 8), randn(3, 8))
for name in ("softmax", "log_softmax", "softmin"):
    for dim in (0, 1, -1):
        case(f"{name}_dim{dim}", functional(name, dim=dim), randn(4, 5, 6))
case(
    "softmax_dtype",
    lambda torch, a: torch.nn.functional.softmax(a, -1, dtype=torch.float32),
    randn(3, 9, dtype="float16"),
)
case("normalize", functional("normalize"), randn(4, 5))
case("normalize_options", functional("normalize", p=1.0, dim=0, eps=1e-3), uniform(4, 5, low=0.1, high=1))
case("normalize_zero_row", functional("normalize", dim=-1), given([[0.0, 0.0], [3.0, 4.0]]), grad=False)
case("cosine_similarity", functional("cosine_similarity", dim=1), randn(4, 5), randn(4, 5))
case("pairwise_distance", functional("pairwise_distance"), randn(4, 5), randn(4, 5))
for training in (False, True):
    case(f"dropout_none_{training}", functional("dropout", p=0.0, training=training), randn(4, 5))
case("dropout_eval", functional("dropout", p=0.5, training=False), randn(4, 5))
case("dropout_all", functional("dropout", p=1.0, training=True), randn(4, 5))


def dropout_share(torch, a):
    torch.manual_seed(0)
    out = torch.nn.functional.dropout(torch.ones(100, 100), 0.25)
    kept = (out != 0).float().mean().item()
    return abs(kept - 0.75) < 0.03, out.unique()


case("dropout_share", dropout_share, randn(1), grad=False)

# Norms.
for shape, normalized in {"rows": ((4, 65), (65,)), "3d": ((2, 3, 8), (8,)), "two_axes": ((3, 4, 5), (4, 5))}.items():
    outer, inner = normalized
    case(f"layer_norm_{shape}", lambda torch, x, w, b: torch.nn.functional.layer_norm(x, w.shape, w, b), randn(*outer),
         randn(*inner), randn(*inner))  # fmt: skip
    case(f"layer_norm_{shape}_plain", functional("layer_norm", inner, eps=1e-3), randn(*outer))
    case(f"rms_norm_{shape}", lambda torch, x, w: torch.nn.functional.rms_norm(x, w.shape, w, 1e-5), randn(*outer),
         randn(*inner))  # fmt: skip
    case(f"rms_norm_{shape}_plain", functional("rms_norm", inner), randn(*outer))
case("layer_norm_weight_only", lambda torch, x, w: torch.nn.functional.layer_norm(x, (9,), w), randn(4, 9), randn(9))
case("layer_norm_offset", functional("layer_norm", (64,)), uniform(4, 64, low=99, high=101), tolerance="model")
case("layer_norm_float16", functional("layer_norm", (64,)), randn(4, 64, dtype="float16"))
case("rms_norm_float16", functional("rms_norm", (64,)), randn(4, 64, dtype="float16"))
for size in (1, 7, 255, 256, 257, 768, 1024, 4096, 12288):
    case(f"layer_norm_of_{size}", lambda torch, x, w, b: torch.nn.functional.layer_norm(x, w.shape, w, b),
         randn(3, size), randn(size), randn(size))  # fmt: skip
for name, norm in {
    "layer": lambda torch, x, w, b: torch.nn.functional.layer_norm(x, w.shape, w, b),
    "rms": lambda torch, x, w, b: torch.nn.functional.rms_norm(x, w.shape, w, 1e-5) + b,
}.items():
    case(f"{name}_norm_of_a_residual", lambda torch, x, r, c, w, b, norm=norm: (x + r, norm(torch, x + r + c, w, b)),
         randn(4, 65), randn(4, 65), randn(65), randn(65), randn(65))  # fmt: skip
for groups in (1, 2, 6):
    case(f"group_norm_{groups}", lambda torch, x, w, b, g=groups: torch.nn.functional.group_norm(x, g, w, b),
         randn(3, 6, 4, 5), randn(6), randn(6))  # fmt: skip
case("instance_norm", functional("instance_norm"), randn(2, 3, 4, 5))
for shape in ((6, 3), (4, 3, 5), (2, 3, 4, 5)):
    rank, stats = len(shape), (randn(3, grad=False), uniform(3, low=0.5, high=2, grad=False))
    affine = (randn(3), randn(3))

    def batch_norm_eval(torch, x, mean, var, w, b):
        return torch.nn.functional.batch_norm(x, mean, var, w, b, training=False)

    def batch_norm_train(torch, x, mean, var, w, b):
        mean, var = mean.clone(), var.clone()
        return torch.nn.functional.batch_norm(x, mean, var, w, b, training=True, momentum=0.3), mean, var

    case(f"batch_norm_eval_{rank}d", batch_norm_eval, randn(*shape), *stats, *affine)
    case(f"batch_norm_train_{rank}d", batch_norm_train, randn(*shape), *stats, *affine)
case("batch_norm_no_statistics", functional("batch_norm", None, None, training=True), randn(6, 3))

# Convolution: (input shape, weight shape, options).
CONV1D = {
    "plain": ((2, 3, 9), (4, 3, 3), {}), "stride": ((2, 3, 10), (4, 3, 3), {"stride": 2}),
    "padding": ((2, 3, 9), (4, 3, 3), {"padding": 1}), "dilation": ((2, 3, 11), (4, 3, 3), {"dilation": 2}),
    "groups": ((2, 4, 9), (6, 2, 3), {"groups": 2}), "depthwise": ((2, 4, 9), (4, 1, 3), {"groups": 4}),
    "one": ((2, 3, 9), (5, 3, 1), {}), "whole": ((2, 3, 9), (5, 3, 9), {}),
    "same": ((2, 3, 9), (4, 3, 4), {"padding": "same"}),
    "valid": ((2, 3, 9), (4, 3, 4), {"padding": "valid"}), "unbatched": ((3, 9), (4, 3, 3), {}),
    "all": ((2, 4, 17), (6, 2, 3), {"stride": 2, "padding": 2, "dilation": 3, "groups": 2}),
}  # fmt: skip
CONV2D = {
    "plain": ((2, 3, 7, 8), (4, 3, 3, 3), {}), "stride": ((2, 3, 9, 8), (4, 3, 3, 3), {"stride": 2}),
    "stride_pair": ((2, 3, 9, 8), (4, 3, 3, 3), {"stride": (2, 1)}),
    "padding": ((2, 3, 7, 8), (4, 3, 3, 3), {"padding": 1}),
    "padding_pair": ((1, 2, 5, 6), (3, 2, 3, 5), {"padding": (1, 2)}), "rectangle": ((2, 3, 7, 8), (4, 3, 1, 4), {}),
    "dilation": ((1, 2, 9, 9), (3, 2, 3, 3), {"dilation": 2}), "groups": ((2, 4, 6, 6), (6, 2, 3, 3), {"groups": 2}),
    "depthwise": ((2, 4, 6, 6), (8, 1, 3, 3), {"groups": 4, "padding": 1}),
    "depthwise_stride": ((2, 4, 8, 7), (4, 1, 3, 3), {"groups": 4, "padding": 1, "stride": 2}),
    "depthwise_all": ((1, 3, 11, 13), (3, 1, 3, 2), {"groups": 3, "padding": (0, 1), "stride": (3, 2), "dilation": 2}),
    "depthwise_large": ((1, 2, 9, 9), (2, 1, 7, 7), {"groups": 2, "padding": 3}),
    "one_channel": ((2, 1, 6, 6), (5, 1, 3, 3), {"padding": 1}), "one": ((2, 8, 5, 5), (6, 8, 1, 1), {}),
    "patches": ((2, 3, 8, 8), (5, 3, 4, 4), {"stride": 4}), "same": ((1, 2, 6, 7), (3, 2, 4, 3), {"padding": "same"}),
    "unbatched": ((3, 7, 8), (4, 3, 3, 3), {}), "whole": ((2, 3, 4, 4), (5, 3, 4, 4), {}),
    "all": ((2, 4, 11, 12), (6, 2, 3, 3), {"stride": 2, "padding": 2, "dilation": 2, "groups": 2}),
    "one_channel_large": ((4, 1, 14, 14), (8, 1, 3, 3), {}), "wide": ((1, 16, 7, 7), (32, 16, 3, 3), {"padding": 1}),
}  # fmt: skip
for function, table in {"conv1d": CONV1D, "conv2d": CONV2D}.items():
    for name, (x, weight, options) in table.items():
        convolve = functional(function, **options)
        tensors = (randn(*x), randn(*weight), randn(weight[0]))
        case(f"{function}_{name}", convolve, *tensors, tolerance="contraction", terms=math.prod(weight) * 2)
    x, weight, _ = table["plain"]
    case(
        f"{function}_no_bias",
        functional(function, padding=1),
        randn(*x),
        randn(*weight),
        tolerance="contraction",
        terms=60,
    )
case("conv3d_all", functional("conv3d", stride=2, padding=(1, 0, 2), dilation=(1, 2, 1), groups=2),
     randn(2, 4, 5, 6, 7), randn(6, 2, 2, 3, 3), randn(6), tolerance="contraction", terms=72)  # fmt: skip
CONVT = {"plain": {}, "stride": {"stride": 2}, "padding": {"stride": 2, "padding": 1, "output_padding": 1}}
for name, options in CONVT.items():
    case(f"conv_transpose2d_{name}", functional("conv_transpose2d", **options), randn(2, 3, 4, 5), randn(3, 4, 3, 3),
         randn(4), tolerance="contraction", terms=60)  # fmt: skip
case("unfold", functional("unfold", (2, 3), padding=1), randn(2, 3, 4, 5))

# Pooling.
POOLS = {
    "plain": ({"kernel_size": 2}, (2, 3, 6, 8)), "ragged": ({"kernel_size": 2}, (2, 3, 7, 9)),
    "stride": ({"kernel_size": 3, "stride": 2}, (2, 3, 7, 9)),
    "padding": ({"kernel_size": 3, "stride": 2, "padding": 1}, (2, 3, 7, 8)),
    "pair": ({"kernel_size": (2, 3), "stride": (1, 2)}, (1, 2, 6, 8)),
    "overlap": ({"kernel_size": 3, "stride": 1}, (1, 2, 6, 6)),
    "ceil": ({"kernel_size": 2, "stride": 2, "ceil_mode": True}, (1, 2, 5, 7)),
    "unbatched": ({"kernel_size": 2}, (3, 4, 4)),
}  # fmt: skip
for name, (options, shape) in POOLS.items():
    case(f"max_pool2d_{name}", functional("max_pool2d", **options), distinct(*shape))
    case(f"avg_pool2d_{name}", functional("avg_pool2d", **options), randn(*shape))
case("max_pool2d_dilation", functional("max_pool2d", 2, stride=1, dilation=2), distinct(1, 2, 6, 6))
case("max_pool2d_negative", functional("max_pool2d", 3, stride=2, padding=1), uniform(1, 2, 6, 6, low=-3, high=-1))
case("max_pool2d_indices", functional("max_pool2d", 2, return_indices=True), distinct(1, 2, 6, 6))
case(
    "avg_pool2d_exclude_pad",
    functional("avg_pool2d", 3, stride=2, padding=1, count_include_pad=False),
    randn(1, 2, 6, 7),
)
case("avg_pool2d_divisor", functional("avg_pool2d", 2, divisor_override=3), randn(1, 2, 6, 6))
case("max_pool1d", functional("max_pool1d", 3, stride=2, padding=1), distinct(2, 3, 9))
case("max_pool3d", functional("max_pool3d", 2, stride=1, padding=1), distinct(1, 2, 4, 5, 3))
case("avg_pool3d", functional("avg_pool3d", 2, stride=1, padding=1), randn(1, 2, 4, 5, 3))
case("avg_pool1d", functional("avg_pool1d", 3, stride=2, padding=1), randn(2, 3, 9))
for size in (1, (2, 3), (None, 2), 4, 8):
    text = "x".join(map(str, size)) if isinstance(size, tuple) else str(size)
    case(f"adaptive_avg_pool2d_{text}", functional("adaptive_avg_pool2d", size), randn(2, 3, 8, 6))
    case(f"adaptive_max_pool2d_{text}", functional("adaptive_max_pool2d", size), distinct(2, 3, 8, 6))
case("adaptive_avg_pool1d", functional("adaptive_avg_pool1d", 3), randn(2, 3, 8))

SCALES = {
    "nearest": {"scale_factor": 2, "mode": "nearest"}, "nearest_size": {"size": (5, 3)},
    "bilinear": {"scale_factor": 2, "mode": "bilinear"}, "bilinear_size": {"size": (7, 3), "mode": "bilinear"},
    "bilinear_corners": {"size": (7, 9), "mode": "bilinear", "align_corners": True},
}  # fmt: skip
for name, options in SCALES.items():
    case(f"interpolate_{name}", functional("interpolate", **options), randn(2, 3, 4, 5))
case("pixel_shuffle", functional("pixel_shuffle", 2), randn(2, 8, 3, 4))

# Embedding.
case("embedding", functional("embedding"), integers(3, 5, low=0, high=7), randn(7, 4))
case("embedding_int32", functional("embedding"), integers(3, low=0, high=7, dtype="int32"), randn(7, 4))
case("embedding_zero_dim", functional("embedding"), integers(low=0, high=7), randn(7, 4))
case("embedding_padding", functional("embedding", padding_idx=2), integers(9, low=0, high=5), randn(5, 4))
case("embedding_many_repeats", functional("embedding"), integers(300, low=0, high=3), randn(3, 4))
# Its gradient goes into the one that the product makes.
case("embedding_tied", lambda torch, i, w: torch.nn.functional.linear(torch.nn.functional.embedding(i, w), w).sin(),
     integers(67, low=0, high=3000), uniform(3000, 44, low=-0.1, high=0.1), tolerance="reduction")  # fmt: skip
case("embedding_empty", functional("embedding"), integers(0, 3), randn(7, 4))
case("one_hot", functional("one_hot", 6), integers(7, low=0, high=6))

# Attention: query, key and value shapes, options.
QKV = ((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 8))
SELF = ((2, 3, 6, 8),) * 3
ATTENTION = {
    "plain": (QKV, {}), "causal": (SELF, {"is_causal": True}), "scale": (QKV, {"scale": 0.3}),
    "3d": (((3, 5, 8),) * 3, {}),
    "2d": (((5, 8), (7, 8), (7, 8)), {}), "wide_value": (((2, 5, 8), (2, 7, 8), (2, 7, 4)), {}), "one_query": (
        ((2, 3, 1, 8), (2, 3, 9, 8), (2, 3, 9, 8)), {}), "causal_rectangle": (QKV, {"is_causal": True}),
    "groups": (((2, 6, 5, 8), (2, 2, 7, 8), (2, 2, 7, 8)), {"enable_gqa": True}),
    "groups_causal": (((1, 4, 6, 8), (1, 1, 6, 8), (1, 1, 6, 8)), {"enable_gqa": True, "is_causal": True}),
    "long": (((1, 2, 65, 16),) * 3, {"is_causal": True}),
    "broadcast_batch": (((2, 3, 5, 8), (1, 3, 7, 8), (1, 3, 7, 8)), {}),
    "one_query_of_many": (((1, 2, 1, 8), (1, 2, 777, 8), (1, 2, 777, 8)), {}),
}  # fmt: skip
for name, (shapes, options) in ATTENTION.items():
    case(
        f"attention_{name}", functional("scaled_dot_product_attention", **options), *(randn(*shape) for shape in shapes)
    )
for size in (8, 64, 80, 96, 128, 256):
    case(
        f"attention_head_of_{size}", functional("scaled_dot_product_attention"), *(randn(2, 9, size) for _ in range(3))
    )
MASKS = {
    "bool": bools(2, 3, 5, 7, share=0.7), "bool_broadcast": given([[True] * 6 + [False]] * 5, "bool"),
    "added": randn(5, 7),
    "added_batch": randn(2, 1, 5, 7), "nothing_seen": given([[False] * 7] + [[True] * 7] * 4, "bool"),
}  # fmt: skip
for name, mask in MASKS.items():
    attend = functional("scaled_dot_product_attention")  # The mask is its fourth argument.
    case(f"attention_mask_{name}", attend, *(randn(*shape) for shape in QKV), mask, grad=name != "nothing_seen")


def heads_apart(torch, x, q, k, v, out, bias):
    """As an image encoder pools: projections as wide as x that are apart, and results of another width."""
    return torch.nn.functional.multi_head_attention_forward(
        x[:1], x, x, 8, 2, None, bias, None, None, False, 0.0, out, None, use_separate_proj_weight=True,
        q_proj_weight=q, k_proj_weight=k, v_proj_weight=v,
    )[0]  # fmt: skip


def heads_together(torch, x, weight, out, bias):
    forward = torch.nn.functional.multi_head_attention_forward
    return forward(x, x, x, 8, 2, weight, bias, None, None, False, 0.0, out, None, need_weights=False)[0]


def heads_given(torch, x, weight, out, k, v):
    """Keys and values that were projected before, of another length."""
    forward = torch.nn.functional.multi_head_attention_forward
    return forward(x, x, x, 8, 2, weight, None, None, None, True, 0.0, out, None, static_k=k, static_v=v)


case("heads_given", heads_given, randn(5, 3, 8), randn(24, 8), randn(8, 8), randn(6, 4, 4), randn(6, 4, 4))
case("heads_apart", heads_apart, randn(5, 3, 8), *(randn(8, 8) for _ in range(3)), randn(6, 8), randn(24))
case("heads_together", heads_together, randn(5, 3, 8), randn(24, 8), randn(8, 8), randn(24))


def _grouped(torch, a, b, *ends):
    offs = torch.tensor(ends, dtype=torch.int32, device=a.device) if ends else None
    return torch.nn.functional.grouped_mm(a, b, offs=offs)


case("grouped_mm_rows", lambda torch, a, b: _grouped(torch, a, b, 3, 3, 8), randn(8, 16), randn(3, 16, 8))
case("grouped_mm_columns", lambda torch, a, b: _grouped(torch, a, b, 4, 4, 8), randn(3, 16, 8), randn(8, 8))
case("grouped_mm_sums", lambda torch, a, b: _grouped(torch, a, b, 4, 8, 8), randn(16, 8), randn(8, 16))
case("grouped_mm_batches", _grouped, randn(3, 8, 16), randn(3, 16, 8))
