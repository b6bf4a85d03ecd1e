"""State dicts: a module's parameters and persistent buffers by path, out and in, in torch's format."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from pywebgpu.nn.tree import ModuleTree
from pywebgpu.tensor.grad_accumulator import RemovableHandle
from pywebgpu.tensor.tensor import Tensor

EXTRA = "_extra_state"


class _IncompatibleKeys(NamedTuple):
    """What load_state_dict did not find, and what it found and did not know."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"

    def __str__(self) -> str:
        return repr(self)


class StateDict(ModuleTree):
    """state_dict and load_state_dict of a module."""

    _version: int = 1

    # Hooks

    def register_state_dict_post_hook(self, hook: Callable[..., object]) -> RemovableHandle:
        """hook(module, state_dict, prefix, metadata) after this module wrote itself into a state dict."""
        with contextlib.suppress(AttributeError):  # A method of an object has no attributes of its own.
            hook._from_public_api = True  # type: ignore[attr-defined]  # It must return None.
        return RemovableHandle(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., object]) -> RemovableHandle:
        """As register_state_dict_post_hook; what it returns, if not None, is the state dict of the module asked."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return RemovableHandle(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., object]) -> RemovableHandle:
        """hook(module, prefix, keep_vars) before this module writes itself into a state dict."""
        return RemovableHandle(self._state_dict_pre_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., object]) -> RemovableHandle:
        """hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors) before loading."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., object], with_module: bool = False
    ) -> RemovableHandle:
        return RemovableHandle(self._load_state_dict_pre_hooks, (with_module, hook))  # type: ignore[arg-type]

    def register_load_state_dict_post_hook(self, hook: Callable[..., object]) -> RemovableHandle:
        """hook(module, incompatible_keys) after loading."""
        return RemovableHandle(self._load_state_dict_post_hooks, hook)

    # Out

    def get_extra_state(self) -> Any:
        """What a subclass wants in its state dict beside tensors."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        """Takes back what get_extra_state gave."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    def state_dict(
        self, *args: Any, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Parameters and persistent buffers by path. The tensors share the module's elements, without history.

        keep_vars: the parameters themselves instead.
        """
        if args:
            arguments: tuple[Any, ...] = (*args, *(destination, prefix, keep_vars)[len(args) :])
            destination, prefix, keep_vars = arguments
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()  # type: ignore[attr-defined]
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._hooks_of_kind("_state_dict_pre_hooks"):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._hooks_of_kind("_state_dict_hooks"):
            result: Any = hook(self, destination, prefix, metadata)
            if result is not None:
                if getattr(hook, "_from_public_api", False):
                    raise RuntimeError("state_dict post-hook must return None")
                destination = result
        return destination

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        for name, tensor in self._persistent_tensors():
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if type(self).get_extra_state is not StateDict.get_extra_state:
            destination[prefix + EXTRA] = self.get_extra_state()

    def _persistent_tensors(self) -> list[tuple[str, Tensor]]:
        buffers = [item for item in self._buffers.items() if item[0] not in self._non_persistent_buffers_set]
        return [(name, tensor) for name, tensor in [*self._parameters.items(), *buffers] if tensor is not None]

    # In

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copies the tensors of `state_dict` into this module's; with `assign` takes them as they are.

        Raises: RuntimeError that lists every tensor of another shape and, when `strict`, every missing and unexpected
        key; TypeError when `state_dict` is no dict.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        copied = OrderedDict(state_dict)
        metadata = getattr(state_dict, "_metadata", None)
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        self._load_state_below(copied, "", metadata, strict, assign, missing, unexpected, errors)
        if strict:
            if unexpected:
                errors.insert(0, f"Unexpected key(s) in state_dict: {_quoted(unexpected)}. ")
            if missing:
                errors.insert(0, f"Missing key(s) in state_dict: {_quoted(missing)}. ")
        if errors:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(errors))
        return _IncompatibleKeys(missing, unexpected)

    def _load_state_below(
        self,
        state: dict[str, Any],
        prefix: str,
        metadata: Mapping[str, Any] | None,
        strict: bool,
        assign: bool,
        missing: list[str],
        unexpected: list[str],
        errors: list[str],
    ) -> None:
        own = {} if metadata is None else dict(metadata.get(prefix[:-1], {}))
        if assign:
            own["assign_to_params_buffers"] = True
        self._load_from_state_dict(state, prefix, own, True, missing, unexpected, errors)
        for name, module in self._modules.items():
            if module is not None:
                below = f"{prefix}{name}."
                part = {key: value for key, value in state.items() if key.startswith(below)}
                module._load_state_below(part, below, metadata, strict, assign, missing, unexpected, errors)
        for hook in self._hooks_of_kind("_load_state_dict_post_hooks"):
            hook(self, _IncompatibleKeys(missing, unexpected))

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Loads this module's own tensors, without its children. Subclasses override it to read older formats."""
        arguments = (state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        import_module("pywebgpu.nn.state_loading").load(self, *arguments)


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)
