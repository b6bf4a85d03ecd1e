"""Signatures of what nodes call, and arguments in their terms."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from pywebgpu.fx import names


class ArgsKwargsPair(NamedTuple):
    """Arguments of a call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def get_signature_for_torch_op(op: Callable[..., Any], return_schemas: bool = False) -> Any:
    """The signatures of a function of this library, in a list; None of any other. With return_schemas: no schemas."""
    signatures = [inspect.signature(inspect.unwrap(op))] if names.is_ours(op) else None
    return (signatures, None) if return_schemas else signatures


def check_for_mutable_operation(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raises RuntimeError for a call that writes to `out=`."""
    if kwargs.get("out") is not None and getattr(target, "__module__", None) == "pywebgpu":
        raise RuntimeError(
            f"Tried to trace mutable operation aten::{target.__name__}.out. FX only supports functional code, so "
            "operations that mutate operands in-place (e.g. via `out` arguments) are not supported"
        )


def normalize_function(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments with defaults, by names from behind the positional ones or all; None for variadic functions."""
    signature = inspect.signature(inspect.unwrap(target))
    return _normalized(signature, args, kwargs or {}, only_names=normalize_to_only_use_kwargs)


def normalize_module(
    root: Any,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """As normalize_function, for the module at a path; None for one that is not of torch.nn."""
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(
            f"Tried to normalize node with target {target} but root did not have that target!"
        ) from error
    if getattr(names.torch().nn, type(module).__name__, None) is not type(module):
        return None
    signature = inspect.signature(inspect.unwrap(module.forward))
    return _normalized(signature, args, kwargs or {}, only_names=normalize_to_only_use_kwargs)


def _normalized(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], *, only_names: bool
) -> ArgsKwargsPair | None:
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if any(parameter.kind not in plain for parameter in signature.parameters.values()):
        return None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    items = [*bound.arguments.items()]
    count = 0 if only_names else len(args)
    return ArgsKwargsPair(tuple(value for _, value in items[:count]), dict(items[count:]))
