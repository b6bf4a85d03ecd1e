"""Names of a package whose files are imported when one of them is first asked for.

What a program never names it does not load: that is Python's time at its start, and in a page also bytes.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module, reload, util
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType
from typing import Any

_own_dict = vars(ModuleType)["__dict__"].__get__


class Package(ModuleType):
    """A package that imports its files once somebody asks for all of its names; `vars(package)` has them."""

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]  # It is an attribute of C there.
        own: dict[str, Any] = _own_dict(self)
        for name in self.__dir__():
            if name not in own and (value := getattr(self, name, None)) is not None:
                setattr(self, name, value)
        return own

    def __dir__(self) -> list[str]:
        own = _own_dict(self)
        return own["__dir__"]() if "__dir__" in own else sorted(own)

    def __setattr__(self, name: str, value: object) -> None:
        """An import sets the file as an attribute of its package: not where that is the function of the file's name."""
        if not (isinstance(value, ModuleType) and callable(_own_dict(self).get(name))):
            super().__setattr__(name, value)


packages: list[ModuleType] = []  # whose files are imported one by one
listed_whole = False


def list_whole() -> None:
    """From now on all of a package's names are in its `__dict__`, which programs written for PyTorch may read."""
    global listed_whole
    listed_whole = True
    for package in packages:
        package.__class__ = Package


def names(
    package: str, files: Mapping[str, str], elsewhere: Callable[[str], Any] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package.

    files: what each defines, with spaces between. elsewhere: what any other name stands for; None of nothing.
    """
    homes = {name: file for file, defined in files.items() for name in defined.split()}
    module = import_module(package)
    packages.append(module)
    if listed_whole:
        module.__class__ = Package

    def find(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            file = _file(module, name)
            other = file or (elsewhere(name) if elsewhere else None)
            return absent(package)(name) if other is None else other
        value = getattr(import_module(f"{package}.{home}"), name)
        setattr(module, name, value)  # From now on it is found without this function.
        return value

    def known() -> list[str]:
        return sorted({*_own_dict(module), *homes})

    return find, known, sorted(homes)


def absent(package: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module of PyTorch's name: what is not here raises when it is used, and says why."""

    def find(name: str) -> object:
        if not name.startswith("__"):
            if (file := _file(sys.modules[package], name)) is not None:
                return file
            path = package.removeprefix("pywebgpu").removeprefix(".torch_api").removeprefix(".")
            return import_module("pywebgpu.torch_api.absent").find(path, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find


def _file(package: ModuleType, name: str) -> ModuleType | None:
    """A file of a package: `from package import file` asks the package for it before it imports it."""
    full_name = f"{package.__name__}.{name}"
    is_file = PathFinder.find_spec(full_name, _own_dict(package).get("__path__", ())) is not None
    return import_module(full_name) if is_file else None


class LateModule(ModuleType):
    """A module that runs when one of its names is first asked for; from then on it is a module like any other."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        vars(self)[_LOCK] = RLock()

    def __getattr__(self, name: str) -> Any:
        own = _own_dict(self)
        if name.startswith("__"):  # Whoever looks through sys.modules asks for such names.
            raise AttributeError(f"module {own['__name__']!r} has no attribute {name!r}")
        with own[_LOCK]:  # Another thread waits until all of it is there.
            if type(self) is LateModule and _RUNS not in own:
                own[_RUNS] = True
                try:
                    reload(self)
                    self.__class__ = ModuleType  # type: ignore[assignment]  # Nothing of this class slows it down.
                finally:
                    del own[_RUNS]
        return ModuleType.__getattribute__(self, name)

    def __dir__(self) -> list[str]:
        getattr(self, "names", None)  # It runs.
        return sorted(vars(self))


_LOCK, _RUNS = "__lock__", "__runs__"


def modules(package: str, names: str) -> None:
    """Modules of a package that run when they are first used: importing one of them loads nothing."""
    home = sys.modules.get(package)
    for name in names.split():
        module = sys.modules[f"{package}.{name}"] = LateModule(f"{package}.{name}")
        if home is not None:
            setattr(home, name, module)


class AliasLoader(Loader):
    """Gives a module that exists under another name."""

    def __init__(self, module: ModuleType) -> None:
        self.module, self.spec = module, getattr(module, "__spec__", None)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: Any) -> None:
        module.__spec__ = self.spec
        if not hasattr(module, "__path__"):
            module.__path__ = []  # A file here may be a package there.


class FacadeFinder:
    """Asked after the finder of files: `cuda` and `doctor` below pywebgpu are modules of these folders."""

    FOLDERS = "torch_api", "cli"

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        package, _, last = name.rpartition(".")
        if package != "pywebgpu" or last in FacadeFinder.FOLDERS:
            return None
        for folder in FacadeFinder.FOLDERS:
            try:
                spec = util.find_spec(f"pywebgpu.{folder}.{last}")
            except ModuleNotFoundError:  # A page has no folder cli.
                spec = None
            if spec is not None:
                return ModuleSpec(name, AliasLoader(import_module(f"pywebgpu.{folder}.{last}")))
        return PathFinder.find_spec(name, path)  # A page may have fetched it meanwhile.
