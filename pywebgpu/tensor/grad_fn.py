"""What `grad_fn` shows: the graph by PyTorch's names, for programs that draw it or print tensors.

A function of PyTorch's may be several nodes here, so names are told from what a node is made of, and the graph of a
program is PyTorch's as far as these patterns go; any other op has its own name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pywebgpu.ir.graph import OUTPUT, Composite, Custom, Leaf, Node
from pywebgpu.tensor.grad_accumulator import FunctionHooks, GradAccumulator, Hook, RemovableHandle

if TYPE_CHECKING:
    from pywebgpu.tensor.base import TensorBase

Wrap = Callable[[Node], Any]

# The names of ops that PyTorch calls otherwise. Names without a number get 0.
NAMES = {
    "cast": "ToCopy",
    "conv": "Convolution",
    "copy": "Clone",
    "layer_norm": "NativeLayerNorm",
    "log1p": "Log1P",
    "smallest": "Min",
    "take": "Index",
    "scan": "Cumsum",
    "group_norm": "NativeGroupNorm",
    "class_entropy": "NllLoss",
    "picked_loss": "NllLoss",
    "squared_error": "MseLoss",
    "smooth_error": "SmoothL1Loss",
    "logsigmoid": "LogSigmoid",
}
# The same by the function that was called, where its last op is not what PyTorch names: a name of its own, or else the
# function's in PyTorch's spelling.
FUNCTIONS = {
    "adaptive_avg_pool": "AdaptiveAvgPool2D", "avg_pool": "AvgPool2D", "batch_norm": "NativeBatchNorm",
    "clamp": "Clamp1", "conv_transpose": "Convolution", "logsigmoid": "LogSigmoid",
    "max_pool": "MaxPool2DWithIndices", "norm": "LinalgVectorNorm", "pad": "ConstantPadNd", "_polar": "Polar",
    "prelu": "PreluKernel", "real_to_complex": "FftR2C", "rms_norm": "Mul", "scatter": "Scatter1",
    "squeeze_dim": "Squeeze1",
}  # fmt: skip
SPELLED = """
    addcdiv addcmul baddbmm binary_cross_entropy binary_cross_entropy_with_logits bmm clamp_max clamp_min
    cumprod dot elu embedding expand gather glu huber_loss index_add index_select leaky_relu lerp logsumexp
    masked_select mse_loss multi_margin_loss mv nll_loss permute pixel_shuffle repeat scatter_add select smooth_l1_loss
    soft_margin_loss sort split squeeze stack std t topk transpose unbind unsqueeze var view
"""
FUNCTIONS |= {name: "".join(part.capitalize() for part in name.split("_")) for name in SPELLED.split()}
FACTORS = {
    "SolveBackward": "SolveEx", "DetBackward": "Det", "SlogdetBackward": "Slogdet", "CholeskyBackward": "CholeskyEx",
    "QRBackward": "Qr", "SVDBackward": "Svd", "SingularValuesBackward": "Svd", "EighBackward": "Eigh",
    "EigBackward": "Eig", "PinvBackward": "Pinv", "SolveTriangularBackward": "SolveTriangular",
}  # fmt: skip
PASSING = ("alias", "expand")  # PyTorch has no function there: a view of all of it, and broadcasting


def name(node: Node) -> str:
    """What torch calls the gradient of an op: AddBackward0."""
    while node.op.name == "alias" and node.inputs:
        (node,) = node.inputs
    found = FUNCTIONS.get(getattr(node, "function", ""))
    node = _value(node)
    if isinstance(node.op, Custom):
        own = node.attrs.get("call") if node.op.name in FACTORS else None
        is_own = own is not None and own.function.__module__ == "pywebgpu.factorization"
        return f"Linalg{FACTORS[node.op.name]}Backward0" if is_own else node.op.name
    if node.op.name == "write_slice":
        return "CopySlices"
    found = (
        found
        or FUNCTIONS.get(getattr(node, "function", ""))
        or _pattern(node)
        or NAMES.get(node.op.name)
        or "".join(p.capitalize() for p in node.op.name.split("_") if p)
    )
    base, number = (found[:-1], found[-1]) if found[-1:].isdigit() else (found, "0")
    return f"{base}Backward{number}"


def _value(node: Node) -> Node:
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
    for at in path:
        if at >= len(node.inputs):
            return ""
        node = node.inputs[at]
    return node.op.name


def _pattern(node: Node) -> str | None:
    """The name of a function of PyTorch's that is several ops here, or that other ops share; None of any other."""
    op, inputs, shape = node.op.name, node.inputs, node.spec.shape
    if op in ("sum", "float_sum", "max", "min"):
        is_whole = all(n == 1 for n in shape)
        return ("Sum" + "01"[not is_whole]) if op in ("sum", "float_sum") else op.capitalize() + "10"[not is_whole]
    if op == "mean":
        return "Mean0" if all(n == 1 for n in shape) else "Mean1"
    if op == "largest":
        return "Max0"
    if op == "div" and _op(node, 0) == "sum":
        return _mean(node)
    if op == "div" and (_op(node, 0), _op(node, 1, 0)) == ("exp", "sum"):
        return "Softmax"
    if op == "sub" and (_op(node, 0), _op(node, 1, 0)) == ("sub", "log"):
        return "LogSoftmax"
    if op == "sub" and inputs and isinstance(inputs[0].op, Leaf) and not inputs[0].requires:
        return "Rsub1"
    if op == "mul" and len(inputs) == 2 and inputs[0] is inputs[1]:
        return "Pow"
    if op == "pow" and len(inputs) == 2 and not isinstance(inputs[1].op, Leaf):
        return "Pow1"
    if op in ("matmul", "linear"):
        if len(inputs) > 2:
            return "Addmm" if len(shape) == 2 else "View"
        return {1: "Dot", 2: "Mm"}.get(len(shape), "UnsafeView")
    if op == "add" and (_op(node, 0), _op(node, 1)) == ("matmul", "expand"):
        return "Addmm"
    if op == "where" and len(inputs) == 3:
        if _op(node, 0) == "le" and _op(node, 0, 0) == "iota":
            return "Triu" if inputs[2].requires else "Tril"
        if _op(node, 0, 0) == "random_bits":
            return "Mul"
        if isinstance(inputs[1].op, Leaf) and not inputs[1].requires:
            return "MaskedFill"
    if op == "clamp":
        return "Clamp1"
    return _moved(node)


def _mean(node: Node) -> str:
    square = node.inputs[0].inputs[0]
    if _op(node, 0, 0, 0) == "sub" and square.op.name == "mul" and square.inputs[0] is square.inputs[1]:
        return "Var" if _op(square, 0, 1) == "expand" else "MseLoss"
    rows = square.inputs[0] if square.op.name == "reshape" and square.inputs else square
    if rows.op.name == "sub" and _op(rows, 0) == "log":
        return "NllLoss"
    return "Mean0" if all(n == 1 for n in node.spec.shape) else "Mean1"


def _reads(node: Node) -> tuple[Node, ...]:
    """What the function of PyTorch's reads, past the ops that it is made of."""
    if type(node.op) is Composite:
        return node.inputs
    match _pattern(node):
        case "Softmax":
            return node.inputs[0].inputs[0].inputs[:1]
        case "LogSoftmax":
            return node.inputs[0].inputs[:1]
        case "NllLoss":
            rows = node.inputs[0].inputs[0]
            rows = rows if rows.op.name == "sub" else rows.inputs[0]
            for _ in range(4):  # logarithm, sum, exponential, difference from the largest
                rows = rows.inputs[0] if rows.inputs else rows
            return rows.inputs[:1]
        case "MseLoss":
            return node.inputs[0].inputs[0].inputs[0].inputs
        case "Var" | "Mean0" | "Mean1" as title:
            inner = node.inputs[0].inputs
            return inner[0].inputs[0].inputs[:1] if title == "Var" else inner
        case "Addmm" if node.op.name == "add":
            return (node.inputs[1], *node.inputs[0].inputs)
    return node.inputs


def _moved(node: Node) -> str | None:
    """The name of a view."""
    if node.op.name == "permute":
        order = node.attrs["order"]
        moved = sum(at != to for at, to in enumerate(order))
        return "T" if order == (1, 0) else "Transpose0" if moved == 2 else None
    if node.op.name == "reshape" and node.inputs:
        before, after = node.inputs[0].spec.shape, node.spec.shape
        if [n for n in before if n != 1] == [n for n in after if n != 1] and len(before) != len(after):
            if len(before) < len(after):
                return "Unsqueeze"
            return "Select" if node.inputs[0].op.name == "slice" else "Squeeze"
        return "View"
    return None


class GradFn:
    """The function whose gradient a node is, as torch shows it: compared by the node."""

    __slots__ = ("_node", "_wrap")
    variable: object

    def __init__(self, node: Node, wrap: Wrap) -> None:
        self._node, self._wrap = node, wrap

    def name(self) -> str:
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[GradFn | None, int], ...]:
        """The functions of the values that this one reads, and which result of each; None of what wants no gradient."""
        found: list[tuple[GradFn | None, int]] = []
        for inner in _reads(_value(self._node)):
            if _is_read(inner):
                found.append((of(inner, self._wrap), 0))
        return tuple(found)

    @property
    def metadata(self) -> dict[Any, Any]:
        return {}

    @property
    def requires_grad(self) -> bool:
        return self._node.requires

    def register_hook(self, hook: Hook) -> RemovableHandle:
        """hook(grad_inputs, grad_outputs) when those of the inputs are known; what it returns replaces them."""
        return RemovableHandle(self._hooks().after, hook)

    def register_prehook(self, hook: Hook) -> RemovableHandle:
        """hook(grad_outputs) before the gradients of the inputs are computed; what it returns replaces them."""
        return RemovableHandle(self._hooks().before, hook)

    def _hooks(self) -> FunctionHooks:
        """Those of the function: of one that users wrote they lie in its call, else where the gradient arrives."""
        node = self._node
        if isinstance(node.op, Custom):
            call = node.attrs["call"]
            call.hooks = getattr(call, "hooks", None) or FunctionHooks((), self._wrap)
            return call.hooks  # type: ignore[no-any-return]
        if node.accumulator is None:
            node.accumulator = GradAccumulator(None, self._wrap)
        if node.accumulator.function is None:
            reads = [] if _is_leaf(node) else [_passed(inner) for inner in _reads(_value(node)) if _is_read(inner)]
            node.accumulator.function = FunctionHooks(reads, self._wrap)
        return node.accumulator.function  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GradFn) and other._node is self._node

    def __hash__(self) -> int:
        return id(self._node)

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self._node):#x}>"


class AccumulateGrad(GradFn):
    """Where the gradient of a leaf, `variable`, is added up."""

    __slots__ = ()

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    @property
    def variable(self) -> TensorBase | None:  # type: ignore[override]
        return self._node.accumulator.tensor() if self._node.accumulator is not None else None

    @property
    def next_functions(self) -> tuple[tuple[GradFn | None, int], ...]:
        return ()


def of(node: Node, wrap: Wrap) -> GradFn | None:
    """What stands for a node; None where no gradient flows. wrap: makes tensors of gradients, for hooks."""
    if not node.requires:
        return None
    node = _passed(node)
    return AccumulateGrad(node, wrap) if _is_leaf(node) else _kind(name(node))(node, wrap)


def _passed(node: Node) -> Node:
    """The node behind what PyTorch has no function for."""
    while not _is_leaf(node) and node.op.name in PASSING and node.inputs and getattr(node, "function", "") != "expand":
        node = node.inputs[0]
    return node


def _is_read(node: Node) -> bool:
    """Whether a function of PyTorch's counts it among its inputs: tensors, and no numbers."""
    return not isinstance(node.op, Leaf) or node.requires or node.op.name == "data"


def _is_leaf(node: Node) -> bool:
    if node.accumulator is not None and (tensor := node.accumulator.tensor()) is not None and tensor._flag:
        return True
    return not node.inputs and not node.freed


@lru_cache(512)
def _kind(title: str) -> type[GradFn]:
    return type(title, (GradFn,), {"__slots__": (), "__module__": "torch.autograd.function"})
