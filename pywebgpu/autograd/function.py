"""Functions whose gradient the user writes: Function, and the record of one call of it.

Each output is a Custom node: its value, computed without history, and the inputs that the gradient goes to.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from pywebgpu.autodiff import backward, grad_mode
from pywebgpu.autograd import products
from pywebgpu.composites import arithmetic
from pywebgpu.dtypes import Kind
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Custom, Node, thread_state, used
from pywebgpu.ops import movement, pointwise, reduction
from pywebgpu.tensor import grad_fn, history
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.grad_accumulator import FunctionHooks
from pywebgpu.tensor.tensor import Tensor

OVERWRITTEN = (
    "one of the variables needed for gradient computation has been modified by an inplace operation: "
    "[{type} {shape}] is at version {found}; expected version {expected} instead."
)


class FunctionCtx:
    """What forward leaves for backward; users may set any attribute."""

    needs_input_grad: tuple[bool, ...] = ()
    _in_forward = False  # while jvp runs

    def __init__(self) -> None:
        self._saved: list[_Saved | None] = []
        self._fixed: list[Tensor] = []
        self._dirty: list[Tensor] = []
        self._for_forward: tuple[Tensor | None, ...] = ()
        self._materialize = self._materialize_non_diff_grads = True
        self._released = False
        self._again: Callable[[int, Node], Node] | None = None  # makes an output's node that nobody else kept

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors; `saved_tensors` gives them back, and notices when one was overwritten."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, TensorBase):
                raise TypeError(f"save_for_backward can only save variables, but argument is of type {type(tensor)}")
        self._saved = [None if tensor is None else _Saved(tensor) for tensor in tensors]

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for `jvp`, to which `saved_tensors` gives them."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, TensorBase):
                raise TypeError(f"save_for_forward can only save variables, but argument is of type {type(tensor)}")
        self._for_forward = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What save_for_backward kept. Raises RuntimeError when it was freed, or overwritten since."""
        if self._in_forward:
            return self._for_forward
        if self._released:
            raise RuntimeError(backward.TWICE)
        return tuple(None if saved is None else saved.tensor(self._again) for saved in self._saved)

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """No gradient flows to these outputs."""
        self._fixed = list(tensors)

    def mark_dirty(self, *tensors: Tensor) -> None:
        """These inputs were written in place by forward."""
        self._dirty = list(tensors)

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward sees zeros (True) or None for an output that nothing used."""
        self._materialize = value


BackwardCFunction = FunctionCtx  # PyTorch's class of what backward gets, which is the same here.


class _Saved:
    """A tensor as it was when it was saved. Of an output only the node is known, weakly: it holds the call."""

    __slots__ = ("device", "held", "index", "kept", "node", "output", "version")

    def __init__(self, tensor: Tensor) -> None:
        self.held: Tensor | None = tensor
        self.version, self.node = tensor._storage.counted, tensor._node
        self.device = tensor._storage.device
        self.output: weakref.ref[Node] | None = None
        self.index = 0  # of the output
        self.kept = None if used.packing is None else import_module("pywebgpu.autograd.graph").keep(tensor)

    def become_output(self, node: Node, index: int) -> None:
        self.held, self.output, self.index = None, weakref.ref(node), index

    def tensor(self, again: Callable[[int, Node], Node] | None) -> Tensor:
        if self.kept is not None:
            return self.kept()  # type: ignore[no-any-return]
        if self.output is not None:
            node = self.output()
            if node is None and again is not None:  # The program dropped this output, but its gradient may be asked.
                node = again(self.index, self.node)
                self.output = weakref.ref(node)
            return Tensor._new(self.node if node is None else node, self.device)
        assert self.held is not None
        if self.held._version != self.version:
            raise RuntimeError(
                OVERWRITTEN.format(
                    type=self.held.type(), shape=list(self.held.shape), found=self.held._version, expected=self.version
                )
            )
        return self.held


class _BackwardClass:
    """The class of `grad_fn` of what a Function made."""

    def __get__(self, instance: object, owner: type) -> type:
        return grad_fn.of_function(owner, f"{owner.__name__}Backward")


class Function:
    """A differentiable function with a gradient of its own: subclass with static methods forward and backward.

    forward(ctx, *args), or forward(*args) with setup_context(ctx, inputs, output); backward(ctx, *grads) returns one
    gradient, or None, for each argument. Called as `MyFunction.apply(*args)`.
    """

    _backward_cls = _BackwardClass()
    generate_vmap_rule = False  # whether torch.func.vmap makes the batch of what forward does, or calls `vmap`

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangents of the outputs, from those of the inputs: for torch.autograd.forward_ad."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        """The output of a batch of inputs, and its batch axes: for torch.func.vmap."""
        raise NotImplementedError(
            "You must implement the vmap function for custom autograd.Function to use it with vmap"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function with static forward method. (Example: https://pytorch.org/docs/stable/autograd.html"
            "#torch.autograd.Function)"
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Calls forward without recording, and hangs backward on its outputs."""
        sets_context = cls.setup_context is not Function.setup_context
        level = None
        if thread_state.transforms:
            samples = import_module("pywebgpu.tensor.samples")
            level = samples.rule_of(cls, cls.vmap is not Function.vmap, sets_context, args)
            if level is not None and samples.is_last(level):  # Its results have the history that the rule records.
                return level.by_rule(cls.__name__, cls.vmap, args, kwargs)
        ctx = FunctionCtx()
        tensors: list[Any] = [arg if isinstance(arg, TensorBase) else None for arg in args]
        ctx.needs_input_grad = tuple(t is not None and thread_state.grad and t.requires_grad for t in tensors)
        sources = [None if t is None else t._node for t in tensors]
        with grad_mode.no_grad():
            if not sets_context:
                output = cls.forward(ctx, *args, **kwargs)
            else:
                if level is None:
                    output = cls.forward(*args, **kwargs)
                else:
                    output = level.by_rule(cls.__name__, cls.vmap, args, kwargs)
                cls.setup_context(ctx, args, output)
        if not any(ctx.needs_input_grad):
            return output
        call = _Call(cls, ctx, sources)
        if isinstance(output, tuple | list):
            return tuple(call.outputs(list(output), [t for t in tensors if t is not None]))
        return call.outputs([output], [t for t in tensors if t is not None])[0]


_ops: weakref.WeakKeyDictionary[type, Custom] = weakref.WeakKeyDictionary()
_tangents: Custom = Custom("ForwardMode")


class _Call:
    """One application of a Function: makes the outputs' nodes, later turns their gradients into the inputs'."""

    def __init__(self, function: type[Function], ctx: FunctionCtx, sources: Sequence[Node | None]) -> None:
        self.function, self.ctx = function, ctx
        self.positions = [index for index, node in enumerate(sources) if node is not None]
        self.specs = [None if node is None else node.spec for node in sources]
        self.sources = [node for node in sources if node is not None]
        self.output_specs: list[Any] = []
        self.fixed: list[bool] = []  # outputs to which no gradient goes
        self.nodes: list[weakref.ref[Node]] = []  # of the outputs, which hold the call
        self.device: Any = None
        self.hooks: FunctionHooks | None = None

    def outputs(self, results: list[Any], inputs: list[Tensor]) -> list[Any]:
        """The results of forward with this call as their history."""
        op = _ops.setdefault(self.function, Custom(f"{self.function.__name__}Backward"))
        tensors: list[Any] = [result if isinstance(result, TensorBase) else None for result in results]
        if any(saved is not None and saved.held is not None and saved.held._inference for saved in self.ctx._saved):
            raise history.refusal("saved")
        self.output_specs = [None if tensor is None else tensor._node.spec for tensor in tensors]
        finished: list[Any] = []
        for index, (result, tensor) in enumerate(zip(results, tensors, strict=True)):
            self.fixed.append(tensor is None)
            if tensor is None:
                finished.append(result)
                continue
            self.device = tensor._storage.device
            fixed = tensor.dtype.kind is not Kind.FLOAT or any(tensor is t for t in self.ctx._fixed)
            self.fixed[-1] = fixed
            if fixed:
                finished.append(tensor)
                continue
            with grad_mode.no_grad():
                value = tensor._node
            node = op(value, *self.sources, call=self, index=index, outputs=len(results))
            self.nodes.append(weakref.ref(node))
            dirty = any(tensor is t for t in self.ctx._dirty)
            output: Any = tensor._assign(node) if dirty else Tensor._new(node, self.device)
            if not dirty and any(tensor._storage is t._storage for t in inputs):
                output._of_several = (
                    output._storage.counted
                )  # A view of what it read: a write to it would change that as well.
            for saved in self.ctx._saved:
                if saved is not None and saved.held is tensor and not any(tensor is t for t in inputs):
                    saved.become_output(node, index)
                elif saved is not None and saved.held is tensor and dirty:
                    saved.version = output._version
            finished.append(output)
        self.sources = []
        return finished

    @property
    def saved(self) -> list[Node]:
        """Values that must be computed with the outputs, for backward."""
        return [saved.node for saved in self.ctx._saved if saved is not None]

    def release(self) -> None:
        """Drops what was saved."""
        self.ctx._saved, self.ctx._released = [], True

    def backward(self, grads: Sequence[Node | None]) -> Sequence[Node | None]:
        if thread_state.grad:
            self.ctx._again = self._output
        try:
            if self.hooks is None:
                return self._backward(grads)
            grads = self.hooks.arrive(grads)
            return self.hooks.leave(self._backward(grads), grads)
        finally:
            self.ctx._again = None

    def _output(self, index: int, value: Node) -> Node:
        """The node of an output again: it has the sources of one that is still there, which the walk came through."""
        alive = next(node for reference in self.nodes if (node := reference()) is not None)
        return _ops[self.function](value, *alive.inputs[1:], call=self, index=index, outputs=len(self.output_specs))

    def _backward(self, grads: Sequence[Node | None]) -> list[Node | None]:
        name = f"{self.function.__name__}Backward"
        if products.forward_mode.on and self.function.jvp is not Function.jvp:
            return self._transposed(grads)
        grads_of_outputs = []
        for grad, spec, fixed in zip(grads, self.output_specs, self.fixed, strict=True):
            is_filled = self.ctx._materialize and (not fixed or self.ctx._materialize_non_diff_grads)
            if grad is None and spec is not None and is_filled:
                grad = pointwise.full(0, spec)
            grads_of_outputs.append(None if grad is None else Tensor._new(grad, self.device))
        returned = self._formula()(self.ctx, *grads_of_outputs)
        parts = list(returned) if isinstance(returned, tuple | list) else [returned]
        count = len(self.specs)
        if len(parts) < count or any(part is not None for part in parts[count:]):
            raise RuntimeError(
                f"function {name} returned an incorrect number of gradients (expected {count}, got {len(parts)})"
            )
        for index, part in enumerate(parts[:count]):
            if part is not None and self.specs[index] is None:
                raise RuntimeError(
                    f"function {name} returned a gradient different from None at position {index + 1}, but the "
                    f"corresponding forward input was not a Variable"
                )
        return [self._fitted(parts[index], index, name) for index in self.positions]

    def _formula(self) -> Callable[..., Any]:
        """backward, or vjp, which is its other name."""
        function = self.function
        if function.vjp is Function.vjp:
            return function.backward
        if function.backward is not Function.backward:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        return function.vjp

    def _transposed(self, grads: Sequence[Node | None]) -> list[Node | None]:
        """For forward mode, which is the gradient of a gradient: nodes that stand for the gradients of the inputs, and
        whose own gradient, from tangents of the inputs to those of the outputs, is what jvp computes."""
        call = _Tangents(self, [index for index, grad in enumerate(grads) if grad is not None])
        sources = [grad for grad in grads if grad is not None]
        parts: list[Node | None] = []
        for index in self.positions:
            spec = self.specs[index]
            is_float = spec is not None and spec.dtype.kind is Kind.FLOAT
            count = len(self.specs)
            zero = pointwise.full(0, spec) if spec is not None and is_float else None
            parts.append(None if zero is None else _tangents(zero, *sources, call=call, index=index, outputs=count))
        return parts

    def _fitted(self, part: object, index: int, name: str) -> Node | None:
        spec = self.specs[index]
        if part is None or spec is None:
            return None
        if not isinstance(part, TensorBase):
            raise RuntimeError(f"expected Variable or None (got {type(part).__name__})")
        node = arithmetic.cast(part._node, spec.dtype)
        have = node.spec.shape
        if have == spec.shape:
            return node
        extra = len(have) - len(spec.shape)
        padded = (1,) * extra + spec.shape
        if extra < 0 or any(m not in (1, n) for m, n in zip(padded, have, strict=True)):
            raise ShapeError(
                f"Function {name} returned an invalid gradient at index {index} - got {list(have)} but expected shape "
                f"compatible with {list(spec.shape)}"
            )
        axes = tuple(a for a, (m, n) in enumerate(zip(padded, have, strict=True)) if m != n)
        folded = reduction.sum_(node, axes=axes) if axes else node
        return arithmetic.broadcast_to(movement.reshape(folded, shape=spec.shape), spec.shape)


class _Tangents:
    """jvp of one call, as the gradient of what stands for the gradients of its inputs."""

    def __init__(self, call: _Call, outputs: Sequence[int]) -> None:
        self.call, self.outputs = call, outputs

    def backward(self, grads: Sequence[Node | None]) -> list[Node | None]:
        call, ctx = self.call, self.call.ctx
        tangents = []
        for grad, spec in zip(grads, call.specs, strict=True):
            if grad is None and spec is not None and ctx._materialize and spec.dtype.kind is Kind.FLOAT:
                grad = pointwise.full(0, spec)
            tangents.append(None if grad is None else Tensor._new(grad, call.device))
        ctx._in_forward = True
        try:
            with grad_mode.enable_grad():
                returned = call.function.jvp(ctx, *tangents)
        finally:
            ctx._in_forward = False
        parts = list(returned) if isinstance(returned, tuple | list) else [returned]
        if len(parts) != len(call.output_specs):
            raise RuntimeError(
                f"{call.function.__name__}'s jvp returned an incorrect number of tangents (expected "
                f"{len(call.output_specs)}, got {len(parts)})"
            )
        for index, (part, fixed) in enumerate(zip(parts, call.fixed, strict=True)):
            if fixed and part is not None:
                raise RuntimeError(
                    f"jvp is expected to return None for output {index}, which has no gradient. You should return None "
                    f"at that position instead"
                )
        return [None if parts[index] is None else parts[index]._node for index in self.outputs]

    def release(self) -> bool:
        return True


class InplaceFunction(Function):
    """The older name of Function for what writes into its inputs."""

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace


def _nested_map(
    condition: Callable[[Any], bool], fn: Callable[[Any], Any], condition_msg: str | None = None
) -> Callable[[Any], Any]:
    """A function of a nest that calls fn with each leaf for which a condition holds. Raises ValueError for others."""

    def mapped(value: Any) -> Any:
        if condition(value):
            return fn(value)
        if value is None:
            return None
        if isinstance(value, list | tuple):
            parts = [mapped(part) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        if isinstance(value, dict):
            return {key: mapped(part) for key, part in value.items()}
        known = f". Accepted types: {condition_msg}, or lists/tuples of them" if condition_msg else ""
        raise ValueError(f"Auto nesting doesn't know how to process an input object of type {type(value)}{known}")

    return mapped


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates backward: its result cannot be differentiated again, and trying to is an error."""

    @functools.wraps(function)
    def wrapper(ctx: FunctionCtx, *args: Any) -> object:
        with grad_mode.no_grad():
            results = function(ctx, *args)
        if not thread_state.grad or not any(isinstance(arg, TensorBase) and arg.requires_grad for arg in args):
            return results
        outputs = results if isinstance(results, tuple) else (results,)
        sources = [arg for arg in args if isinstance(arg, TensorBase) and arg.requires_grad]
        guarded = tuple(_Refusal.apply(r, *sources) if isinstance(r, TensorBase) else r for r in outputs)
        return guarded if isinstance(results, tuple) else guarded[0]

    return wrapper


class _Refusal(Function):
    """The first argument; its gradient is an error."""

    @staticmethod
    def forward(ctx: FunctionCtx, value: Tensor, *sources: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Tensor) -> NoReturn:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")
