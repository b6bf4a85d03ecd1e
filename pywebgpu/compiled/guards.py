"""What a captured step takes for granted, besides its arguments; each guard says in words why it no longer holds."""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from pywebgpu.devices.base import Device
from pywebgpu.live import Tape, plain
from pywebgpu.runtime.storage import Storage, whole_of
from pywebgpu.tensor.base import TensorBase

Guard = Callable[[], str | None]  # None, or the reason
Held = tuple[Any, Storage, Storage, Any]  # a weak reference to a tensor, its storage, the whole of that, its traits
PLAIN = (bool, int, float, str, bytes, complex, type(None))
LARGEST = 256  # items of a container that are looked at; a larger one counts by identity and size
HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


def all_of(tape: Tape, seen: list[Held]) -> list[Guard]:
    """What a step that was recorded on `tape` found: modules, gradients, tensors that it did not make."""
    gradients = [_gradient(leaf, grad) for leaf, grad, read in tape.leaves() if read]
    return [*tape.guards, *(_module(*found) for found in tape.modules.values()), *gradients, _tensors(seen)]


def of_device(device: Device) -> Guard:
    """That it was not lost since: what was loaded on it is gone then, and so are the constants of the step."""
    generation = device.generation
    return lambda: None if device.generation == generation else "the device was lost and opened again"


def of_names(function: Any, given: list[Any]) -> list[Guard]:
    """What stands around a function before it runs: its variables, and what its arguments hold."""
    used = _used(function, given)
    return [*_names(function, set(), used), *(_same(type(v).__name__, lambda v=v: v, used) for v in given)]  # type: ignore[misc]


def _used(function: Any, given: list[Any]) -> frozenset[str]:
    """The names that a function may look up, and those of the functions and methods of its package that it names."""
    owner = getattr(function, "__self__", None)
    around = [_content(cell) for cell in getattr(function, "__closure__", None) or ()]
    kinds = [type(value) for value in (owner, *given, *around) if value is not None and _is_plain_object(value)]
    found: set[str] = set()
    function = getattr(function, "__func__", function)
    globals_of = getattr(function, "__globals__", {})
    waiting = [function]
    seen: set[int] = set()
    while waiting:
        code = getattr(waiting.pop(), "__code__", None)
        codes = [code] if code is not None and id(code) not in seen else []
        while codes:
            code = codes.pop()
            seen.add(id(code))
            found.update(code.co_names)
            codes += [inner for inner in code.co_consts if isinstance(inner, types.CodeType)]
            names = [getattr(kind, name, None) for kind in kinds for name in code.co_names]
            names += [globals_of.get(name) for name in code.co_names]
            waiting += [one for one in names if isinstance(one, types.FunctionType)]
    return frozenset(found)


def _names(function: Any, known: set[int], used: frozenset[str]) -> Iterator[Guard]:
    """What the function's own names stand for, and those of the functions of its package that it names."""
    owner = getattr(function, "__self__", None)
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None or id(function) in known:
        return
    known.add(id(function))
    if owner is not None:
        yield _same(type(owner).__name__, lambda: owner, used)
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        yield from _name(function, name, lambda cell=cell: _content(cell), known, used)  # type: ignore[misc]
    names = function.__globals__
    for name in code.co_names:
        if name in names:
            yield from _name(function, name, lambda name=name: names.get(name), known, used)  # type: ignore[misc]


def tensors_around(function: Any) -> set[int]:
    """The ids of tensors that a function knows by a name of its own."""
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return set()
    values = [*map(_content, function.__closure__ or ()), *map(function.__globals__.get, code.co_names)]
    return {id(value) for value in values if isinstance(value, TensorBase)}


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # It has no value yet.
        return None


def _name(function: Any, name: str, now: Callable[[], Any], known: set[int], used: frozenset[str]) -> Iterator[Guard]:
    value = now()
    if not isinstance(value, types.ModuleType | type):
        yield _same(name, now, used)
    if isinstance(value, types.FunctionType) and _package(value) == _package(function):
        yield from _names(value, known, used)


def _package(function: Any) -> str:
    return str(function.__module__).partition(".")[0]


def _same(name: str, now: Callable[[], Any], used: frozenset[str]) -> Guard:
    """What a name stands for is as it is now: by value, down to the attributes that are `used`; tensors and modules
    are known by identity."""
    was = now()
    facts = _facts(was, 3, used)

    def guard() -> str | None:
        value = now()
        if (value is was and facts is None) or _facts(value, 3, used) == facts:
            return None
        if isinstance(was, PLAIN):
            return f"{name} was {was!r} and is {value!r}"
        return f"{name} is another {type(value).__name__}" if value is not was else f"{name} has other content"

    return guard


def _facts(value: Any, depth: int, used: frozenset[str]) -> Any:
    """All that is plain about a value, to be compared."""
    if isinstance(value, float):
        return float, value.hex()
    if isinstance(value, PLAIN):
        return type(value), value
    if isinstance(value, list | tuple | set | frozenset | dict) and depth:
        if len(value) > LARGEST:
            return id(value), len(value)
        items: Any = value.items() if isinstance(value, dict) else value
        return type(value), [_facts(item, depth - (not isinstance(value, dict)), used) for item in items]
    if hasattr(value, "__array_interface__") and hasattr(value, "tobytes"):
        return id(value), value.dtype.str, value.shape, value.tobytes()
    names = getattr(value, "__dict__", None)
    if names is None or not depth or not _is_plain_object(value):
        return id(value)
    return id(value), [(name, _facts(item, depth - 1, used)) for name, item in list(names.items()) if name in used]


def _is_plain_object(value: Any) -> bool:
    """An object of a program, whose attributes are its state. Modules and optimizers note what they are asked for."""
    if isinstance(value, TensorBase | type | types.ModuleType) or callable(value):
        return False
    return not type(value).__module__.startswith("pywebgpu") and not hasattr(value, "param_groups")


def owned(module: Any) -> Iterator[TensorBase]:
    """The parameters and the buffers of a module itself."""
    for group in ("_parameters", "_buffers"):
        yield from (tensor for tensor in module.__dict__.get(group, {}).values() if tensor is not None)


def facts_of_module(module: Any) -> Any:
    """The plain attributes of a module, its hooks, and the storages of what it owns."""
    names = module.__dict__
    values = {name: plain(value) for name, value in names.items() if isinstance(value, (*PLAIN, TensorBase))}
    hooks = {name: list(names[name].values()) for name in HOOKS if names.get(name)}
    owned = [(group, name) for group in ("_parameters", "_buffers") for name in names.get(group, ())]
    return values, hooks, {(group, name): _storage(names[group][name]) for group, name in owned}


def _module(module: Any, facts: Any) -> Guard:
    """Its plain attributes (training, rates, sizes) and the storages of what it owns are what they were."""
    names, title = module.__dict__, type(module).__name__
    values, hooks, storages = facts

    def guard() -> str | None:
        for name, value in values.items():
            now = names.get(name)
            if now is not value and (isinstance(value, TensorBase) or type(now) is not type(value) or now != value):
                return f"{title}.{name} was {value!r} and is {now!r}"
        for name in HOOKS:
            held = names.get(name)
            if (held or name in hooks) and list(held.values()) != hooks.get(name):
                return f"{title} has other hooks"
        for (group, name), storage in storages.items():
            if _storage(names[group].get(name)) is not storage:
                return f"{title}.{name} has other data"
        return None

    return guard


def _tensors(seen: list[Held]) -> Guard:
    """Tensors that the step read or wrote are there, have their memory, and want a gradient or not, as before."""

    def guard() -> str | None:
        for ref, storage, whole, traits in seen:
            tensor = ref()
            if tensor is None:
                return "a tensor that it reads is gone"
            if tensor._storage is not storage or whole_of(storage) is not whole:
                return f"a tensor of shape {list(tensor.shape)} has other data"
            if (tensor._flag is not traits[0] or tensor._anchor is not None) and tensor._traits() != traits:
                what = "requires_grad" if tensor._flag is not traits[0] else "hooks"
                return f"a tensor of shape {list(tensor.shape)} has other {what}"
        return None

    return guard


def _storage(tensor: TensorBase | None) -> Any:
    return None if tensor is None else tensor._storage


def _gradient(leaf: TensorBase, grad: TensorBase | None) -> Guard:
    storage, held = _storage(grad), weakref.ref(leaf)

    def guard() -> str | None:
        leaf = held()
        if leaf is None:
            return "a tensor that it reads is gone"
        now = leaf._grad
        if _storage(now) is storage:
            return None
        words = "a parameter of shape {} had {} and has {} when the step begins"
        kinds = ["no gradient" if one is None else "a gradient" for one in (grad, now)]
        return words.format(list(leaf.shape), kinds[0], kinds[1] if kinds[0] != kinds[1] else "another one")

    return guard
