"""What a Module holds, and the walks through it: parameters, buffers and modules by name.

A class of its own because the rest of Module (calls, hooks, conversion, state dicts) only needs these walks.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from pywebgpu.ir.observer import changed, share
from pywebgpu.nn.parameter import Buffer, Parameter
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.nn.module import Module


T = TypeVar("T")
# Hooks of all modules that get something, by its kind.
registering: dict[str, dict[int, Callable[..., Any]]] = share("hooks of registrations", {})


class Computed:
    """A tensor of a module that is computed where it is asked for."""

    def compute_weight(self, module: ModuleTree) -> Tensor:
        raise NotImplementedError


def _told(value: object) -> str:
    return str(value.type()) if isinstance(value, Tensor) else type(value).__name__


def _registered(kind: str, module: ModuleTree, name: str, value: T) -> T:
    """The value, or what hooks made of it."""
    for hook in list(registering.get(kind, {}).values()) if registering else ():
        replacement: T | None = hook(module, name, value)
        value = value if replacement is None else replacement
    return value


# Attributes of a module that are made when somebody asks for them: what has no hooks is made, and looked at, faster.
CALL_HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
HOOKS = (
    *CALL_HOOKS,
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


class _Hooks:
    """Such an attribute. Found before `__getattr__` is asked, by which modules around others pass on what they lack."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, module: ModuleTree | None, _: type) -> dict[int, Any] | _Hooks:
        if module is None:
            return self
        if "_parameters" not in module.__dict__:
            raise AttributeError(self._name)  # __getattr__ says it in full.
        hooks: dict[int, Any] = module.__dict__.setdefault(self._name, {})
        return hooks


class ModuleTree:
    """Attributes that are parameters, buffers or modules are registered under their name."""

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _computed_tensors: dict[str, Computed]  # only where there are some

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or kwargs:
            raise TypeError(f"{type(self).__name__}.__init__() takes no further arguments, got {args or kwargs}")
        for name in ("_parameters", "_buffers", "_modules"):
            object.__setattr__(self, name, {})
        object.__setattr__(self, "_non_persistent_buffers_set", set())
        object.__setattr__(self, "training", True)

    # Attributes

    def __setattr__(self, name: str, value: object) -> None:
        changed()
        if "_parameters" not in self.__dict__:
            if isinstance(value, Parameter | ModuleTree | Buffer):
                raise AttributeError(f"cannot assign {name!r} before Module.__init__() call")
            object.__setattr__(self, name, value)
        elif isinstance(value, Parameter):
            self._forget_attribute(name, keep=self._parameters)
            self.register_parameter(name, value)
        elif isinstance(value, ModuleTree):
            self._forget_attribute(name, keep=self._modules)
            self._modules[name] = _registered("module", self, name, value)
        elif name in self._parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign {_told(value)!r} as parameter {name!r} (torch.nn.Parameter or None expected)"
                )
            self._parameters[name] = None
        elif name in self._modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign {type(value).__name__!r} as child module {name!r} (torch.nn.Module or None "
                    f"expected)"
                )
            self._modules[name] = None
        elif isinstance(value, Buffer):
            self._forget_attribute(name, keep=self._buffers)
            self.register_buffer(name, value, persistent=value.persistent)
        elif name in self._buffers:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign {type(value).__name__!r} object to buffer {name!r} (torch.Tensor or None required)"
                )
            self._buffers[name] = value
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for kind in ("_parameters", "_modules", "_buffers"):
            held = own.get(kind)
            if held is not None and name in held:
                return held[name]
        if name in own.get("_computed_tensors", ()):
            return own["_computed_tensors"][name].compute_weight(self)
        if name.endswith(("_with_kwargs", "_always_called")) and name.startswith("_forward_"):
            return import_module("pywebgpu.nn.hooks").marked(self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _hooks_of_kind(self, name: str) -> list[Any]:
        """Those that there are under one of these names."""
        return list(self.__dict__.get(name, {}).values())

    def __delattr__(self, name: str) -> None:
        changed()
        for held in (self._parameters, self._buffers, self._modules):
            if name in held:
                del held[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*super().__dir__(), *self._parameters, *self._buffers, *self._modules}
        return sorted(name for name in names if not name[:1].isdigit())

    def _forget_attribute(self, name: str, keep: object = None) -> None:
        """Takes `name` away from everything but `keep`, which then replaces it in its place."""
        for held in (self.__dict__, self._parameters, self._buffers, self._modules):
            if held is not keep:
                held.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter under a name, or reserves the name with None.

        Raises: KeyError for a name that is taken, empty or has a dot; TypeError for what is no Parameter.
        """
        self._check_free_name("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign {type(param).__name__!r} object to parameter {name!r} (torch.nn.Parameter or None "
                f"required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter {name!r}. Model parameters must be created explicitly. To "
                f"express {name!r} as a function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = _registered("parameter", self, name, param)
        changed()

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is state, but not trained. persistent: whether the state dict holds it.

        Raises: KeyError for a name that is taken, empty or has a dot; TypeError for what is no Tensor.
        """
        self._check_free_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign {type(tensor).__name__!r} object to buffer {name!r} (torch Tensor or None required)"
            )
        self._buffers[name] = _registered("buffer", self, name, tensor)
        changed()
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a child module under a name, or reserves the name with None."""
        self._check_free_name("module", name, self._modules)
        if module is not None and not isinstance(module, ModuleTree):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        self._modules[name] = _registered("module", self, name, module)

    register_module = add_module

    def _check_free_name(self, kind: str, name: str, held: Container[str]) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in held and hasattr(self, name):
            raise KeyError(f"attribute {name!r} already exists")

    # By path

    def get_submodule(self, target: str) -> Module:
        """The module at a path like "layers.0.norm". Raises AttributeError when there is none."""
        current: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(current, name):
                raise AttributeError(f"{type(current).__name__} has no attribute `{name}`")
            current = getattr(current, name)
            if not isinstance(current, ModuleTree):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return current  # type: ignore[no-any-return]

    def set_submodule(self, target: str, module: Module | None, strict: bool = False) -> None:
        """Puts a module at a path."""
        path, _, name = target.rpartition(".")
        if not target:
            raise ValueError("Cannot set the submodule without a target name!")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path like "layers.0.weight". Raises AttributeError when there is none."""
        parameter = self._object_at_path(target)
        if not isinstance(parameter, Parameter):
            raise AttributeError(f"`{target}` is not an nn.Parameter")
        return parameter

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path. Raises AttributeError when there is none."""
        path, _, name = target.rpartition(".")
        buffer = self._object_at_path(target)
        if name not in self.get_submodule(path)._buffers:
            raise AttributeError(f"`{target}` is not a buffer")
        return buffer  # type: ignore[return-value]

    def _object_at_path(self, target: str) -> object:
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
        return getattr(parent, name)

    # Walks

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """This module and all below it, each once, with their paths."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}{'.' if prefix else ''}{name}", remove_duplicate)

    def modules(self) -> Iterator[Any]:
        for _, module in self.named_modules():
            yield module

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The modules directly below, each once."""
        seen: set[Any] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Any]:
        for _, module in self.named_children():
            yield module

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters, each once, with their paths."""
        yield from self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """All buffers, each once, with their paths."""
        yield from self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def _named_members(
        self, items: Callable[[Any], Iterable[tuple[str, Any]]], prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        walk = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in walk:
            for name, value in items(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield f"{path}{'.' if path else ''}{name}", value


for _name in HOOKS:
    setattr(ModuleTree, _name, _Hooks(_name))
