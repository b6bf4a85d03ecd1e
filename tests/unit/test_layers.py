"""The import contract: imports go down the layers, and what a host brings is imported at the border only."""

import ast
import functools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pywebgpu"
DEVICES = ("cpu", "cuda", "meta", "mps", "null", "webgpu")

# Lowest first. Two folders of one layer do not import each other; docs/architecture.md draws it.
LAYERS = (
    {
        "errors",
        "support",
        "torch_api/rare_names",
        "torch_api/return_types",
        "settings",
        "dtypes",
        "step_capture/host_program",
        "step_capture/host_data",
        "step_capture/free_number",
    },
    {"ir"},
    {"ops", "utils/_pytree"},
    {"composites", "autodiff"},
    {"kernels"},
    {"compiler"},
    {"devices"},
    {"runtime"},
    {"tensor"},
    {"step_capture"},
    {"autograd", "data", "inspector", "io", "nn", "optim"},
    {"amp", "hosts", "models", "optim/swa_utils"},
    {"fft", "linalg", "packages", "sparse"},
    {
        "__main__",
        "as_torch",
        "bench",
        "cli",
        "display",
        "compat",
        "distributions",
        "exporter",
        "fx",
        "nn/utils/parametrizations",
        "nn/utils/stateless",
        "func",
        "profiler",
        "signal",
        "utils",
        "special",
        "testing",
        "torch_api",
        "version",
    },
)
LEVEL = {unit: level for level, units in enumerate(LAYERS) for unit in units}

# What a folder may import of pywebgpu where its layer alone would allow more.
NARROWED = {"devices": {"devices", "compiler", "kernels", "ir"} | LAYERS[0]}
# They compute by the ops' own NumPy meaning.
WIDENED = {
    "devices/cpu.py": {"ops"},
    "devices/cpu_calls.py": {"ops"},
    "devices/cpu_functions.py": {"ops"},
    "devices/cpu_views.py": {"ops"},
}
BY_STRING = {"import_module", "later"}  # functions that import what a string names
# Imports by a string that go up, each with what a lower layer needs there when it is asked.
METHOD = "a method of Tensor whose function is in PyTorch's module of that name"
UPWARD = {
    ("tensor", "linalg"): METHOD,
    ("tensor", "nn"): METHOD,
    ("tensor", "signal"): METHOD,
    ("tensor", "sparse"): METHOD,
    ("tensor", "special"): METHOD,
    ("io", "sparse"): "sparse tensors of a file",
    ("tensor", "utils"): "exchange of memory by DLPack",
    ("tensor", "display"): "how a notebook shows a value",
    ("nn", "utils"): "torch.utils.swap_tensors",
    ("nn", "display"): "how a notebook shows a module",
    ("optim", "display"): "how a notebook shows an optimizer",
    ("tensor", "func"): "gradients of a batch of vectors are a vmap",
    ("nn", "func"): "a mask's function of positions is mapped over them",
    ("tensor", "torch_api"): "__torch_function__, and why a name is absent",
    ("nn", "torch_api"): "__torch_function__, and PyTorch's submodules that are other files here",
    ("autograd", "torch_api"): "PyTorch's submodules that are other files here",
    ("support", "torch_api"): "why a name is absent",
    ("ops", "torch_api"): "torch.ops: operators by the names of PyTorch's own library",
    ("optim", "optim/swa_utils"): "averaged models are modules, above optimizers",
}
LISTED = {"distributions/constraints.py", "distributions/transforms.py"}  # Libraries read their `__all__`.
LATE = {"runtime/program_cache.py"}  # A page's archive leaves out what it imports there: pages store no Programs.

# An optional package, and the units that may import it: as a file starts, and inside a function as well.
OPTIONAL = {
    "wgpu": (
        {f"devices/{name}.py" for name in ("native", "native_pass", "native_read", "native_shader", "loaded")},
        {"devices/native.py", "devices/adapters.py"},
    ),
    "numpy": (
        {
            "devices/cpu.py",
            "devices/cpu_calls.py",
            "devices/cpu_functions.py",
            "devices/cpu_views.py",
            "devices/native.py",
            "packages/safetensors/numpy.py",
        },
        {"devices", "tensor", "io", "data", *LAYERS[-2], *LAYERS[-1]},
    ),
    "js": ({"devices/bridged.py"}, {"devices/bridged.py", "display", "cli", "hosts/test_server.py", "io"}),
    "pyodide": (
        {"devices/bridged.py", "devices/js_modules.py"},
        {"devices/bridged.py", "devices/js_modules.py", "display", "cli", "hosts/test_server.py", "io"},
    ),
    "torch": (set(), {"bench"}),
    "playwright": (set(), {"hosts"}),
}

FILES = sorted(PACKAGE.rglob("*.py"))
FOLDERS = [PACKAGE, *sorted(path for path in PACKAGE.iterdir() if any(path.glob("*.py")))]


@dataclass(frozen=True, slots=True)
class Import:
    """One imported module. `late` is True inside a function; `typing` under `if TYPE_CHECKING`."""

    module: str
    line: int
    late: bool
    typing: bool


@functools.cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@functools.cache
def imports(file: Path) -> list[Import]:
    """Every import of a file. `from a import b` is a.b where that is a module, otherwise a."""
    return list(_imports(file))


def _imports(file: Path) -> Iterator[Import]:
    waiting: list[tuple[ast.AST, bool, bool]] = [(parsed(file), False, False)]
    while waiting:
        node, late, typing = waiting.pop()
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{relative(file)}:{node.lineno}: write the module's whole name"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield Import(whole if is_module(whole) else str(node.module), node.lineno, late, typing)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, late, typing)
        late = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        typing = typing or (isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"))
        children = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]
        waiting += [(child, late, typing) for child in children]


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or path.is_dir()


def relative(file: Path) -> str:
    return file.relative_to(PACKAGE).as_posix()


def unit_of(file: Path) -> str:
    """The folder of pywebgpu that a file lies in, or its own name where it lies in none or has a layer of its own."""
    own = relative(file).removesuffix(".py")
    return own if own in LEVEL else own.partition("/")[0]


def is_folder(unit: str) -> bool:
    return (PACKAGE / unit).is_dir()


def test_imports_go_down() -> None:
    files = [file for file in FILES if unit_of(file) != "__init__"]  # The surface imports from every layer.
    faults = [f"{relative(file)}:{item.line}: {why}" for file in files for item, why in faulty_imports(file)]
    assert faults == []


def faulty_imports(file: Path) -> Iterator[tuple[Import, str]]:
    """The imports of a file that go up, sideways, or are made inside a function."""
    unit = unit_of(file)
    assert unit in LEVEL, f"name {unit} in LAYERS, and in docs/architecture.md"
    for item in imports(file):
        if item.module == "pywebgpu":
            yield item, "imports the surface; import the module that holds the name"
        elif item.module.startswith("pywebgpu"):
            other = unit_of(ROOT.joinpath(*item.module.split(".")).with_suffix(".py"))
            assert other in LEVEL, f"{relative(file)}: name {other} in LAYERS, and in docs/architecture.md"
            if LEVEL[other] > LEVEL[unit]:
                yield item, f"{unit} (layer {LEVEL[unit]}) imports {other} ({LEVEL[other]})"
            if other != unit and LEVEL[other] == LEVEL[unit] and is_folder(unit) and is_folder(other):
                yield item, f"{unit} and {other} are folders of one layer"
            if other not in NARROWED.get(unit, LEVEL.keys()) | WIDENED.get(relative(file), set()):
                yield item, f"{unit} may not import {other}"
            if item.late and relative(file) not in LATE:
                yield item, "only an optional package is imported inside a function"


def test_imports_by_string_go_down_or_have_a_reason() -> None:
    upward = set()
    for file in FILES:
        if unit_of(file) == "__init__":
            continue
        for name in imported_by_string(file):
            pair = unit_of(file), unit_of(ROOT.joinpath(*name.split(".")).with_suffix(".py"))
            if LEVEL[pair[1]] > LEVEL[pair[0]]:
                upward.add(pair)
    assert upward == UPWARD.keys()


def imported_by_string(file: Path) -> Iterator[str]:
    """The modules that calls name by a string, or by the constant begin of one: import_module, later."""
    for node in ast.walk(parsed(file)):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2].lstrip("_") in BY_STRING):
            continue
        first = node.args[0]
        text = first.values[0] if isinstance(first, ast.JoinedStr) else first
        name = str(text.value).rstrip(".") if isinstance(text, ast.Constant) else ""
        if name.startswith("pywebgpu.") and is_module(name):
            yield name


def test_optional_packages_stay_at_the_border() -> None:
    faults = []
    for file in FILES:
        for item in imports(file):
            package = item.module.split(".")[0]
            if package in OPTIONAL and not item.typing:
                early, late = OPTIONAL[package]
                allowed = (early | late) if item.late else early
                if not {unit_of(file), relative(file)} & allowed:
                    faults.append(f"{relative(file)}:{item.line}: imports {package}")
    assert faults == []


def test_no_import_cycles() -> None:
    graph = {}
    for file in FILES:
        parts = file.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        graph[name] = {found.module for found in imports(file) if not found.typing} - {name}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_lists_of_names_stand_in_packages_only() -> None:
    faults = []
    for file in FILES:
        targets = [target for node in parsed(file).body if isinstance(node, ast.Assign) for target in node.targets]
        has_list = any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)
        if has_list and file.name != "__init__.py" and relative(file) not in LISTED:
            faults.append(f"{relative(file)}: __all__ belongs in a package's __init__.py")
    assert faults == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_folder_says_its_job(folder: Path) -> None:
    assert (folder / "README.md").exists(), f"{folder.relative_to(ROOT)}: a README.md says the folder's job"


# Where a device's name is what a user asks for, or what a file says.
NAMES_DEVICES = {
    "io/archive.py": 1,
    "kernels/target.py": 1,
    "nn/module.py": 1,
    "tensor/conversion.py": 3,
    "torch_api/_utils.py": 1,
}


def test_devices_are_told_apart_by_what_they_can_do() -> None:
    """`is_host`, `computes`, `has_values` and others of the contract, not names."""
    compared: Counter[str] = Counter()
    for file in FILES:
        if "devices" in file.parts:
            continue
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.Compare) and any(map(_is_label, [node.left, *node.comparators])):
                constants = [part for part in ast.walk(node) if isinstance(part, ast.Constant)]
                compared[relative(file)] += any(part.value in DEVICES for part in constants)
    assert {name: count for name, count in compared.items() if count} == NAMES_DEVICES


def _is_label(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("name", "type", "kind")
