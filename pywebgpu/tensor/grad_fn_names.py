"""What PyTorch calls the gradient of a node, "AddBackward0", told from the function that was called or from its ops.

Names stand here as PyTorch's operators have them; behind a point, the number of the gradient where it is not 0.
"""

from __future__ import annotations

from pywebgpu.ir.graph import OUTPUT, Custom, Leaf, Node
from pywebgpu.ir.surface import RECORDS

# Ops that PyTorch calls otherwise.
OPS = {
    "cast": "to_copy", "conv": "convolution", "copy": "clone", "layer_norm": "native_layer_norm", "smallest": "min",
    "take": "index", "scan": "cumsum", "group_norm": "native_group_norm", "class_entropy": "nll_loss",
    "picked_loss": "nll_loss", "squared_error": "mse_loss", "smooth_error": "smooth_l1_loss",
    "logsigmoid": "log_sigmoid", "largest": "max", "clamp": "clamp.1", "trunc_divide": "div.2", "modulus": "abs",
    "batch_norm_fixed": "native_batch_norm", "lstm_steps": "mkldnn_rnn_layer",
}  # fmt: skip
# Functions that were called, where their last op is not what PyTorch names: those of other names there, then those of
# the same.
FUNCTIONS = {
    "_angle": "angle", "_polar": "polar", "_sgn": "sgn", "batch_norm": "native_batch_norm", "clamp": "clamp.1",
    "complex_to_complex": "fft_c2c", "complex_to_real": "fft_c2r", "conv_transpose": "convolution",
    "cosine_embedding_loss": "mean", "fold": "col2im", "inner": "view", "instance_norm": "view",
    "interpolate": "mean.1", "kron": "_unsafe_view", "logsigmoid": "log_sigmoid", "lp_pool": "pow",
    "norm": "linalg_vector_norm", "pad": "constant_pad_nd", "pad_constant": "constant_pad_nd",
    "pairwise_distance": "norm.1", "pow_": "pow", "prelu": "prelu_kernel", "quantile": "squeeze.4",
    "real_to_complex": "fft_r2c", "repeat_interleave": "view", "rms_norm": "mul", "rolled": "roll",
    "scaled_dot_product_attention": "scaled_dot_product_flash_attention_for_cpu", "selu": "elu",
    "squeeze_dim": "squeeze.1", "take_along_dim": "gather", "tensordot": "view", "unfold": "im2col",
}  # fmt: skip
SAME = """
    adaptive_avg_pool adaptive_max_pool addbmm addcdiv addcmul addmm addmv addr amax amin aminmax avg_pool baddbmm
    binary_cross_entropy binary_cross_entropy_with_logits bmm celu channel_shuffle clamp_max clamp_min cummax cummin
    cumprod diag_embed dot elu embedding expand gather glu hardshrink hardsigmoid hardswish heaviside huber_loss
    index_add index_copy index_fill index_reduce index_select kthvalue leaky_relu lerp logcumsumexp logsumexp
    masked_scatter masked_select max_pool mode mse_loss multi_margin_loss mv nan_to_num nansum nll_loss permute
    pixel_shuffle pixel_unshuffle prod repeat scatter scatter_add scatter_reduce select smooth_l1_loss
    soft_margin_loss softshrink sort split squeeze stack std std_mean t take threshold topk trace transpose unbind
    unsqueeze var var_mean view
"""
FUNCTIONS |= {name: name for name in SAME.split()}
FUNCTIONS |= {source.__name__: surface.grad_fn for source, surface in RECORDS.items() if surface.grad_fn}
POOLS = {
    "max_pool": "max_pool{}d_with_indices", "avg_pool": "avg_pool{}d", "adaptive_avg_pool": "adaptive_avg_pool{}d",
    "adaptive_max_pool": "adaptive_max_pool{}d",
}  # fmt: skip
FACTORS = {
    "SolveBackward": "solve_ex", "DetBackward": "det", "SlogdetBackward": "slogdet", "CholeskyBackward": "cholesky_ex",
    "QRBackward": "qr", "SVDBackward": "svd", "SingularValuesBackward": "svd", "EighBackward": "eigh",
    "EigBackward": "eig", "PinvBackward": "pinv", "SolveTriangularBackward": "solve_triangular",
}  # fmt: skip
# What has a name of its own kind.
UNNUMBERED = {
    "copy_": "CopyBackwards", "floor_divide": "NotImplemented", "heaviside": "NotImplemented",
    "write_slice": "CopySlices",
}  # fmt: skip
CELLS = {"lstm_steps": "mul", "gru_steps": "add", "rnn_tanh_steps": "tanh", "rnn_relu_steps": "relu"}
TENSORS = {"lerp": 2, "masked_fill": 1}  # where they read a tensor or a number
ATEN = "aten::"  # before what is PyTorch's name already


def name(node: Node) -> str:
    """What PyTorch calls the gradient of an op: AddBackward0."""
    while node.op.name == "alias" and node.inputs:
        (node,) = node.inputs
    node_name = _function(node) or (_function(node.inputs[0]) if node.op.name == "copy" and node.inputs else None)
    node = value_of(node)
    if node_name is None and isinstance(node.op, Custom):
        own = node.attrs.get("call") if node.op.name in FACTORS else None
        if own is None or own.function.__module__ != "pywebgpu.linalg.factorization":
            return node.op.name
        node_name = f"linalg_{FACTORS[node.op.name]}"
    node_name = node_name or _function(node) or pattern(node) or OPS.get(node.op.name) or node.op.name
    if node_name in UNNUMBERED:
        return UNNUMBERED[node_name]
    base, _, number = node_name.partition(".")
    return f"{''.join(part.title() for part in base.split('_'))}Backward{number or 0}"


def _function(node: Node) -> str | None:
    """PyTorch's name of the function that a node is the result of; None where its ops tell it."""
    called = getattr(node, "function", "")
    if called.startswith(ATEN):
        return called.removeprefix(ATEN)
    if called == "cell":
        return CELLS.get(value_of(node).op.name)
    if called == "diag":
        return "diag_embed" if len(node.spec.shape) == 2 else "diagonal"
    if called in TENSORS and len(node.inputs) == 3 and is_read(node.inputs[TENSORS[called]]):
        return f"{called}.1"
    if called == "cross_entropy" and node.op.name == "class_entropy" and _rank(node, 0) > 2:
        return "nll_loss2d"
    if called in POOLS:
        rank = len(node.spec.shape) - 2
        if rank == 1:
            return "squeeze.1"
        if called == "adaptive_avg_pool" and all(n == 1 for n in node.spec.shape[2:]):
            return "mean.1"
        return POOLS[called].format(rank)
    return FUNCTIONS.get(called)


def _rank(node: Node, input_index: int) -> int:
    """How many axes an input has; 0 where there is none, or none any more."""
    return len(node.inputs[input_index].spec.shape) if input_index < len(node.inputs) else 0


def value_of(node: Node) -> Node:
    """The op behind a node: a reduction's result is copied to memory of its own, and is one of several values."""
    for _ in range(3):
        if node.op is OUTPUT and node.inputs:
            node = node.inputs[0]
        elif node.op.name == "copy" and node.inputs and node.inputs[0].op.name in ("reshape", "permute"):
            inner = node.inputs[0]
            if inner.inputs and isinstance(inner.inputs[0].op, Leaf | Custom):
                return node
            if inner.inputs and inner.inputs[0].op.name == "alias":
                return node
            node = inner.inputs[0] if inner.inputs else node
    return node


def _op(node: Node, *path: int) -> str:
    """The name of the op at a path of inputs; "" where there is none."""
    for input_index in path:
        if input_index >= len(node.inputs):
            return ""
        node = node.inputs[input_index]
    return node.op.name


def pattern(node: Node) -> str | None:
    """The name of a function of PyTorch's that is several ops here, or that other ops share; None of any other."""
    op, inputs, shape = node.op.name, node.inputs, node.spec.shape
    if op in ("sum", "float_sum", "max", "min", "mean"):
        is_whole = all(n == 1 for n in shape)
        title = "sum" if op == "float_sum" else op
        return f"{title}.1" if is_whole is (op in ("max", "min")) else title
    if op == "div" and _op(node, 0) == "sum":
        return _mean(node)
    if op == "div" and (_op(node, 0), _op(node, 1, 0)) == ("exp", "sum"):
        return "softmax"
    if op == "sub" and (_op(node, 0), _op(node, 1, 0)) == ("sub", "log"):
        return "log_softmax"
    if op in ("sub", "div") and inputs and not is_read(inputs[0]):
        return "rsub.1" if op == "sub" else "mul"
    if op in ("pow", "fmod", "remainder") and len(inputs) == 2 and is_read(inputs[1]):
        return f"{op}.1"
    if op in ("matmul", "linear"):
        if len(inputs) > 2:
            return "addmm" if len(shape) == 2 else "view"
        return {1: "squeeze.4" if op == "linear" else "dot", 2: "mm"}.get(len(shape), "unsafe_view")
    if op == "add" and (_op(node, 0), _op(node, 1)) == ("matmul", "expand"):
        return "addmm"
    if op == "where" and len(inputs) == 3:
        if _op(node, 0) == "le" and _op(node, 0, 0) == "iota":
            return "triu" if inputs[2].requires else "tril"
        if _op(node, 0, 0) == "random_bits":
            return "mul"
        if isinstance(inputs[1].op, Leaf) and not inputs[1].requires:
            return "masked_fill"
    return _moved(node)


def _mean(node: Node) -> str:
    square = node.inputs[0].inputs[0]
    if _op(node, 0, 0, 0) == "sub" and square.op.name == "mul" and square.inputs[0] is square.inputs[1]:
        return "var" if _op(square, 0, 1) == "expand" else "mse_loss"
    rows = square.inputs[0] if square.op.name == "reshape" and square.inputs else square
    if rows.op.name == "sub" and _op(rows, 0) == "log":
        return "nll_loss"
    return "mean" if all(n == 1 for n in node.spec.shape) else "mean.1"


def _moved(node: Node) -> str | None:
    """The name of a view."""
    if node.op.name == "permute":
        order = node.attrs["order"]
        moved = sum(axis != to for axis, to in enumerate(order))
        return "t" if order == (1, 0) else "transpose" if moved == 2 else None
    if node.op.name == "reshape" and node.inputs:
        before, after = node.inputs[0].spec.shape, node.spec.shape
        if [n for n in before if n != 1] == [n for n in after if n != 1] and len(before) != len(after):
            if len(before) < len(after):
                return "unsqueeze"
            return "select" if node.inputs[0].op.name == "slice" else "squeeze"
        return "view"
    return None


def is_read(node: Node) -> bool:
    """Whether a function of PyTorch's counts it among its inputs: tensors, and no numbers."""
    return not isinstance(node.op, Leaf) or node.requires or node.op.name == "data"
