"""Parameters as functions of other tensors: module.weight is computed by a chain of modules at each access."""

import contextlib
import copy
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from pywebgpu.autodiff import grad_mode
from pywebgpu.ir.graph import thread_state
from pywebgpu.nn.container import ModuleDict, ModuleList
from pywebgpu.nn.module import Module
from pywebgpu.nn.parameter import Parameter
from pywebgpu.tensor.tensor import Tensor


class _Cache:
    """What was computed inside of `cached`."""

    def __init__(self) -> None:
        self.depth = 0
        self.values: dict[tuple[int, str], Tensor] = {}


_cache = _Cache()


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Inside, each parametrized tensor is computed once, at its first access."""
    _cache.depth += 1
    thread_state.n_ordinary += 1
    try:
        yield
    finally:
        _cache.depth -= 1
        thread_state.n_ordinary -= 1
        if not _cache.depth:
            _cache.values.clear()


class ParametrizationList(ModuleList):
    """The modules that a tensor goes through, and what goes in: `original`, or `original0`, `original1`, ...

    Raises: ValueError where what comes out is no tensor, or, unless `unsafe`, of another shape or dtype.
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        new: Any = original
        with grad_mode.no_grad():
            for module in reversed(modules):
                if hasattr(module, "right_inverse"):
                    with contextlib.suppress(NotImplementedError):
                        new = module.right_inverse(new)
        if not isinstance(new, Tensor | Sequence):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if isinstance(new, Tensor):
            for what, had, has in (("dtype", dtype, new.dtype), ("device", original.device, new.device)):
                if had != has:
                    raise ValueError(
                        f"When `right_inverse` outputs one tensor, it may not change the {what}.\n"
                        f"original.{what}: {had}\nright_inverse(original).{what}: {has}"
                    )
            _set(original, new)
            _register(self, "original", original)
        else:
            for index, part in enumerate(new):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                        f"Got element {index} of the sequence with type {type(part).__name__}."
                    )
                own = Parameter(part, original.requires_grad) if isinstance(original, Parameter) else part
                _register(self, f"original{index}", own.requires_grad_(original.requires_grad))
        if not unsafe:
            _require(self(), "parametrized", shape=shape, dtype=dtype)

    def right_inverse(self, value: object) -> None:
        """Sets the originals so that the chain gives `value`, by the right_inverse of each module, the last first."""
        with grad_mode.no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
        if self.is_tensor:
            if not isinstance(value, Tensor):
                raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
            value = [value]
        if not isinstance(value, Sequence):
            raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
        if len(value) != self.ntensors:
            raise ValueError(
                f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. "
                f"Got a sequence of length {len(value)}."
            )
        for name, part in zip(self._names(), value, strict=True):
            own = getattr(self, name)
            if own.dtype != part.dtype:
                raise ValueError(
                    f"The tensor returned by `right_inverse` has dtype {part.dtype} "
                    f"while `{name}` has dtype {own.dtype}"
                )
            _set(own, part)

    def forward(self) -> object:
        first, *others = list(self)
        value = first(*(getattr(self, name) for name in self._names()))
        for module in others:
            value = module(value)
        return value

    def _names(self) -> list[str]:
        return ["original"] if self.is_tensor else [f"original{index}" for index in range(self.ntensors)]


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """From now on module.<tensor_name> is what `parametrization` gives of it; the last one registered is applied last.

    Raises: ValueError where the module has no such tensor, or, unless `unsafe`, its shape or dtype would change.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            before = getattr(module, tensor_name)
            computed = parametrization(before)
            _require(computed, f"parametrization(module.{tensor_name})", shape=before.shape, dtype=before.dtype)
            if hasattr(parametrization, "right_inverse"):
                with contextlib.suppress(NotImplementedError):
                    back = parametrization.right_inverse(computed)
                    _require_inverse(back, tensor_name, shape=before.shape, dtype=before.dtype)
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        chain = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            kind = type(module)
            methods: dict[str, object] = {"__getstate__": _refuse_to_pickle, "__deepcopy__": _deepcopy}
            module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), methods)
            module.parametrizations = ModuleDict()
        setattr(type(module), tensor_name, _computed(tensor_name))
        module.parametrizations[tensor_name] = chain
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a tensor of the module, or any, is parametrized."""
    chains = getattr(module, "parametrizations", None)
    if not isinstance(chains, ModuleDict):
        return False
    return len(chains) > 0 if tensor_name is None else tensor_name in chains


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Makes a tensor of the module plain again: its value now, or the original where `leave_parametrized` is False.

    Raises: ValueError where it is not parametrized, or has several originals and is to be one of them.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    chain = module.parametrizations[tensor_name]
    if chain.is_tensor:
        original = chain.original
        if leave_parametrized:
            with grad_mode.no_grad():
                _set(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of a module without its parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Gives another module the parametrizations of one tensor, or of all, with their parameters."""
    if not is_parametrized(from_module):
        return to_module
    for name in [tensor_name] if tensor_name else list(from_module.parametrizations):
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        chain = from_module.parametrizations[name]
        for parametrization in chain:
            register_parametrization(to_module, name, parametrization)
        other = to_module.parametrizations[name]
        for own in chain._names():
            setattr(other, own, getattr(chain, own))
    return to_module


def _computed(tensor_name: str) -> property:
    def value(self: Module) -> object:
        chain = self.parametrizations[tensor_name]
        if not _cache.depth:
            return chain()
        key = (id(self), tensor_name)
        if key not in _cache.values:
            _cache.values[key] = chain()
        return _cache.values[key]

    def set_value(self: Module, new: Tensor) -> None:
        self.parametrizations[tensor_name].right_inverse(new)

    return property(value, set_value)


def _refuse_to_pickle(self: Module) -> NoReturn:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(): save that, and register the "
        "parametrizations again before load_state_dict()"
    )


def _deepcopy(self: Module, memo: dict[int, Any]) -> object:
    """A copy has a class of its own: what is removed from one stays in the other."""
    if id(self) not in memo:
        kind = type(self)
        twin: Any = object.__new__(type(kind.__name__, kind.__bases__, dict(vars(kind))))
        memo[id(self)] = twin
        twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return memo[id(self)]


def _require(value: object, what: str, *, shape: object, dtype: object) -> None:
    if not isinstance(value, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(value).__name__}.")
    _require_equal(
        value, shape, dtype, "Registering a parametrization may not change the {0} of the tensor, unless `unsafe` flag "
        f"is enabled.\nunparametrized {{0}}: {{1}}\n{what} {{0}}: {{2}}",
    )  # fmt: skip


def _require_inverse(value: object, tensor_name: str, *, shape: object, dtype: object) -> None:
    if not isinstance(value, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(value).__name__}")
    _require_equal(
        value, shape, dtype, "The tensor returned by parametrization.right_inverse must have the same {0} as "
        f"module.{tensor_name}, unless the `unsafe` flag is enabled.\nmodule.{tensor_name}.{{0}}: {{1}}\n"
        "returned {0}: {2}",
    )  # fmt: skip


def _require_equal(value: Tensor, shape: object, dtype: object, text: str) -> None:
    """text: what is wrong, of the fact's name, what it has to be, and what it is."""
    for name, wanted, actual in (("dtype", dtype, value.dtype), ("shape", shape, value.shape)):
        if wanted != actual:
            raise ValueError(text.format(name, wanted, actual))


def _set(own: Tensor, value: Tensor) -> None:
    if own is not value:
        own.data = value.detach().clone()


def _register(module: Module, name: str, value: Tensor) -> None:
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)
