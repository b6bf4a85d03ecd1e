"""What `pywebgpu serve` serves, without a browser: addresses, headers, archives, and how much a page downloads."""

import ast
import http.client
import importlib
import importlib.util
import json
import os
import re
import subprocess
import symtable
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pywebgpu.hosts import first_kernels, page_files, serve, site, stripping

ROOT = Path(__file__).parents[2]
INDEX = (ROOT / "web" / "index.html").read_text(encoding="utf-8")
ADDRESSES = re.findall(r'"./modules/(.+?)"', INDEX)
_SPEC = importlib.util.spec_from_file_location("parts", ROOT / "web" / "parts.py")
assert _SPEC is not None
assert _SPEC.loader is not None
parts = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(parts)
BLOCKS = ("body", "orelse", "handlers", "finalbody")
USES = (ast.Name, ast.Constant)
COMPREHENSIONS = ("listcomp", "setcomp", "dictcomp", "genexpr")  # as symtable names their scopes
DOWNLOAD = 300_000  # bytes that the Train tab may load besides Pyodide
# Modules of the other tabs, of the first view, and of what is looked at when it is opened.
LAZY = (
    *("editor", "files", "gallery", "interplay", "sharing", "terminal", "widgets"),
    *("first", "inside", "drift", "program_view", "measure", "peers"),
    *("chat", "language", "model_files", "model_picker", "search", "tune"),
)
# What it loads, besides its archive, text and packages.
PAGE = (
    "",
    "style.css",
    "icon.svg",
    "parts.py",
    "sizes.json",
    *(path.name for path in (ROOT / "web").glob("*.mjs") if path.stem not in LAZY),
)


@pytest.fixture(scope="module")
def pages() -> site.Site:
    return site.Site(site.find_folders(cdn=True))


@pytest.fixture(scope="module")
def port(pages: site.Site) -> Iterator[int]:
    server = serve.start(0, pages)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join()


def get(port: int, path: str, **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


def members(file: site.File | None) -> dict[str, bytes]:
    assert file is not None
    files: dict[str, bytes] = parts._files(file.body)
    return files


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html"),
        ("/main.mjs", "text/javascript"),
        ("/style.css", "text/css"),
        ("/icon.svg", "image/svg+xml"),
    ],
)
def test_page_is_served_isolated(port: int, path: str, kind: str) -> None:
    answer, body = get(port, path)
    assert (answer.status, answer.headers["Content-Type"]) == (200, f"{kind}; charset=utf-8")
    assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert answer.headers["Cross-Origin-Embedder-Policy"] == "require-corp"
    assert body


@pytest.mark.parametrize(
    "path",
    ["/nothing", "/../pyproject.toml", "/%2e%2e/pyproject.toml", "/training.py", "/modules/webgpu@0.6.2/index.js"],
)
def test_nothing_else_is_served(port: int, path: str) -> None:
    assert get(port, path)[0].status == 404


def test_what_did_not_change_is_not_sent_again(port: int) -> None:
    answer, _ = get(port, "/style.css", Accept_Encoding="gzip")
    assert answer.headers["Content-Encoding"] == "gzip"
    again, body = get(port, "/style.css", If_None_Match=answer.headers["ETag"])
    assert (again.status, body) == (304, b"")


def test_network_has_what_the_machine_has_not(port: int) -> None:
    answer, _ = get(port, f"/modules/{ADDRESSES[0]}")
    assert (answer.status, answer.headers["Location"]) == (302, f"https://cdn.jsdelivr.net/npm/{ADDRESSES[0]}")
    assert config(get(port, "/")[1])["pyodide"].startswith("https://")


def config(page: bytes) -> dict[str, Any]:
    """What the page tells its workers."""
    found: dict[str, Any] = json.loads(page.partition(site.CONFIG)[2].partition(b"</script>")[0])
    return found


def test_what_is_made_here_has_an_address_of_its_version(port: int, pages: site.Site) -> None:
    address = config(get(port, "/")[1])["kept"]["python.mjs"]
    answer, body = get(port, f"/{address}")
    assert (answer.headers["Cache-Control"], answer.headers["Content-Type"]) == (
        site.FOREVER,
        "text/javascript; charset=utf-8",
    )
    assert b'from "./bridge.mjs"' in body
    version = address.split("/")[1]
    assert get(port, f"/{address.replace(version, 24 * '0')}")[0].status == 404
    assert get(port, f"/kept/{version}/node.mjs")[0].status == 404


def test_first_kernels_are_those_of_the_first_model() -> None:
    here = site.find_folders(cdn=True)
    found = json.loads(first_kernels.make(here.demo, here.web / "sizes.json", "swiftshader"))
    assert len({kernel["wgsl"] for kernel in found}) == len(found) > 40
    assert {"name", "wgsl", "bindings"} <= set(found[0])
    assert not any("subgroup-matrix" in need for kernel in found for need in kernel.get("needs", ()))


@pytest.mark.parametrize("names", [("training", "rest"), ("editing",)])
def test_archives_hold_the_library_once(
    pages: site.Site, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stripping, "bare", lambda name, content: content)  # It takes seconds, and changes no name.
    archives = [members(pages.file(f"{name}.xz")) for name in names]
    found = set().union(*archives)
    assert len(found) == sum(map(len, archives))
    script = {"training": "training.py", "editing": "editing.py"}[names[0]]
    wanted = {script, "train.py", "model.py", "data.py", "pywebgpu/__init__.py", "pywebgpu/torch_api/webgpu.py"}
    wanted |= {f"pywebgpu/js_bridge/{path.name}" for path in (ROOT / "js_bridge").glob("*.mjs")}
    wanted -= {f"pywebgpu/js_bridge/{left}.mjs" for left in ("dawn", "helper", "node", "snapshot")}
    wanted |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "pywebgpu").rglob("*.wgsl")}
    if names[0] == "training":
        wanted -= {f"pywebgpu/js_bridge/{name}" for name in site.BRIDGE}
    assert wanted <= found
    assert not [
        path for path in found if path.startswith("pywebgpu/bench") or "devices/native" in path or "main.py" in path
    ]


def test_every_part_that_comes_later_is_there() -> None:
    names = [path.relative_to(ROOT / "pywebgpu").as_posix() for path in (ROOT / "pywebgpu").rglob("*.*")]
    names += [path.relative_to(ROOT).as_posix() for path in (ROOT / "js_bridge").iterdir()]
    assert [part for part in page_files.LATER if not any(name.startswith(part) for name in names)] == []


def test_rest_of_the_library_comes_when_it_is_imported(
    pages: site.Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(parts, "FOLDER", tmp_path)
    monkeypatch.setattr(parts, "LIBRARY", "library.")
    monkeypatch.syspath_prepend(str(tmp_path))
    first, rest = {"library/__init__.py": b"one = 1"}, {"library/later.py": b"two = 2"}
    parts.unpack(pages._archive(first))
    asked: list[str] = []
    monkeypatch.setattr(parts, "_fetch", lambda address: asked.append(address) or pages._archive(rest))
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, parts.Rest("rest.xz")])
    assert importlib.import_module("library").one == 1
    assert asked == []
    assert importlib.import_module("library.later").two == 2
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("library.nowhere")
    assert asked == ["rest.xz"]


# Imports what a page gets at once, trains and writes a character; says which other files of the library it asks for.
TRAINING = """
import importlib, json, sys
from importlib.machinery import PathFinder
from pathlib import Path

folder, root, family = sys.argv[1:]
asked = []

class Rest:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.startswith("pywebgpu."):
            asked.append(name)
            return PathFinder.find_spec(name, [str(Path(root, *name.split(".")[:-1]))])

sys.path.insert(0, folder)
sys.meta_path.append(Rest)
for file in sorted(Path(folder, "pywebgpu").rglob("*.py")):
    name = ".".join(file.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
    if name not in ("pywebgpu.devices.bridged", "pywebgpu.devices.js_modules"):  # They import what only a page has.
        importlib.import_module(name)
torch = importlib.import_module("pywebgpu")
torch.webgpu  # It opens the device of a page.
torch.set_default_device("null")
first_kernels = importlib.import_module("pywebgpu.hosts.first_kernels")
first_kernels.main(folder, str(Path(root, "web", "sizes.json")), family)
print(json.dumps(asked))
"""
# What the device needs on which it trains there, and not in a page.
OF_NULL = ("hosts.first_kernels", "devices.blocking", "devices.null", "devices.pool")


@pytest.mark.parametrize("family", first_kernels.FAMILIES)
def test_training_asks_for_no_other_file(
    family: str, pages: site.Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stripping, "bare", lambda name, content: content)
    for name, content in pages._training(later=False).items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    words = [sys.executable, "-c", TRAINING, str(tmp_path), str(ROOT), family]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PY")}
    environment = inherited | {"PYWEBGPU_CACHE": ""}
    run = subprocess.run(words, check=False, capture_output=True, cwd=tmp_path, env=environment, text=True)
    assert run.returncode == 0, run.stderr
    asked = [name.removeprefix("pywebgpu.") for name in json.loads(run.stdout.splitlines()[-1])]
    assert [name for name in asked if not name.startswith(OF_NULL)] == []


@pytest.mark.long("parses every file four times")
def test_archive_without_comments_and_types_is_the_same_program() -> None:
    for file in (ROOT / "pywebgpu").rglob("*.py"):
        source = file.read_text(encoding="utf-8")
        assert shape(stripping.without_comments(source)) == shape(source), file


@pytest.mark.long("parses every file six times")
def test_archive_with_short_names_is_the_same_program() -> None:
    """Names of variables apart: in each scope there are as many, and all others are what they were."""
    for file in (ROOT / "pywebgpu").rglob("*.py"):
        source = file.read_text(encoding="utf-8")
        short = stripping.with_short_names(source)
        assert nameless(short) == nameless(source), file
        for scope, shorter in zip(scopes(source), scopes(short), strict=True):
            assert len(shorter.get_symbols()) == len(scope.get_symbols()), (file, scope)
            assert foreign(shorter) == foreign(scope), (file, scope)
        assert ast.dump(ast.parse(stripping.without_spaces(short))) == ast.dump(ast.parse(short)), file


def nameless(source: str) -> tuple[str, list[int]]:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = ""
    return ast.dump(tree), [node.lineno for node in statements(tree)]


def scopes(source: str) -> list[symtable.SymbolTable]:
    """Of a module, its classes and functions."""
    found = [symtable.symtable(source, "", "exec")]
    for scope in found:
        found += scope.get_children()
    return found


def foreign(scope: symtable.SymbolTable) -> set[str]:
    """The names of a scope that are no variables of its own; symtable takes a function named top for the module.

    A comprehension's are those of the function around it as well.
    """
    names = [symbol for symbol in scope.get_symbols() if scope.get_name() != "top" or symbol.is_parameter()]
    own = {symbol for symbol in names if symbol.is_local() or (scope.get_name() in COMPREHENSIONS and symbol.is_free())}
    return {symbol.get_name() for symbol in names if symbol.is_parameter() or symbol not in own}


@pytest.mark.parametrize(
    ("source", "short"),
    [
        ("def f(size):\n first = size\n return first", "def f(size):\n a = size\n return a"),
        ("def f(a):\n first = a\n return first.first", "def f(a):\n b = a\n return b.first"),
        ("def f(x):\n return [first for first in x]", "def f(x):\n return [a for a in x]"),
        ("def f():\n first = 1\n return [first for row in g]", "def f():\n a = 1\n return [a for b in g]"),
        ("def f():\n return [first for first in first]", None),
        ("def f():\n first = 1\n return lambda: first", None),
        ("def f():\n first = 1\n return f'{first=}'", None),
        ("def f():\n first = 1\n return locals()", None),
        ("def f():\n global first\n first = 1", None),
        ("def f(x):\n try:\n  x()\n except OSError as first:\n  first = 1", None),
    ],
)
def test_variables_of_functions_become_letters(source: str, short: str | None) -> None:
    assert stripping.with_short_names(source) == (source if short is None else short)


def shape(source: str) -> tuple[str, list[int]]:
    """Every statement with its line, but for docstrings and types; a field of a class has some type."""
    tree = ast.parse(source)
    nodes = [*ast.walk(tree)]
    of_classes = {id(inner) for node in nodes if isinstance(node, ast.ClassDef) for inner in node.body}
    for node in nodes:
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        if isinstance(node, ast.AnnAssign) and id(node) in of_classes and is_short(node.annotation):
            node.annotation = ast.Name("int")
        for field in BLOCKS:
            block = getattr(node, field, None)
            if isinstance(block, list):
                block = [one for one in block if not is_for_checkers(one)]
                setattr(node, field, [one if id(one) in of_classes else without_type(one) for one in block])
    nodes = [*ast.walk(tree)]
    used = {node.id if isinstance(node, ast.Name) else str(node.value) for node in nodes if isinstance(node, USES)}
    for node in [one for one in tree.body if isinstance(one, ast.ImportFrom)]:
        node.names = [one for one in node.names if one.asname or not one.name[0].isupper() or one.name in used]
        node.end_lineno = node.lineno
        if not node.names:
            tree.body.remove(node)
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if ast.get_docstring(node) is not None:
                node.body[:1] = [] if node.body[1:] else [ast.copy_location(ast.Expr(ast.Constant("")), node.body[0])]
            node.body.sort(key=lambda statement: statement.lineno)
    return ast.dump(tree), [node.lineno for node in statements(tree)]


def is_short(annotation: ast.expr) -> bool:
    """Whether it is on one line, and says no more than a type."""
    return annotation.lineno == annotation.end_lineno and "ClassVar" not in ast.unparse(annotation)


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    for inner in (one for field in (*BLOCKS, "cases") for one in getattr(node, field, ())):
        if isinstance(inner, ast.stmt):
            yield inner
        yield from statements(inner)


def is_for_checkers(node: ast.stmt) -> bool:
    if isinstance(node, ast.FunctionDef):
        return any(ast.unparse(one) == "overload" for one in node.decorator_list)
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def without_type(node: ast.AST) -> ast.AST:
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return ast.copy_location(ast.Assign([node.target], node.value), node)
    return node


def test_text_to_train_on_is_this_pythons(pages: site.Site) -> None:
    text = pages.file("documentation.txt")
    assert text is not None
    assert len(text.body) > 100_000
    assert b"The " in text.body


def test_versions_are_those_of_the_lock_file() -> None:
    locked = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    for address in ADDRESSES:
        matched = site.SERVED.fullmatch(address)
        assert matched is not None, address
        assert locked[f"node_modules/{matched[1]}"]["version"] == matched[2], matched[1]
    assert locked["node_modules/pyodide"]["version"] == site.PYODIDE


def test_import_map_names_whatever_is_imported() -> None:
    names = set(json.loads(INDEX.split('<script type="importmap">')[1].split("</script>")[0])["imports"])
    for file in (ROOT / "web").glob("*.mjs"):
        for imported in re.findall(r'^import .*? from "([^".][^"]*)";', file.read_text(encoding="utf-8"), re.MULTILINE):
            assert imported in names, f"{file.name} imports {imported}"


def test_page_downloads_little() -> None:
    """Where no snapshot is ready; with one, its archive is not needed."""
    here = site.Site(local_folders())
    index = here.file("")
    assert index is not None
    kept = f"kept/{config(index.body)['version']}"
    needed = [
        *PAGE,
        *(f"{kept}/{name}" for name in (*site.BRIDGE, "training.xz")),
        *(f"modules/{name}" for name in ADDRESSES if name.startswith("uplot")),
    ]
    sizes = {}
    for address in needed:
        file = here.file(address)
        assert file is not None, address
        sizes[address] = len(file.packed or file.body)
    assert sum(sizes.values()) < DOWNLOAD, sizes


def local_folders() -> site.Folders:
    try:
        return site.find_folders(cdn=False)
    except site.SiteError as error:
        pytest.skip(str(error))


def test_missing_packages_are_told_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(site, "NEEDED", ("pyodide", "no-such-package"))
    assert serve.main(["--port", "0"]) == 2
    assert "npm ci" in capsys.readouterr().err
