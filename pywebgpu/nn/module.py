"""Module: the base class of layers and models. Here: calls and their hooks, modes, conversion, text."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, Self

from pywebgpu import devices, dtypes
from pywebgpu.autodiff import grad_mode
from pywebgpu.dtypes import DType, Kind
from pywebgpu.ir.graph import thread_state, used
from pywebgpu.ir.observer import changed, share
from pywebgpu.nn.parameter import conversion
from pywebgpu.nn.state import EXTRA, StateDict
from pywebgpu.nn.state import _IncompatibleKeys as _IncompatibleKeys
from pywebgpu.nn.tree import CALL_HOOKS, HOOKS, registering
from pywebgpu.step_capture import function
from pywebgpu.tensor.grad_accumulator import RemovableHandle
from pywebgpu.tensor.methods import later
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.tensor.factory_options import DeviceLike

Convert = Callable[[Tensor], Tensor]
everywhere: dict[str, dict[int, Any]] = share("hooks of every module", {})  # by kind


def _unimplemented(self: Module, *inputs: Any, **options: Any) -> NoReturn:
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


class Module(StateDict):
    """A function with state: parameters, buffers and further modules, which are its attributes.

    A subclass calls `super().__init__()`, sets attributes and gives `forward`; calling the module calls `forward`
    between its hooks. See torch.nn.Module; the differences are in docs/torch.md.
    """

    forward: Callable[..., Any] = _unimplemented
    call_super_init = False
    _compiled_call_impl: Any = None  # the captured steps of a compiled module
    dump_patches = False

    # Calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if thread_state.observer is None:
            if self._compiled_call_impl is not None:
                return self._compiled_call_impl(*args, **kwargs)
            if not used.origins and not _are_hooked(self.__dict__):
                return self.forward(*args, **kwargs)  # What _call_impl would come to.
        return self._call_impl(*args, **kwargs)

    def _call_impl(self, *args: Any, **kwargs: Any) -> object:
        if thread_state.observer is not None:
            thread_state.observer.calls(self)
        if _are_hooked(self.__dict__):
            return import_module("pywebgpu.nn.hooks").call(self, args, kwargs)
        return self._slow_forward(args, kwargs)

    def _slow_forward(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        if thread_state.origins is not None:
            return thread_state.origins.call(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """hook(module, args) before each call; what it returns, if not None, replaces the arguments."""
        return _add(self._forward_pre_hooks, (hook, True) if with_kwargs else hook, prepend=prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """hook(module, args, output) after each call; what it returns, if not None, replaces the output."""
        is_plain = not with_kwargs and not always_call
        return _add(self._forward_hooks, hook if is_plain else (hook, with_kwargs, always_call), prepend=prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """hook(module, grad_output) when the gradients of the outputs are known; it may return others."""
        return _add(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """hook(module, grad_input, grad_output) when the gradients of the inputs are known; it may return others."""
        import_module("pywebgpu.nn.hooks").require_one_kind(self._backward_hooks, full=True)
        return _add(self._backward_hooks, (hook, True), prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """hook(module, grad_input, grad_output) of the last function of the call, as older programs have it."""
        import_module("pywebgpu.nn.hooks").require_one_kind(self._backward_hooks, full=False)
        return _add(self._backward_hooks, (hook, False), prepend=False)

    # Modes

    def train(self, mode: bool = True) -> Self:
        """Sets training mode for this module and all below it: it changes dropout, batch norm and the like."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        if thread_state.observer is not None:
            thread_state.observer.set_mode(self.__dict__, mode)
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
        """Replaces every tensor by fn(tensor), in place: parameters keep their identity, but on and off device meta."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        with grad_mode.no_grad():
            for name, parameter in tuple(self._parameters.items()):
                if parameter is None:
                    continue
                value = fn(parameter.detach())
                if conversion.overwrites or conversion.swaps or value.is_meta is not parameter.is_meta:
                    import_module("pywebgpu.nn.exchange").replace(self, name, value, fn)
                    continue
                parameter.data = value
                grad = parameter.grad
                if grad is not None and grad.is_sparse:
                    parameter.grad = fn(grad)
                elif grad is not None:
                    grad.data = fn(grad)
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = fn(buffer)
        changed()
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Moves all tensors: to(device), to(dtype), to(device, dtype) or to(tensor); only floating ones change dtype.

        memory_format: that of what has 4 or 5 axes.
        Raises: TypeError for a dtype that is not floating.
        """
        device, dtype = _destination(*args, **kwargs)
        memory_format = kwargs.get("memory_format")
        if dtype is not None and dtype.kind is not Kind.FLOAT:
            raise TypeError(f"nn.Module.to only accepts floating point dtypes, but got desired dtype={dtype}")

        if dtype is not None and dtype.is_complex:
            import_module("pywebgpu.nn.exchange").warn_of_complex()

        def moved(tensor: Tensor) -> Tensor:
            if tensor.is_meta and device is not None and devices.device(device).type != "meta":
                raise NotImplementedError(import_module("pywebgpu.devices.meta").NO_MODULE)
            converted: Tensor = tensor.to(
                device=tensor.device if device is None else device,
                dtype=dtype if dtype is not None and tensor.dtype.kind is Kind.FLOAT else tensor.dtype,
            )
            if memory_format is not None and tensor.ndim in (4, 5):
                return converted.to(memory_format=memory_format)
            return converted

        return self._apply(moved)

    def type(self, dst_type: DType) -> Self:
        """Casts all tensors, of whole numbers too."""
        return self._apply(lambda tensor: tensor.to(dtype=dst_type))

    def float(self) -> Self:
        return self._cast_floating(dtypes.float32)

    def double(self) -> Self:
        return self._cast_floating(dtypes.float64)

    def half(self) -> Self:
        return self._cast_floating(dtypes.float16)

    def bfloat16(self) -> Self:
        return self._cast_floating(dtypes.bfloat16)

    def _cast_floating(self, dtype: DType) -> Self:
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
        for tensor in (*self.parameters(), *self.buffers()):
            tensor.share_memory_()
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Calls of this module become captured steps; see pywebgpu.compile, which takes the same options."""
        self._compiled_call_impl = function.Compiled(self._call_impl)

    def _compiled_in_place(self) -> Self:
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

    def __getstate__(self) -> dict[str, Any]:
        return {name: {} for name in HOOKS} | self.__dict__  # PyTorch's modules, which may load this, ask for each.

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update((name, value) for name, value in state.items() if name not in HOOKS or value)


def _are_hooked(own: dict[str, Any]) -> bool:
    """Whether a call of a module with these attributes has hooks, its own or those of every module."""
    before, after = "_forward_pre_hooks" in own, "_forward_hooks" in own
    if not (everywhere or before or after or "_backward_hooks" in own or "_backward_pre_hooks" in own):
        return False  # So it is of nearly all. What has hooks, or had some, is looked at further.
    for kind in CALL_HOOKS:
        if own.get(kind):
            return True
    return any(hooks_everywhere().values())


def hooks_everywhere() -> dict[str, dict[int, Any]]:
    """The hooks of every module, by kind: those of a dict, too, that a program assigned to PyTorch's name of them."""
    own = globals()
    for kind in CALL_HOOKS:
        if f"_global{kind}" in own:
            everywhere[kind[1:]] = own.pop(f"_global{kind}")
    return everywhere


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
        elif isinstance(value, str | int | devices.device) and not isinstance(value, bool):
            device = value
        elif value is not None and not isinstance(value, bool):
            raise TypeError(f"to() received an invalid argument of type {type(value).__name__}")
    return device, dtype


def __getattr__(name: str) -> object:
    """PyTorch's functions that give every module a hook, which few programs use."""
    if name.startswith("register_module_"):
        return getattr(import_module("pywebgpu.nn.hooks"), name)
    if name == "_EXTRA_STATE_KEY_SUFFIX":
        return EXTRA
    kind = name.removeprefix("_global_").removesuffix("_always_called")
    if kind != name and f"_{kind}" in CALL_HOOKS:
        hooks = hooks_everywhere().setdefault(kind, OrderedDict())
        if not name.endswith("_always_called"):
            return hooks
        return OrderedDict((number, True) for number, entry in hooks.items() if type(entry) is tuple)
    kind = name.removeprefix("_global_").removesuffix("_registration_hooks")
    if kind in ("buffer", "module", "parameter"):
        return registering.setdefault(kind, {})
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
