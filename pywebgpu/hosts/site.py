"""What `pywebgpu serve` serves: the pages of web/, the library and a text to train on as archives, and packages of npm.

Apart from serve.py because nothing here speaks HTTP: an address goes in, a file comes out.
"""

import ast
import gzip
import importlib.util
import io
import json
import lzma
import re
import threading
import tokenize
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypeGuard

from pywebgpu import installation
from pywebgpu.errors import PywebgpuError
from pywebgpu.installation import InstallationError

PACKAGE = Path(__file__).parents[1]
PYODIDE = "314.0.7"
CDN = "https://cdn.jsdelivr.net"
NEEDED = ("pyodide", "uplot", "@codemirror/view")
# Of node_modules only these are served: what the import map of web/index.html names.
SERVED = re.compile(
    r"(pyodide|uplot|crelt|style-mod|w3c-keyname|@(?:codemirror|lezer|marijn)/[\w-]+)@([\d.]+)/((?!.*\.\.)[\w./@+-]+)",
    re.ASCII,
)
NATIVE = (
    "bench/",
    "hosts/chromium.py",
    "hosts/remote_tests.py",
    "hosts/test_page.py",
    "hosts/test_server.py",
    "hosts/working_folder.py",
    "cli.py",
    "doctor.py",
    "installation.py",
    "hosts/node.py",
    "hosts/serve.py",
    "hosts/site.py",
    "devices/loaded.py",
    "devices/native.py",
    "devices/tunings.py",
    "devices/reader.py",
    "js_bridge/dawn.mjs",
    "js_bridge/node.mjs",
    "js_bridge/test/",
    "web/",
)
# What training does not import: a page loads it when a program first imports some of it.
LATER = (
    "__main__.py",
    "accelerator.py",
    "amp/",
    "as_torch.py",
    "factorization.py",
    "autodiff/batching.py",
    "autograd/",
    "compiler/serialization.py",
    "compiler/validate.py",
    "composites/convolution.py",
    "composites/einsum.py",
    "composites/linear_loss.py",
    "composites/pooling.py",
    "composites/recurrent.py",
    "composites/resample.py",
    "composites/sliding_products.py",
    "cuda.py",
    "data/",
    "composites/bytes.py",
    "composites/quantile.py",
    "devices/cpu_memory.py",
    "devices/cpu.py",  # needs NumPy; without it, devices/cpu_storage.py is device cpu
    "devices/null.py",
    "devices/pool.py",
    "display/",
    "export.py",
    "exporter/",
    "func/",
    "handlers.py",
    "hosts/script.py",
    "inspector/",
    "io/archive.py",
    "io/objects.py",
    "io/pickled.py",
    "io/saving.py",
    "io/strided.py",
    "io/torchfile.py",
    "ir/origin.py",
    "js_bridge/files.mjs",
    "js_bridge/host_program.mjs",
    "js_bridge/player.mjs",
    "js_bridge/runner.mjs",
    "js_bridge/safetensors.mjs",
    "js_bridge/validate.mjs",
    "js_bridge/values.mjs",
    "kernels/templates/matmul_staged.py",
    "kernels/templates/matmul_subgroups.py",
    "linalg.py",
    "kernels/gamma.py",
    "kernels/templates/attention_gradient.py",
    "memory.py",
    "nn/functional/sampling.py",
    "nn/functional/sequences.py",
    "ops/gamma.py",
    "run.py",
    "stand_ins.py",
    "tensor/numeric.py",
    "nn/attention.py",
    "nn/conv.py",
    "nn/dropout.py",
    "nn/functional/linear_loss.py",
    "nn/functional/spatial.py",
    "nn/loss.py",
    "nn/parallel.py",
    "nn/pooling.py",
    "nn/recurrent.py",
    "nn/spatial.py",
    "nn/transformer.py",
    "nn/types.py",
    "optim/adafactor.py",
    "optim/adam_relatives.py",
    "optim/lbfgs.py",
    "optim/lion.py",
    "optim/lr_scheduler/annealing.py",
    "optim/lr_scheduler/cyclic.py",
    "optim/lr_scheduler/sequence.py",
    "optim/muon.py",
    "optim/rmsprop.py",
    "optim/rprop.py",
    "optim/sgd.py",
    "optim/shaped.py",
    "optim/swa_utils.py",
    "profiler/",
    "random.py",
    "runtime/disk_cache.py",
    "step_capture/host_data.py",
    "tensor/types.py",
    "utils/",
)
CARRIED = (".py", ".wgsl", ".mjs", ".html", "-tint.json")  # the kinds of files that the library needs in a page
COMMENTS = re.compile(r"^[ \t]*(?:/\*\*(?:(?!\*/).)*\*/|//[^\n]*)[ \t]*$", re.MULTILINE | re.DOTALL)
TYPES = {
    ".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".json": "application/json",
    ".mjs": "text/javascript", ".svg": "image/svg+xml", ".txt": "text/plain",
    ".wasm": "application/wasm", ".zip": "application/zip",
}  # fmt: skip
TEXTS = ("text/", "application/json", "image/svg+xml")
PACKING = {"id": lzma.FILTER_LZMA2, "preset": lzma.PRESET_EXTREME | 9, "lc": 4, "pb": 0}  # best for text
FOREVER = "public, max-age=31536000, immutable"  # for addresses that name a version


class SiteError(PywebgpuError, RuntimeError):
    """Something that the pages need is not there. The message says how to get it."""


@dataclass(frozen=True, slots=True)
class File:
    """What an address holds. `redirect` is where it lies instead, and then there is no body."""

    body: bytes
    kind: str
    tag: str
    cache: str = "no-cache"  # asked for again each time, and sent only where it changed
    packed: bytes = b""  # the same by gzip, where that is worth it
    redirect: str = ""


@dataclass(frozen=True, slots=True)
class Folders:
    """Where everything lies: beside the package in a checkout, inside it once installed."""

    web: Path
    bridge: Path
    demo: Path
    modules: Path | None


def find_folders(*, cdn: bool) -> Folders:
    """Raises SiteError where a folder is missing."""
    root = PACKAGE.parent
    inside = (PACKAGE / "web" / "index.html").exists()
    web, bridge, demo = (
        (PACKAGE / "web", PACKAGE / "js_bridge", PACKAGE / "web" / "chargpt")
        if inside
        else (root / "web", root / "js_bridge", root / "demos" / "chargpt")
    )
    for folder in (web, bridge, demo):
        if not folder.is_dir():
            raise SiteError(f"{folder} is missing: this installation of pywebgpu has no pages")
    if cdn:
        return Folders(web, bridge, demo, None)
    try:
        return Folders(web, bridge, demo, installation.find_modules(NEEDED).path)
    except InstallationError:
        raise SiteError(
            f"there is no node_modules with {', '.join(NEEDED)} in this installation, or where PYWEBGPU_NODE says; in "
            "a checkout run npm ci, or take them from the network with: pywebgpu serve --cdn"
        ) from None


class Site:
    """Address -> file. Archives and texts are made when first asked for, and again when a source changed."""

    def __init__(self, folders: Folders) -> None:
        self.folders = folders
        self._made: dict[str, tuple[float, File]] = {}
        self._lock = threading.Lock()
        self._makers: dict[str, Callable[[], bytes]] = {
            "config.json": self._config,
            "parts.py": (folders.web / "parts.py").read_bytes,
            "training.xz": lambda: self._archive(self._training(later=False) | self._corpus()),
            "rest.xz": lambda: self._archive(self._training(later=True)),
            "editor.xz": lambda: self._archive(self._files("editing.py") | self._corpus()),
        }

    def file(self, address: str) -> File | None:
        """The file of an address without its leading slash; None where there is none."""
        if address in self._makers:
            return self._make(address)
        if address.startswith("modules/"):
            return self._module(address.removeprefix("modules/"))
        return self._read(self.folders.web, address or "index.html", "no-cache", pack=True)

    def _make(self, address: str) -> File:
        changed = max(path.stat().st_mtime for path in self._sources())
        with self._lock:
            made = self._made.get(address)
            if made is None or made[0] != changed:
                self._made[address] = made = (changed, _file(self._makers[address](), address, pack=True))
        return made[1]

    def _sources(self) -> Iterable[Path]:
        for folder in (PACKAGE, self.folders.bridge, self.folders.demo, self.folders.web):
            yield from (path for path in folder.rglob("*.*") if path.name.endswith(CARRIED))

    def _config(self) -> bytes:
        pyodide = f"/modules/pyodide@{PYODIDE}/" if self.folders.modules else f"{CDN}/pyodide/v{PYODIDE}/full/"
        return json.dumps({"pyodide": pyodide, "is_cdn": self.folders.modules is None}).encode()

    def _corpus(self) -> dict[str, bytes]:
        """Pyodide's standard library lacks the text; that of this Python has it."""
        spec = importlib.util.spec_from_file_location("chargpt_data", self.folders.demo / "data.py")
        assert spec is not None
        assert spec.loader is not None
        data = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(data)
        text: str = data.python_documentation()
        return {"corpus.txt": text.encode()}

    def _training(self, *, later: bool) -> dict[str, bytes]:
        """What training is made of, or the rest of the library; without comments, docstrings and types."""
        found = self._files("training.py")
        rest = {name for name in found if _is_in(LATER, name)}
        return {name: _bare(name, content) for name, content in found.items() if (name in rest) == later}

    def _files(self, script: str) -> dict[str, bytes]:
        """The library, the demo and one script of web/, by their names in an archive."""
        folders = self.folders
        members = {f"pywebgpu/{path.relative_to(PACKAGE).as_posix()}": path for path in PACKAGE.rglob("*.*")}
        members |= {f"pywebgpu/js_bridge/{path.name}": path for path in folders.bridge.glob("*.mjs")}
        members |= {path.name: path for path in folders.demo.glob("*.py") if path.name != "main.py"}
        members[script] = folders.web / script
        carried = {name: path for name, path in members.items() if name.endswith(CARRIED) and "__pycache__" not in name}
        return {name: path.read_bytes() for name, path in carried.items() if not _is_in(NATIVE, name)}

    def _archive(self, contents: dict[str, bytes]) -> bytes:
        """A line of JSON with the names and lengths of files, and then the files: a tar's headers take 4 kB more."""
        names = sorted(contents)
        index = json.dumps([(name, len(contents[name])) for name in names], separators=(",", ":"))
        parts = [index.encode(), b"\n", *(contents[name] for name in names)]
        return lzma.compress(b"".join(parts), filters=[PACKING])

    def _module(self, address: str) -> File | None:
        """A file of a package of npm, of the version that the address names."""
        named = SERVED.fullmatch(address)
        if named is None:
            return None
        name, version, path = named.groups()
        if self.folders.modules is None:
            elsewhere = f"{CDN}/pyodide/v{version}/full/{path}" if name == "pyodide" else f"{CDN}/npm/{address}"
            return File(b"", "text/plain", "", redirect=elsewhere)
        folder = self.folders.modules / name
        description = folder / "package.json"
        if not description.exists() or json.loads(description.read_text(encoding="utf-8"))["version"] != version:
            raise SiteError(f"node_modules has no {name}@{version}; run npm ci")
        return self._read(folder, path, FOREVER, pack=name != "pyodide")

    def _read(self, folder: Path, path: str, cache: str, *, pack: bool) -> File | None:
        try:
            root = folder.resolve()
            file = (root / path).resolve()
            if not file.is_relative_to(root) or not file.is_file() or file.suffix not in TYPES:
                return None
            return _file(file.read_bytes(), file.name, cache=cache, pack=pack)
        except (OSError, ValueError, RuntimeError):  # No file can have the name: too long, a NUL, links in a circle.
            return None


def _bare(name: str, content: bytes) -> bytes:
    """A file without what Python and JavaScript do not run."""
    if name.endswith(".py"):
        return without_comments(content.decode()).encode()
    return COMMENTS.sub("", content.decode()).encode() if name.endswith(".mjs") else content


def without_comments(source: str) -> str:
    """The same program, each line at its number: no comments, docstrings and types, narrow indentation."""
    lines = source.splitlines(keepends=True)
    kept = list(lines)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            line, column = token.start
            kept[line - 1] = lines[line - 1][:column].rstrip() + "\n"
    nodes = [*ast.walk(ast.parse(source))]
    for line, start, end in sorted(_annotations(nodes, lines), reverse=True):
        encoded = kept[line - 1].encode()  # Columns of a tree count bytes.
        kept[line - 1] = (encoded[:start] + encoded[end:]).decode()
    for node in nodes:
        if _is_for_checkers(node):
            kept[_first_line(node) - 1 : node.end_lineno] = ["\n"] * ((node.end_lineno or 0) - _first_line(node) + 1)
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
            if text is not None and text.end_lineno is not None:
                kept[text.lineno - 1 : text.end_lineno] = ["\n"] * (text.end_lineno - text.lineno + 1)
                if len(node.body) == 1:
                    kept[text.lineno - 1] = " " * text.col_offset + '""\n'
    return _dedented(_without_type_imports("".join(kept)))


def _without_type_imports(source: str) -> str:
    """The same program without the imports of names that stood in annotations alone."""
    tree, lines = ast.parse(source), source.splitlines(keepends=True)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    used |= {str(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)}  # as in __all__
    for node in tree.body:
        if _imports_types(node):
            names = [one.name for one in node.names if one.name in used]
            first, last = node.lineno - 1, node.end_lineno or node.lineno
            lines[first:last] = ["\n"] * (last - first)
            if names:
                lines[first] = f"from {node.module} import {', '.join(names)}\n"
    return "".join(lines)


def _imports_types(node: ast.stmt) -> TypeGuard[ast.ImportFrom]:
    """Whether all that it imports are classes, by their own names."""
    return isinstance(node, ast.ImportFrom) and all(one.asname is None and one.name[0].isupper() for one in node.names)


def _is_for_checkers(node: ast.AST) -> TypeGuard[ast.If | ast.FunctionDef]:
    """Whether only type checkers read it: imports for annotations, and the ways in which a function may be called."""
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING" and not node.orelse
    overloads = [ast.unparse(one) for one in node.decorator_list] if isinstance(node, ast.FunctionDef) else []
    return "overload" in overloads


def _first_line(node: ast.If | ast.FunctionDef) -> int:
    decorators = [] if isinstance(node, ast.If) else node.decorator_list
    return min(node.lineno, *(one.lineno for one in decorators)) if decorators else node.lineno


def _dedented(source: str) -> str:
    """A program with one space a level, but for the lines inside of texts."""
    inside: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.STRING or tokenize.tok_name[token.type].startswith("FSTRING"):
            inside.update(range(token.start[0] + 1, token.end[0] + 1))
    lines = source.splitlines(keepends=True)
    depths = [0 if at in inside else len(line) - len(line.lstrip(" ")) for at, line in enumerate(lines, 1)]
    return "".join([" " * (depth // 4) + line[depth:] for line, depth in zip(lines, depths, strict=True)])


def _annotations(nodes: Iterable[ast.AST], lines: list[str]) -> Iterator[tuple[int, int, int]]:
    """Where functions and variables say types, on one line each: its number, and the columns from and to.

    Those of a class's own body stay: a dataclass reads them.
    """
    of_classes = {id(inner) for node in nodes if isinstance(node, ast.ClassDef) for inner in node.body}
    for node in nodes:
        if isinstance(node, ast.AnnAssign) and node.value is not None and id(node) not in of_classes:
            yield from _span(node.lineno, node.target.end_col_offset or 0, node.annotation)
        elif isinstance(node, ast.arg) and node.annotation is not None:
            yield from _span(node.lineno, node.col_offset + len(node.arg.encode()), node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            start = lines[node.returns.lineno - 1].encode().rfind(b" ->", 0, node.returns.col_offset)
            yield from _span(node.returns.lineno, start, node.returns)


def _span(line: int, start: int, annotation: ast.expr) -> Iterator[tuple[int, int, int]]:
    """From a column to the end of an annotation, where both are on the line."""
    if start >= 0 and annotation.end_lineno == line:
        yield line, start, annotation.end_col_offset or 0


def _is_in(parts: Iterable[str], name: str) -> bool:
    """Whether a file of an archive is one of these parts: of the package, or of the demo."""
    return name.removeprefix("pywebgpu/").startswith(tuple(parts))


def _file(body: bytes, name: str, *, cache: str = "no-cache", pack: bool) -> File:
    kind = TYPES.get(Path(name).suffix, "application/octet-stream")
    packed = gzip.compress(body, mtime=0) if pack and kind.startswith(TEXTS) and len(body) > 500 else b""
    return File(body, kind, f'"{sha256(body).hexdigest()[:24]}"', cache, packed)
