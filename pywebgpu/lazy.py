"""Names of a package whose files are imported when one of them is first asked for.

What a program never names it does not load: that is Python's time at its start, and in a page also bytes.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def names(
    package: str, files: Mapping[str, str], elsewhere: Callable[[str], Any] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package.

    files: what each defines, with spaces between. elsewhere: what any other name stands for; None of nothing.
    """
    homes = {name: file for file, defined in files.items() for name in defined.split()}
    module = import_module(package)

    def find(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            other = elsewhere(name) if elsewhere else None
            return absent(package)(name) if other is None else other
        found = getattr(import_module(f"{package}.{home}"), name)
        setattr(module, name, found)  # From now on it is found without this function.
        return found

    def known() -> list[str]:
        return sorted({*vars(module), *homes})

    return find, known, sorted(homes)


def absent(package: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module of PyTorch's name: what is not here raises when it is used, and says why."""

    def find(name: str) -> object:
        if not name.startswith("_"):
            return import_module("pywebgpu.absent").find(package.removeprefix("pywebgpu").removeprefix("."), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
