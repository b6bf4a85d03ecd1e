"""What can be seen of a value, as data: types, structure, numbers, gradients and whether there is one, attributes.

`inner` holds what only the same library can be asked for: how it keeps the state of its optimizers, for one.
"""

from __future__ import annotations

import collections
import enum
import itertools
import operator
import random
import re
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Reader = Callable[[Any], Any]  # of a tensor: a list of its numbers, or a function that gives it later


@dataclass(slots=True)
class Seen:
    kind: str
    value: Any = None
    parts: dict[str, Seen] = field(default_factory=dict)
    inner: dict[str, Seen] = field(default_factory=dict)


class Eye:
    """Looks at values of one library. `functions` are objects that stand for functions; there may be more later."""

    def __init__(self, torch: Any, read: Reader, functions: list[Any]) -> None:
        self.torch, self.read, self.functions = torch, read, functions
        self.optimizer = torch.optim.Optimizer
        self.known: dict[int, tuple[int, Any]] = {}  # what was seen, which has to stay while its id counts

    def look(self, value: Any) -> Seen:
        self.known = {}
        return self._seen(value)

    def _seen(self, value: Any) -> Seen:
        kind = type(value).__name__
        if value is None or isinstance(value, bool | int | float | complex | str | bytes | range | slice | enum.Enum):
            return Seen(kind, value.hex() if type(value) is float else _text(value))
        if isinstance(value, self.torch.Tensor):
            if isinstance(type(value).__getattribute__, types.FunctionType):  # a program's own
                return Seen(f"{kind} that answers for itself")
            return self._tensor(value, kind)
        if isinstance(
            value, types.FunctionType | types.BuiltinFunctionType | types.MethodType | type | types.ModuleType
        ):
            return Seen("name")
        if any(value is one for one in self.functions):
            return Seen("name")
        if id(value) in self.known:
            return Seen("again", self.known[id(value)][0])
        self.known[id(value)] = len(self.known), value
        if isinstance(value, np.ndarray) and value.dtype.hasobject:
            items = value.ravel().tolist()
            return Seen(f"{kind} {value.shape}", None, {f"[{at}]": self._seen(v) for at, v in enumerate(items)})
        if isinstance(value, np.ndarray | np.generic):
            return Seen(f"{kind} {value.dtype} {value.shape}", value.tolist())
        try:
            return self._container(value, kind) or self._object(value, kind)
        except Exception as error:  # Its own methods raise.
            return Seen(f"{kind} that raises {type(error).__name__}")

    def _tensor(self, value: Any, kind: str) -> Seen:
        is_leaf = value.is_leaf
        tag = f"{kind} {str(value.dtype).rpartition('.')[2]} {tuple(value.shape)}"
        if is_leaf and value.requires_grad:
            tag += " requires_grad"
        seen = Seen(tag, self.read(value))
        if is_leaf and not is_inference(value):
            seen.parts["grad"] = Seen("NoneType") if value.grad is None else self._tensor(value.grad, "Tensor")
        for name, item in getattr(value, "__dict__", {}).items():
            if name.startswith("user"):
                seen.parts[name] = self._seen(item)
        return seen

    def _container(self, value: Any, kind: str) -> Seen | None:
        if isinstance(value, list | tuple | collections.deque):
            return Seen(f"{kind} of {len(value)}", None, {f"[{at}]": self._seen(v) for at, v in enumerate(value)})
        if isinstance(value, dict | types.MappingProxyType):
            items = {
                f"[{key!r}]" if isinstance(key, str | float) else f"<{at}>": item
                for at, (key, item) in enumerate(value.items())
            }
            return Seen(f"{kind} of {len(value)}", None, {name: self._seen(item) for name, item in items.items()})
        if isinstance(value, set | frozenset):
            return Seen(kind, sorted(map(_text, value)))
        if isinstance(value, random.Random):
            return Seen(kind, hash(value.getstate()))
        if isinstance(value, np.random.Generator):
            return Seen(kind, repr(value.bit_generator.state))
        if isinstance(value, itertools.count):
            return Seen(kind, repr(value))
        if hasattr(value, "__next__"):
            return Seen(kind, operator.length_hint(value))
        return None

    def _object(self, value: Any, kind: str) -> Seen:
        torch = self.torch
        if isinstance(value, torch.nn.Module):
            return self._module(value, kind)
        if isinstance(value, self.optimizer):
            return self._optimizer(value, kind)
        if isinstance(value, torch.Generator):
            return Seen(kind, None, {}, {"state": self._seen(value.get_state())})
        if hasattr(value, "get_last_lr"):
            epoch = getattr(value, "last_epoch", None)  # A chain of schedules has none.
            return Seen(kind, None, {"rates": self._seen(value.get_last_lr()), "epoch": self._seen(epoch)})
        slots = [name for kind in type(value).__mro__ for name in _listed(getattr(kind, "__slots__", ()))]
        names = {name: getattr(value, name) for name in slots if hasattr(value, name) and not name.startswith("__")}
        names |= getattr(value, "__dict__", {})
        shown = {name: self._seen(item) for name, item in names.items()}
        if isinstance(value, Exception):
            shown["args"] = self._seen(value.args)
        return Seen(kind, None, shown)

    def _module(self, value: Any, kind: str) -> Seen:
        seen = Seen(kind, None, {"training": self._seen(value.training)})
        for group in ("_parameters", "_buffers", "_modules"):
            for name, item in getattr(value, group).items():
                seen.parts[name] = self._seen(item)
        if not type(value).__module__.startswith(("torch", "pywebgpu")):
            hidden = ("_", "training", *seen.parts)
            for name, item in vars(value).items():
                if not name.startswith(hidden):
                    seen.parts[name] = self._seen(item)
        return seen

    def _optimizer(self, value: Any, kind: str) -> Seen:
        groups, states = {}, {}
        for at, group in enumerate(value.param_groups):
            options = {name: item for name, item in group.items() if name != "params"}
            groups[f"group {at}"] = self._seen({"lr": options.get("lr"), "size": len(group["params"])})
            states[f"group {at}"] = self._seen(options)
            for number, p in enumerate(group["params"]):
                if p in value.state:
                    states[f"state {at}.{number}"] = self._seen(dict(value.state[p]))
        return Seen(kind, None, groups, states)


def _text(value: object) -> str:
    """What an object says of itself, without where in memory it is."""
    try:
        return re.sub(r"0x[0-9a-f]+", "0x", repr(value))
    except Exception as error:
        return f"raises {type(error).__name__}"


def is_inference(value: Any) -> bool:
    return bool(getattr(value, "is_inference", lambda: False)())


def _listed(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def difference(one: Seen, other: Seen, tolerance: float, *, same_library: bool) -> str | None:
    """Where the two differ first, and how; None where they do not."""
    if one.kind != other.kind:
        return f": {one.kind} and {other.kind}"
    if not _equal(one.value, other.value, tolerance):
        return f": {one.kind} {_short(one.value)} and {_short(other.value)}"
    pairs = [(one.parts, other.parts)] + ([(one.inner, other.inner)] if same_library else [])
    for ours, theirs in pairs:
        if ours.keys() != theirs.keys():
            return f": {one.kind} with {sorted(ours)} and with {sorted(theirs)}"
        for name, part in ours.items():
            found = difference(part, theirs[name], tolerance, same_library=same_library)
            if found is not None:
                return (name if name.startswith("[") else f".{name}") + found
    return None


def _equal(one: Any, other: Any, tolerance: float) -> bool:
    one, other = (value() if callable(value) else value for value in (one, other))
    if isinstance(one, str) or one is None:
        return bool(one == other) or (isinstance(one, str) and tolerance > 1e-5 and _near(one, other, tolerance))
    if type(one) is list and one == other:
        return True
    try:
        return bool(np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True))
    except (TypeError, ValueError):
        return bool(one == other)


def _near(one: str, other: Any, tolerance: float) -> bool:
    """Numbers of the host which follow from other libraries' arithmetic."""
    try:
        return bool(
            np.isclose(float.fromhex(one), float.fromhex(other), rtol=tolerance, atol=tolerance, equal_nan=True)
        )
    except (TypeError, ValueError):
        return False


def _short(value: Any) -> str:
    text = repr(value() if callable(value) else value)
    return text if len(text) < 200 else text[:197] + "..."
