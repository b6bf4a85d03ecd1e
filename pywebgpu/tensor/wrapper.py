"""Tensors without memory whose operators a class of a program computes: `_make_wrapper_subclass`, `__torch_dispatch__`.

Such a wrapper has a shape and dtype, and a node that stands for it. Functions of PyTorch's own operators go to the
class as operators of `torch.ops.aten`; what else makes nodes of wrappers is taken apart into such calls once a tensor
is made of them, and so are gradients. Nothing here is imported, or asked, before a program has such a class or mode.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from math import prod
from typing import Any

from pywebgpu import devices
from pywebgpu.autodiff import batching, grad_mode
from pywebgpu.devices.base import Buffer, Device
from pywebgpu.devices.meta import MetaDevice
from pywebgpu.dtypes import DType
from pywebgpu.ir import composite
from pywebgpu.ir.graph import DATA, NO_ATTRS, OUTPUT, Composite, Custom, Fused, FusedNode, Node, Spec, thread_state
from pywebgpu.ops import pointwise
from pywebgpu.runtime import state as runtime
from pywebgpu.runtime.storage import Storage
from pywebgpu.tensor import dispatch, view
from pywebgpu.tensor.base import TensorBase

# Functions that are about a tensor and compute nothing, or that call others which are asked.
UNASKED = frozenset((
    "allclose", "apply_", "as_subclass", "backward", "data_ptr", "dim", "element_size", "get_device", "is_complex",
    "is_conj", "is_contiguous", "is_floating_point", "is_neg", "is_inference", "is_pinned", "is_shared", "is_signed",
    "is_storage", "is_tensor", "ndimension", "nelement", "numel", "numpy", "register_hook",
    "register_post_accumulate_grad_hook", "requires_grad_", "result_type", "retain_grad", "size", "storage",
    "storage_offset", "stride", "to", "type", "untyped_storage", "view_as", "reshape_as", "type_as",
    "__getitem__", "__setitem__", "__iter__", "__len__", "__contains__", "tolist", "can_cast", "promote_types",
    "get_rng_state", "set_rng_state", "manual_seed", "initial_seed", "seed", "set_", "__deepcopy__",
    "linear", "conv1d", "conv2d", "conv3d", "reshape", "flatten", "unflatten", "tensor_split", "chunk",
    "layer_norm", "group_norm", "batch_norm", "instance_norm", "dropout", "softmax", "log_softmax",
    "cross_entropy", "nll_loss", "one_hot", "pad", "scaled_dot_product_attention", "embedding_bag",
))  # fmt: skip
PYTHON = {  # operators that methods of Python's are, beside those that dispatch.NAMES has
    "__rsub__": "rsub",
    "__floordiv__": "floor_divide",
    **{f"__i{name}__": f"{name}_" for name in ("add", "sub", "mul", "pow")},
    "__itruediv__": "div_",
}
OVERLOADS = {  # which overload a call is where PyTorch has several: of a tensor as second argument, of a number
    **dict.fromkeys(("add", "sub", "mul", "div", "floor_divide"), ("Tensor", "Tensor")),
    **dict.fromkeys(("add_", "sub_", "mul_", "div_"), ("Tensor", "Tensor")),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "remainder", "fmod"), ("Tensor", "Scalar")),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), ("Tensor", "Scalar")),
    "rsub": ("Tensor", "Scalar"),
    "pow": ("Tensor_Tensor", "Tensor_Scalar"),
    "pow_": ("Tensor", "Scalar"),
    "fill_": ("Tensor", "Scalar"),
    "masked_fill": ("Tensor", "Scalar"),
}


class WrapperDevice(MetaDevice):
    """Where wrappers are which say that they are on another device."""

    has_storages = False

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.is_host = name, name == "cpu"

    def upload(self, data: Any, spec: Spec) -> Buffer:
        """What Python gives has memory: it goes to the device of the name."""
        return devices.open_device(self.name).upload(data, spec)

    def zeros(self, spec: Spec) -> Buffer:
        return devices.open_device(self.name).zeros(spec)


class Held(Buffer):
    """In place of memory, the wrapper itself: whoever reads its node later, as gradients do, needs it."""

    __slots__ = ("tensor",)

    def __init__(self, device: Device, tensor: TensorBase) -> None:
        super().__init__(device, None, 0)
        self.tensor = tensor


_devices: dict[str, WrapperDevice] = {}


def prepare(cls: Any) -> None:
    """What a class with `__torch_dispatch__` needs: it is asked for operators, and not for functions by default."""
    start()
    if "__torch_function__" not in cls.__dict__:
        cls.__torch_function__ = dispatch.disabled


def make(
    cls: Any,
    size: Iterable[int],
    *,
    strides: Any = None,
    storage_offset: Any = None,
    memory_format: Any = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    dispatch_sizes_strides_policy: str | None = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
) -> Any:
    """A wrapper of a class, which says that it is on a device. Its strides are contiguous.

    Raises: TypeError of a class without `__torch_dispatch__`.
    """
    if not (isinstance(cls, type) and rule(cls)):
        raise TypeError(f"{cls} must define __torch_dispatch__, which says what its operators do")
    start()
    name = str(devices.device(device) if device is not None else devices.default_device())
    where = _devices.setdefault(name, WrapperDevice(name))
    node = Node(DATA, (), NO_ATTRS, Spec(tuple(map(operator.index, size)), dtype or import_default()))
    wrapper: Any = object.__new__(cls)
    node.buffer = Held(where, wrapper)
    wrapper._storage = Storage(node, where)
    wrapper._path, wrapper._base, wrapper._accumulator, wrapper._cached = (), None, None, None
    wrapper._flag, wrapper._grad, wrapper._history = False, None, None
    return wrapper.requires_grad_() if requires_grad else wrapper


def import_default() -> DType:
    """The dtype of numbers with a fraction that programs chose."""
    return import_module("pywebgpu").get_default_dtype()  # type: ignore[no-any-return]


def start() -> None:
    """From now on new tensors of wrappers' nodes, views and writes come here."""
    if not _before:
        dispatch.start()
        dispatch.operators = asked
        _before.update(_new=TensorBase.__dict__["_new"].__func__, _views=TensorBase._views, _assign=TensorBase._assign)
        TensorBase._new, TensorBase._views, TensorBase._assign = classmethod(_new), _views, _assign  # type: ignore[assignment,method-assign]


_before: dict[str, Any] = {}


def _new(cls: Any, node: Node, device: Device) -> Any:
    if type(device) is not WrapperDevice:
        other = _wrapped(node) if device.has_values else None
        if other is None:
            return _before["_new"](cls, node, device)
        device = other
    return computed(node, device)


_free: weakref.WeakSet[Node] = weakref.WeakSet()  # nodes that were looked at, and read no wrapper


def _wrapped(node: Node) -> WrapperDevice | None:
    """The device of a wrapper that a node reads; None where it reads memory alone."""
    stack, passed = [node], set()
    while stack:
        current = stack.pop()
        if isinstance(current.buffer, Held):
            return current.buffer.device  # type: ignore[return-value]
        if current.buffer is None and current not in passed and current not in _free:
            passed.add(current)
            stack += current.inputs[:1] if _is_history(current) else current.inputs
    _free.update(passed)
    return None


def _is_history(node: Node) -> bool:
    """Whether only the first input is the value of a node, and the others are for gradients."""
    return node.op is pointwise.graft or node.op is pointwise.overwrite or isinstance(node.op, Custom)


def _views(self: TensorBase, steps: view.Path) -> Any:
    device = self._storage.device
    if type(device) is WrapperDevice:
        node = self._node
        for op, attrs in steps:
            node = op(node, **attrs)
        return computed(node, device)
    return _before["_views"](self, steps)


def _assign(self: Any, node: Node) -> Any:
    device = self._storage.device
    if type(device) is not WrapperDevice:
        reads = _wrapped(node) if device.has_values else None
        if reads is None:
            return _before["_assign"](self, node)
        device = reads
    self._check_writable()
    value = computed(node, device)
    return self if value is self else self.copy_(value)


def copied(tensor: Any, memo: dict[int, Any]) -> Any:
    """A deep copy of a tensor of a class with `__torch_dispatch__`, which the class itself makes."""
    with grad_mode.no_grad():
        copy = tensor.clone()
    if type(copy) is not type(tensor):
        raise RuntimeError(
            f"The default implementation of __deepcopy__() for {type(tensor)} only works if clone() gives one of it, "
            f"and it gave a {type(copy)}"
        )
    for name, value in vars(tensor).items():
        if name not in vars(copy):
            setattr(copy, name, import_module("copy").deepcopy(value, memo))
    memo[id(tensor)] = copy.requires_grad_(tensor.requires_grad)
    if tensor.grad is not None:
        copy.grad = import_module("copy").deepcopy(tensor.grad, memo)
    return copy


# Operators


def rule(kind: type) -> Any:
    """The `__torch_dispatch__` of a class; None of one without."""
    return getattr(kind, "__torch_dispatch__", None)


def asked(name: Any, function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """A call of a public function: what modes and classes say to its operator, else what it computes."""
    wrappers = [value for value in _leaves((args, options)) if isinstance(value, TensorBase) and rule(type(value))]
    own = dispatch.state.operator_modes
    if not (wrappers or own):
        return function(*args, **options)
    if wrappers and runtime.default.local.queues[wrappers[0]._storage.device].stand_ins:
        raise batching.NoBatchError("vmap: a class computes operators, which needs values")
    called = _operator(name, args)
    if called is None:
        if wrappers and getattr(name, "__name__", "") == "tolist":
            return _listed(args[0])
        return function(*args, **options)
    types = tuple({type(value): None for value in wrappers})
    call = called, types, args, dict(options)
    result = dispatch.first_answer(
        own, wrappers, operator.attrgetter("__torch_dispatch__"), lambda value: rule(type(value)), call
    )
    if result is NotImplemented:
        raise TypeError(
            f"Multiple dispatch failed for '{called}'; all __torch_dispatch__ handlers returned NotImplemented for "
            f"{[*types]}"
        )
    if called._opname.endswith("_") and not called._opname.startswith("_") and args and isinstance(args[0], TensorBase):
        if wrappers:
            _with_history(args[0], function, args, options)
        return args[0]
    if wrappers and called._opname != "detach":
        _with_history(result, function, args, options)
    return result


def _listed(tensor: Any) -> Any:
    """The elements of a wrapper, each asked for."""
    return [_listed(tensor[index]) for index in range(tensor.shape[0])] if tensor.ndim else tensor.item()


def _operator(name: Any, args: tuple[Any, ...]) -> Any:
    """The operator of a function; None of one that PyTorch makes of others, or that is none."""
    if hasattr(name, "_opname"):
        return name
    packet = name if hasattr(name, "_qualified_op_name") else None
    title = packet.__name__ if packet is not None else getattr(name, "__name__", "")
    if packet is None:
        method = next((method for method in PYTHON if getattr(TensorBase._kind, method) is name), "")
        if method:
            title = PYTHON[method]
        elif title in UNASKED or title.startswith("_") or not _is_called_so(name, title):
            return None
        if title == "item":
            title = "_local_scalar_dense"
        try:
            packet = getattr(import_module("pywebgpu.ops").aten, title)
        except AttributeError:
            return None
    if title == "matmul" and all(isinstance(value, TensorBase) and value.ndim == 2 for value in args):
        packet = import_module("pywebgpu.ops").aten.mm
    if title in OVERLOADS:
        is_tensor = len(args) > 1 and isinstance(args[1], TensorBase)
        return getattr(packet, OVERLOADS[title][not is_tensor])
    if title in ("sum", "mean") and len(args) > 1:
        return getattr(packet, "dim_IntList" if title == "sum" else "dim")
    return packet.default


def _is_called_so(function: Any, title: str) -> bool:
    """Whether a function is the one of its name: `2 - x` is a method that was made of sub, and is another."""
    places = (TensorBase._kind, import_module("pywebgpu"), import_module("pywebgpu.nn.functional"))
    return any(getattr(place, title, None) is function for place in places)


def _tree() -> Any:
    return import_module("pywebgpu.utils._pytree")


def _leaves(tree: Any) -> list[Any]:
    return _tree().tree_leaves(tree)  # type: ignore[no-any-return]


def _with_history(result: Any, function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> None:
    """Gives results the history of the call, as it is recorded for tensors that have shapes alone."""
    tensors = [leaf for leaf in _leaves((args, options)) if isinstance(leaf, TensorBase)]
    results = [leaf for leaf in _leaves(result) if isinstance(leaf, TensorBase)]
    if not thread_state.grad or not any(tensor.requires_grad for tensor in tensors):
        return
    if not results or any(leaf.requires_grad for leaf in results if leaf is not args[0]):
        return
    shapes = {id(tensor): _shape_of(tensor) for tensor in tensors}
    as_shapes = _tree().tree_map(lambda leaf: shapes.get(id(leaf), leaf), (args, dict(options)))
    with dispatch.NoDispatch():
        recorded = function(*as_shapes[0], **as_shapes[1])
    parts = [leaf for leaf in _leaves(recorded) if isinstance(leaf, TensorBase)]
    for leaf, part in zip(results, parts, strict=False):
        node = part._node
        if node.requires and node.spec == leaf._spec_node().spec:
            value = leaf._storage.node if type(leaf._storage.device) is WrapperDevice else leaf._node
            leaf._storage.replace(pointwise.graft(_plain(value), node))
            leaf._history = leaf._cached = None


def _plain(node: Node) -> Node:
    """What a node with a history attached is the value of."""
    while node.op is pointwise.graft:
        node = node.inputs[0]
    return node


def _shape_of(tensor: Any) -> Any:
    """A tensor of the same node, history included, on device meta."""
    meta = devices.open_device("meta")
    shape = tensor._of(Storage(tensor._node, meta), ())
    shape._history = None
    return shape


# Nodes


def computed(node: Node, device: Device) -> Any:
    """A tensor of a node that reads wrappers: made by calls of functions, which ask their classes."""
    if runtime.default.local.queues[device].stand_ins:
        raise batching.NoBatchError("vmap: a class computes operators, which needs values")
    tensors: dict[Node, Any] = {}
    read: dict[Node, tuple[Node, ...]] = {}  # What a fused op is tensors of is new each time.
    with grad_mode.no_grad():
        stack = [node]
        while stack:
            current = stack[-1]
            if current in tensors:
                stack.pop()
                continue
            inputs = read[current] if current in read else read.setdefault(current, _inputs(current))
            missing = [source for source in inputs if source not in tensors]
            if missing:
                stack += missing
                continue
            stack.pop()
            tensors[current] = _call(current, [tensors[source] for source in inputs], device)
    result = tensors[node]
    if node.requires and thread_state.grad and not result.requires_grad:
        result._storage.replace(pointwise.graft(_plain(result._storage.node), node))
        result._cached = None
    return result


def _inputs(node: Node) -> tuple[Node, ...]:
    if _is_history(node):
        return node.inputs[:1]
    if type(node.op) is Composite:
        return (composite.decomposed(node.op, node.inputs, {}),)
    if node.op is OUTPUT:
        fused = node.inputs[0]
        assert isinstance(fused, FusedNode)
        assert isinstance(fused.op, Fused)
        return (fused.op.fallback(*fused.inputs, **fused.attrs)[node.attrs["index"]],)
    return node.inputs


def _call(node: Node, inputs: list[Any], device: Device) -> Any:
    """The value of one node, of those of what it reads."""
    if isinstance(node.buffer, Held):
        return node.buffer.tensor
    own = devices.open_device(device.name)
    if not inputs or not any(rule(type(value)) for value in inputs):
        return _before["_new"](TensorBase._kind, node, own)
    name, attrs = getattr(node.op, "name", ""), node.attrs
    if _is_history(node) or type(node.op) is Composite or node.op is OUTPUT:
        return inputs[0]
    rewritten = _RULES.get(name)
    if rewritten is not None:
        return rewritten(node, *inputs, **attrs)
    function = getattr(import_module("pywebgpu"), name, None)
    if function is None:
        raise NotImplementedError(f"{name}: no operator of PyTorch's computes this for classes with __torch_dispatch__")
    return function(*inputs, **attrs)


def _permuted_slice(node: Node, x: Any, starts: Any, sizes: Any, steps: Any) -> Any:
    aten = import_module("pywebgpu.ops").aten
    for axis, (start, size, step) in enumerate(zip(starts, sizes, steps, strict=True)):
        if (start, size, step) != (0, x.shape[axis], 1):
            x = aten.slice.Tensor(x, axis, start, start + size * step, step)
    return x


def _padded(node: Node, x: Any, shape: Any, starts: Any, steps: Any) -> Any:
    places = zip(starts, x.shape, steps, strict=True)
    ends = tuple(slice(start, start + (size - 1) * step + 1, step) for start, size, step in places)
    if any(step != 1 for step in steps):
        padded = x.new_zeros(shape)
        padded[ends] = x
        return padded
    sides = [(start, length - start - size) for start, length, size in zip(starts, shape, x.shape, strict=True)]
    return import_module("pywebgpu").constant_pad_nd(x, [n for pair in reversed(sides) for n in pair], 0)


def _scattered(node: Node, base: Any, index: Any, source: Any, mode: str = "add", **attrs: Any) -> Any:
    if mode != "add":
        return base.index_copy(0, index, source)
    return base.index_add(0, index, source)


def _product(node: Node, x: Any, axes: Any) -> Any:
    for axis in axes:
        x = x.prod(axis, keepdim=True)
    return x


def _packed(node: Node, *parts: Any, starts: Any, size: int, **attrs: Any) -> Any:
    flat, end = [], 0
    for part, start in zip((*parts, None), (*starts, size), strict=True):
        if start > end:
            flat.append(parts[0].new_zeros((start - end,)))
        if part is not None:
            flat.append(part.flatten())
            end = start + part.numel()
    return import_module("pywebgpu").cat(flat)


_RULES: dict[str, Callable[..., Any]] = {
    "alias": lambda node, x: x,
    "copy": lambda node, x: x.clone(),
    "cast": lambda node, x, **attrs: import_module("pywebgpu.ops").aten._to_copy.default(x, dtype=node.spec.dtype),
    "reshape": lambda node, x, shape: import_module("pywebgpu.ops").aten.reshape.default(x, [*shape]),
    "permute": lambda node, x, order: x.permute(order),
    "expand": lambda node, x, shape: import_module("pywebgpu.ops").aten.expand.default(x, [*shape]),
    "slice": _permuted_slice,
    "flip": lambda node, x, axes: x.flip(axes),
    "pad": _padded,
    "sum": lambda node, x, axes: x.sum(list(axes), keepdim=True),
    "max": lambda node, x, axes: x.amax(list(axes), keepdim=True),
    "min": lambda node, x, axes: x.amin(list(axes), keepdim=True),
    "prod": _product,
    "matmul": lambda node, a, b: a @ b if a.ndim > 2 else a.mm(b),
    "take": lambda node, x, index: x.index_select(0, index),
    "scatter": _scattered,
    "cat": lambda node, *parts, axis: import_module("pywebgpu").cat(list(parts), axis),
    "pack": _packed,
    "piece": lambda node, x, start, shape: x.flatten()[start : start + prod(shape)].view(shape),
}
