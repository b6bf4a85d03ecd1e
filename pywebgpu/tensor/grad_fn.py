"""What `grad_fn` shows: the graph by PyTorch's names, for programs that draw it or print tensors.

A function of PyTorch's may be several nodes here, so the graph of a program is PyTorch's as far as the patterns of
grad_fn_names go; any other function leads to the ops that it is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from pywebgpu.autodiff import backward
from pywebgpu.ir.graph import Composite, Custom, Node
from pywebgpu.tensor import grad_fn_names as names
from pywebgpu.tensor.grad_accumulator import FunctionHooks, GradAccumulator, Hook, RemovableHandle

if TYPE_CHECKING:
    from pywebgpu.tensor.base import TensorBase

Wrap = Callable[[Node], Any]
_metadata: WeakKeyDictionary[Node, dict[Any, Any]] = WeakKeyDictionary()
_of_functions: WeakKeyDictionary[type, type[GradFn]] = WeakKeyDictionary()
_shown: WeakValueDictionary[int, GradFn] = WeakValueDictionary()  # by id of the node
_SAVED = ("_saved_self", "_saved_other", "_saved_result")
PAIRS = ("AddBackward0", "SubBackward0", "MulBackward0", "DivBackward0")  # PyTorch makes a tensor of their number, too
PASSING = ("alias", "expand")  # PyTorch has no function there: a view of all of it, and broadcasting


def _reads(node: Node) -> tuple[Node, ...]:
    """What the function of PyTorch's reads, past the ops that it is made of."""
    if type(node.op) is Composite:
        return node.inputs
    if type(node.op) is Custom:
        return node.inputs[1:]  # The first one is the value.
    match names.pattern(node):
        case "softmax":
            return node.inputs[0].inputs[0].inputs[:1]
        case "log_softmax":
            return node.inputs[0].inputs[:1]
        case "nll_loss":
            rows = node.inputs[0].inputs[0]
            rows = rows if rows.op.name == "sub" else rows.inputs[0]
            for _ in range(4):  # logarithm, sum, exponential, difference from the largest
                rows = rows.inputs[0] if rows.inputs else rows
            return rows.inputs[:1]
        case "mse_loss":
            return node.inputs[0].inputs[0].inputs[0].inputs
        case "var" | "mean" | "mean.1" as title:
            inner = node.inputs[0].inputs
            return inner[0].inputs[0].inputs[:1] if title == "var" else inner
        case "addmm" if node.op.name == "add":
            return (node.inputs[1], *node.inputs[0].inputs)
    return node.inputs


def _edges(node: Node, title: str) -> list[Node]:
    """What it reads that PyTorch counts: tensors, and the second number of a pair."""
    value = names.value_of(node)
    reads = _reads(value)
    return [inner for index, inner in enumerate(reads) if names.is_read(inner) or (index and title in PAIRS)]


class GradFn:
    """The function whose gradient a node is, as torch shows it: compared by the node."""

    __slots__ = ("__weakref__", "_node", "_wrap")
    variable: object

    def __init__(self, node: Node, wrap: Wrap) -> None:
        self._node, self._wrap = node, wrap

    def name(self) -> str:
        title = type(self).__name__
        return f"torch::autograd::{title}" if title in names.UNNUMBERED.values() else title

    @property
    def next_functions(self) -> tuple[tuple[GradFn | None, int], ...]:
        """The functions of the values that this one reads, and which result of each; None of what wants no gradient."""
        return tuple([(of(inner, self._wrap), 0) for inner in _edges(self._node, type(self).__name__)])

    @property
    def metadata(self) -> dict[Any, Any]:
        """What programs keep here, as long as the function is there."""
        return _metadata.setdefault(self._node, {})

    @property
    def requires_grad(self) -> bool:
        return self._node.requires

    def register_hook(self, hook: Hook) -> RemovableHandle:
        """hook(grad_inputs, grad_outputs) when those of the inputs are known; what it returns replaces them."""
        return RemovableHandle(self._hooks().after, hook)

    def register_prehook(self, hook: Hook) -> RemovableHandle:
        """hook(grad_outputs) before the gradients of the inputs are computed; what it returns replaces them."""
        return RemovableHandle(self._hooks().before, hook)

    def __getattr__(self, name: str) -> Any:
        """`_saved_self`, `_saved_other`, `_saved_result`: what its formulas read. Of a function that users wrote, what
        its context has."""
        node = names.value_of(self._node)
        packed = node.attrs["call"] if type(node.op) is Custom and hasattr(node.attrs["call"], "unpacked") else None
        node = node if packed is None else packed.root
        if name in _SAVED:
            if node.freed or (packed is not None and packed.released):
                raise RuntimeError(backward.TWICE)
            values = (*_reads(node), *[None] * 2)[:2]
            value = node if name == "_saved_result" else values[_SAVED.index(name)]
            if value is not None and any(value is saved for saved in backward.saved_by(node)):
                value = value if packed is None else packed.unpacked(value)
                leaf = value.accumulator.tensor() if value.accumulator is not None else None
                return self._wrap(value) if leaf is None or not leaf._flag else leaf
        context = getattr(node.attrs["call"], "ctx", None) if type(node.op) is Custom and name[:2] != "__" else None
        if context is not None and hasattr(context, name):
            return getattr(context, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

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
            reads = [] if _is_leaf(node) else [_passed(inner) for inner in _edges(node, type(self).__name__)]
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
    if _is_leaf(node):
        return _of_kind(AccumulateGrad, node, wrap)
    title = names.name(node)
    call = node.attrs["call"] if type(node.op) is Custom and title == node.op.name else None
    kind = of_function(call.function, title) if call is not None and hasattr(call, "ctx") else _kind(title)
    return _of_kind(kind, node, wrap)


def _of_kind(kind: type[GradFn], node: Node, wrap: Wrap) -> GradFn:
    """The function of a node: the same one as long as somebody has it."""
    shown = _shown.get(id(node))  # Its node lives while it does.
    if type(shown) is not kind:
        shown = _shown[id(node)] = kind(node, wrap)
    return shown


def _passed(node: Node) -> Node:
    """The node behind what PyTorch has no function for."""
    while not _is_leaf(node) and node.op.name in PASSING and node.inputs and getattr(node, "function", "") != "expand":
        node = node.inputs[0]
    return node


def _is_leaf(node: Node) -> bool:
    if node.accumulator is not None and (tensor := node.accumulator.tensor()) is not None and tensor._flag:
        return True
    return not node.inputs and not node.freed


def of_function(function: type, title: str) -> type[GradFn]:
    """The class of what stands for calls of a function that users wrote."""
    return _of_functions.setdefault(function, _kind.__wrapped__(title))


@lru_cache(512)
def _kind(title: str) -> type[GradFn]:
    return type(title, (GradFn,), {"__slots__": (), "__module__": "torch.autograd.function"})
