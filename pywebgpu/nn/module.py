"""Module: the base class of layers and models. Here: calls and their hooks, modes, conversion, text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Self

from pywebgpu import devices, dtypes
from pywebgpu.autodiff import grad_mode
from pywebgpu.dtypes import DType, Kind
from pywebgpu.ir.graph import thread_state, used
from pywebgpu.nn.state import StateDict
from pywebgpu.step_capture import function
from pywebgpu.step_capture.capture import capture_state
from pywebgpu.tensor.grad_accumulator import RemovableHandle
from pywebgpu.tensor.methods import later
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.tensor.factory_options import DeviceLike

Convert = Callable[[Tensor], Tensor]


def _unimplemented(self: Module, *inputs: Any, **options: Any) -> NoReturn:
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


class Module(StateDict):
    """A function with state: parameters, buffers and further modules, which are its attributes.

    A subclass calls `super().__init__()`, sets attributes and gives `forward`; calling the module calls `forward`
    between its hooks. See torch.nn.Module; the differences are in docs/torch.md.
    """

    forward: Callable[..., Any] = _unimplemented
    call_super_init = False
    _step: Any = None  # the captured steps of a compiled module
    dump_patches = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks"):
            object.__setattr__(self, name, {})

    # Calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if capture_state.capture is None:
            if self._step is not None:
                return self._step(*args, **kwargs)
            hooks = self._forward_pre_hooks or self._forward_hooks or self._backward_hooks or self._backward_pre_hooks
            if not hooks and not used.origins:
                return self.forward(*args, **kwargs)  # What _call would come to.
        return self._call(*args, **kwargs)

    def _call(self, *args: Any, **kwargs: Any) -> object:
        if capture_state.capture is not None:
            capture_state.capture.modules[id(self)] = self
        if self._forward_pre_hooks or self._forward_hooks or self._backward_hooks or self._backward_pre_hooks:
            return self._call_with_hooks(args, kwargs)
        return self._forward(args, kwargs)

    def _forward(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        if thread_state.origins is not None:
            return thread_state.origins.call(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        finished = False
        result: Any = None
        try:
            for hook, with_kwargs in list(self._forward_pre_hooks.values()):
                if with_kwargs:
                    changed = hook(self, args, kwargs)
                    args, kwargs = (args, kwargs) if changed is None else changed
                else:
                    changed = hook(self, args)
                    if changed is not None:
                        args = changed if isinstance(changed, tuple) else (changed,)
            watch = None
            if self._backward_hooks or self._backward_pre_hooks:
                watch = _BackwardWatch(self)
                args = watch.inputs(args)
            result = self._forward(args, kwargs)
            for hook, with_kwargs, _ in list(self._forward_hooks.values()):
                changed = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
                result = result if changed is None else changed
            finished = True
            return result if watch is None else watch.outputs(result)
        finally:
            if not finished:
                for hook, with_kwargs, always in list(self._forward_hooks.values()):
                    if always:
                        _ = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """hook(module, args) before each call; what it returns, if not None, replaces the arguments."""
        return _add(self._forward_pre_hooks, (hook, with_kwargs), prepend=prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """hook(module, args, output) after each call; what it returns, if not None, replaces the output."""
        return _add(self._forward_hooks, (hook, with_kwargs, always_call), prepend=prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """hook(module, grad_output) when the gradients of the outputs are known; it may return others."""
        return _add(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """hook(module, grad_input, grad_output) when the gradients of the inputs are known; it may return others."""
        return _add(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """register_full_backward_hook by its name of older programs."""
        return self.register_full_backward_hook(hook)

    # Modes

    def train(self, mode: bool = True) -> Self:
        """Sets training mode for this module and all below it: it changes dropout, batch norm and the like."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Sets evaluation mode."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Whether gradients are computed for all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of all parameters, or fills them with zeros."""
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad = parameter.grad.detach()
                parameter.grad.zero_()

    def apply(self, fn: Callable[[Any], Any]) -> Self:
        """Calls `fn` with every module below this one, then with this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # Conversion

    def _apply(self, fn: Convert, recurse: bool = True) -> Self:
        """Replaces every tensor by fn(tensor), in place: parameters keep their identity."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        with grad_mode.no_grad():
            for parameter in self._parameters.values():
                if parameter is None:
                    continue
                parameter.data = fn(parameter.detach())
                if parameter.grad is not None:
                    parameter.grad = fn(parameter.grad)
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = fn(buffer)
        capture_state.changes += 1
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Moves all tensors: to(device), to(dtype), to(device, dtype) or to(tensor); only floating ones change dtype.

        Raises: TypeError for a dtype that is not floating.
        """
        device, dtype = _destination(*args, **kwargs)
        if dtype is not None and dtype.kind is not Kind.FLOAT:
            raise TypeError(f"nn.Module.to only accepts floating point dtypes, but got desired dtype={dtype}")

        def moved(tensor: Tensor) -> Tensor:
            found: Tensor = tensor.to(
                device=tensor.device if device is None else device,
                dtype=dtype if dtype is not None and tensor.dtype.kind is Kind.FLOAT else tensor.dtype,
            )
            return found

        return self._apply(moved)

    def type(self, dst_type: DType) -> Self:
        """Casts all tensors, of whole numbers too."""
        return self._apply(lambda tensor: tensor.to(dtype=dst_type))

    def float(self) -> Self:
        return self._cast(dtypes.float32)

    def double(self) -> Self:
        return self._cast(dtypes.float64)

    def half(self) -> Self:
        return self._cast(dtypes.float16)

    def bfloat16(self) -> Self:
        return self._cast(dtypes.bfloat16)

    def _cast(self, dtype: DType) -> Self:
        return self._apply(lambda tensor: tensor.to(dtype=dtype) if tensor.dtype.is_floating_point else tensor)

    def cpu(self) -> Self:
        return self.to("cpu")

    def cuda(self, device: DeviceLike = None) -> Self:
        return self._apply(lambda tensor: tensor.cuda(device))

    def to_empty(self, *, device: DeviceLike, recurse: bool = True) -> Self:
        """Moves all tensors without their values."""
        return self._apply(lambda tensor: tensor.new_empty(tensor.shape, device=device), recurse)

    def share_memory(self) -> Self:
        """Accepted for programs that name it: tensors are not shared between processes."""
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Calls of this module become captured steps; see pywebgpu.compile, which takes the same options."""
        self._step = function.Compiled(self._call)

    def _compiled(self) -> Self:
        """What compile(module) gives: the module itself."""
        self.compile()
        return self

    # Text

    def extra_repr(self) -> str:
        """What stands in the parentheses of repr; subclasses override it."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = [f"({name}): {_indented(repr(module))}" for name, module in self._modules.items()]
        own = extra.split("\n") if extra else []
        if not lines and len(own) <= 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join([*own, *lines]) + "\n)"

    _repr_html_ = later("pywebgpu.display.modules", "module_html")
    __treescope_repr__ = later("pywebgpu.display.modules", "treescope")

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in ("_backward_pre_hooks", "_state_dict_pre_hooks", "_load_pre_hooks", "_load_post_hooks"):
            self.__dict__.setdefault(name, {})


def _indented(text: str) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *("  " + line for line in rest)])


def _add(hooks: dict[int, Any], entry: object, *, prepend: bool) -> RemovableHandle:
    handle = RemovableHandle(hooks, entry)  # type: ignore[arg-type]  # It only keeps it.
    if prepend:
        for key in list(hooks)[:-1]:
            hooks[key] = hooks.pop(key)
    return handle


def _destination(*args: Any, **kwargs: Any) -> tuple[Any, DType | None]:
    """Device and dtype out of the forms that torch takes."""
    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    for value in args:
        if isinstance(value, DType):
            dtype = value
        elif isinstance(value, Tensor):
            device, dtype = value.device, value.dtype
        elif isinstance(value, str | devices.device):
            device = value
        elif value is not None and not isinstance(value, bool):
            raise TypeError(f"to() received an invalid argument of type {type(value).__name__}")
    return device, dtype


class _BackwardWatch:
    """Collects the gradients of one call's inputs and outputs, and runs the module's backward hooks.

    Inputs and outputs get identities whose tensor hooks report the gradient. Only where one input wants a gradient can
    a hook replace it, since the gradients of several arrive one by one.
    """

    def __init__(self, module: Module) -> None:
        self._module = module
        self._grad_output: list[Any] = []
        self._grad_input: list[Any] = []
        self._waiting = 0

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        self._grad_input = [None] * len(args)
        out = list(args)
        for position, value in enumerate(args):
            if isinstance(value, Tensor) and value.requires_grad and grad_mode.is_grad_enabled():
                out[position] = value.view_as(value)
                out[position].register_hook(lambda grad, position=position: self._arrived(position, grad))
                self._waiting += 1
        return tuple(out)

    def outputs(self, result: object) -> object:
        single = isinstance(result, Tensor)
        values: list[Any] = [result] if single else list(result) if isinstance(result, tuple | list) else []
        self._grad_output = [None] * len(values)
        for position, value in enumerate(values):
            if isinstance(value, Tensor) and value.requires_grad:
                values[position] = value.view_as(value)
                values[position].register_hook(lambda grad, position=position: self._left(position, grad))
        if not values:
            return result
        return values[0] if single else type(result)(values)  # type: ignore[call-arg]

    def _left(self, position: int, grad: Tensor) -> Tensor | None:
        self._grad_output[position] = grad
        for hook in list(self._module._backward_pre_hooks.values()):
            changed = hook(self._module, tuple(self._grad_output))
            if changed is not None:
                self._grad_output = list(changed) if isinstance(changed, tuple | list) else [changed]
        if self._waiting == 0 and all(g is not None for g in self._grad_output):
            self._run()
        left: Tensor | None = self._grad_output[position]
        return left

    def _arrived(self, position: int, grad: Tensor) -> Tensor | None:
        self._grad_input[position] = grad
        self._waiting -= 1
        if self._waiting:
            return None
        changed = self._run()
        return None if changed is None else changed[position]

    def _run(self) -> Sequence[Tensor | None] | None:
        found: Sequence[Tensor | None] | None = None
        for hook in list(self._module._backward_hooks.values()):
            changed = hook(self._module, tuple(self._grad_input), tuple(self._grad_output))
            if changed is not None:
                found = changed if isinstance(changed, tuple | list) else (changed,)
                self._grad_input = list(found)
        return found
