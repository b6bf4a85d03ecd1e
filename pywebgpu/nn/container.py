"""Modules that hold modules or parameters: in a row, by number, by name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from operator import index
from typing import TYPE_CHECKING, Any, Self

from pywebgpu.nn.module import Module

if TYPE_CHECKING:
    pass


class _Numbered(Module):
    """Modules under the names "0", "1" and so on."""

    def _key(self, position: int) -> str:
        """The name at a position, which may count from the end."""
        position, n = index(position), len(self._modules)
        if not -n <= position < n:
            raise IndexError(f"index {position} is out of range")
        return list(self._modules)[position]

    def _renumber(self, modules: Iterable[Any]) -> None:
        registered = list(modules)
        self._modules.clear()
        for position, module in enumerate(registered):
            self._modules[str(position)] = module

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __setitem__(self, position: int, module: Module) -> None:
        setattr(self, self._key(position), module)

    def __delitem__(self, position: int | slice) -> None:
        keys = list(self._modules)[position] if isinstance(position, slice) else [self._key(position)]
        self._renumber(module for key, module in self._modules.items() if key not in keys)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, module: Module) -> Self:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, position: int, module: Module) -> Self | None:
        """Adds a module before the one at `position`."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        modules = list(self)
        if not -len(modules) <= position <= len(modules):
            raise IndexError(f"Index out of range: {position}")
        modules.insert(position, module)
        self._renumber(modules)
        return self

    def extend(self, modules: Iterable[Any]) -> Self:
        """Adds modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"extend should be called with an iterable, but got {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self

    def pop(self, position: int = -1) -> Module:
        """Takes a module away and returns it."""
        module: Module = self[position]  # type: ignore[index]  # Both subclasses have __getitem__.
        del self[position]
        return module


class Sequential(_Numbered):
    """Modules called one after the other: Sequential(a, b), or Sequential(OrderedDict) for names."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for position, module in enumerate(args):
                self.add_module(str(position), module)

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input

    def __getitem__(self, position: int | slice) -> Module:
        if isinstance(position, slice):
            return type(self)(OrderedDict(list(self._modules.items())[position]))
        return self._modules[self._key(position)]  # type: ignore[no-any-return]

    def __add__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)

    def __iadd__(self, other: Sequential) -> Self:
        return self.extend(other)

    def __mul__(self, times: int) -> Sequential:
        if times <= 0:
            raise ValueError(f"Non-positive multiplication factor {times} for {type(self)}")
        return Sequential(*(module for _ in range(times) for module in self))

    __rmul__ = __mul__


class ModuleList(_Numbered):
    """A list of modules; it is not called itself."""

    def __init__(self, modules: Iterable[Any] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, position: int | slice) -> Module:
        if isinstance(position, slice):
            return type(self)(list(self)[position])
        return self._modules[self._key(position)]  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        """Runs of equal modules as one line: (0-5): 6 x Block(...)."""
        runs: list[list[Any]] = []  # first, last, text
        for position, text in enumerate(repr(module) for module in self):
            if runs and runs[-1][2] == text:
                runs[-1][1] = position
            else:
                runs.append([position, position, text])
        lines = []
        for first, last, text in runs:
            name = f"({first})" if first == last else f"({first}-{last})"
            times = "" if first == last else f"{last - first + 1} x "
            lines.append(f"  {name}: {times}" + text.replace("\n", "\n  "))
        return f"{self._get_name()}(" + ("\n" + "\n".join(lines) + "\n" if lines else "") + ")"

    def __add__(self, other: Iterable[Any]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, other: Iterable[Any]) -> Self:
        return self.extend(other)


class ModuleDict(Module):
    """Modules by name; it is not called itself."""

    def __init__(self, modules: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]  # type: ignore[no-any-return]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Takes a module away and returns it."""
        return self._modules.pop(key)  # type: ignore[no-any-return]

    def keys(self) -> KeysView[str]:
        return self._modules.keys()

    def items(self) -> ItemsView[str, Any]:
        return self._modules.items()

    def values(self) -> ValuesView[Any]:
        return self._modules.values()

    def update(self, modules: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Adds modules, replacing those of the same names."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"ModuleDict.update should be called with an iterable of key/value pairs, but got "
                f"{type(modules).__name__}"
            )
        for name, module in modules.items() if isinstance(modules, Mapping | ModuleDict) else modules:
            self[name] = module
