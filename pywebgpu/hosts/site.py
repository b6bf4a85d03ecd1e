"""What `pywebgpu serve` serves: the pages of web/, the library and a text to train on as archives, and packages of npm.

Apart from serve.py because nothing here speaks HTTP: an address goes in, a file comes out.
"""

import ast
import gzip
import importlib.util
import json
import lzma
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path

from pywebgpu.errors import PywebgpuError
from pywebgpu.hosts import first_kernels, page_files, prepared, snapshot, stripping
from pywebgpu.support import installation
from pywebgpu.support.installation import InstallationError

PACKAGE = Path(__file__).parents[1]
PEERS = PACKAGE.parent / "tests" / "peers"  # other libraries, which a checkout may have installed
PYODIDE = "314.0.7"
CDN = "https://cdn.jsdelivr.net"
NEEDED = ("pyodide", "uplot", "@codemirror/view")
# Of node_modules only these are served: what the import map of web/index.html names, and what programs may ask for.
SERVED = re.compile(
    r"(pyodide|uplot|crelt|style-mod|w3c-keyname|@(?:codemirror|huggingface|lezer|marijn)/[\w-]+)@([\d.]+)/((?!.*\.\.)[\w./@+-]+)",
    re.ASCII,
)
TYPES = {
    ".css": "text/css", ".html": "text/html", ".jpg": "image/jpeg", ".js": "text/javascript",
    ".json": "application/json", ".mjs": "text/javascript", ".svg": "image/svg+xml",
    ".safetensors": "application/octet-stream", ".txt": "text/plain", ".wasm": "application/wasm",
    ".whl": "application/zip", ".zip": "application/zip",
}  # fmt: skip
PACKAGED = re.compile(r"\.(?:whl|zip|tar|tar\.gz)$")  # files of packages of Pyodide's
TEXTS = ("text/", "application/json", "image/svg+xml")
# Best for text. The dictionary is as large as an archive needs: a page's Python sets aside memory for all of it.
PACKING = {"id": lzma.FILTER_LZMA2, "preset": lzma.PRESET_EXTREME | 9, "lc": 4, "pb": 0, "dict_size": 1 << 21}
WORD = re.compile(rb"[A-Za-z_]\w*[ (.,=:]?|\n +")  # of an archive, with what follows it
WORDS = 32  # that are bytes in an archive: more would take the page's Python longer than they save
NEWLINE = ord("\n")
FOREVER = "public, max-age=31536000, immutable"  # for addresses that name a version
KEPT = re.compile(r"kept/([0-9a-f]{24})/([\w.-]+)", re.ASCII)  # such addresses: of what is made here, with its digest
# What a script of web/ imports from there.
BESIDE = {
    "training.py": ("inside.py",),
    "editing.py": ("figures.py",),
    "language.py": ("blobs.py", "chatting.py", "desk.py", "searching.py", "tuning.py"),
}
ARCHIVES = ("training.xz", "rest.xz", "editing.xz", "language.xz", "measuring.xz")
SNAPSHOTS = ("training.gz", "editing.gz", "language.gz")
# What plays the model of the first view, and that model.
PLAYER = tuple(f"{n}.mjs" for n in ("files", "host_program", "player", "runner", "safetensors", "validate", "values"))
FIRST = "first/program.json"
PLAIN = ("documentation.txt", "model.txt")  # texts that a page asks for when they are wanted
CONFIG = b'<script type="application/json" id="config">'
KERNELS = tuple(f"kernels-{family}.json" for family in first_kernels.FAMILIES)
# The bridge as modules of its own: a worker opens the device while Python still loads.
BRIDGE = tuple(
    f"{n}.mjs"
    for n in ("bridge", "call_queue", "errors", "memory", "pool", "program", "python", "reader", "timing", "tuning")
)


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
    gallery: Path
    pyodide: Path | None = None  # a full distribution, where one is named


def find_folders(*, cdn: bool, pyodide: Path | None = None) -> Folders:
    """Raises SiteError where a folder is missing, or holds another version of Pyodide."""
    root = PACKAGE.parent
    inside = (PACKAGE / "web" / "index.html").exists()
    web, bridge, demos = (
        (PACKAGE / "web", PACKAGE / "js_bridge", PACKAGE / "web")
        if inside
        else (root / "web", root / "js_bridge", root / "demos")
    )
    demo, gallery = demos / "chargpt", demos / "gallery"
    for folder in (web, bridge, demo):
        if not folder.is_dir():
            raise SiteError(f"{folder} is missing: this installation of pywebgpu has no pages")
    if cdn:
        return Folders(web, bridge, demo, None, gallery)
    if pyodide is not None and not (pyodide / "pyodide.asm.wasm").is_file():
        raise SiteError(f"{pyodide} holds no Pyodide: it needs the files of pyodide-{PYODIDE}.tar.bz2")
    try:
        return Folders(web, bridge, demo, installation.find_modules(NEEDED).path, gallery, pyodide)
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
            "parts.py": (folders.web / "parts.py").read_bytes,
            "training.xz": lambda: self._archive(self._training(later=False)),
            "rest.xz": lambda: self._archive(self._training(later=True)),
            "editing.xz": lambda: self._archive(self._files("editing.py")),
            "language.xz": lambda: self._archive(self._files("language.py") | _templates()),
            "measuring.xz": lambda: self._archive(self._files("measuring.py") | self._workloads()),
            "documentation.txt": self._documentation,
            "model.txt": (folders.demo / "model.py").read_bytes,
        }
        self._versioned = (0.0, "")

    def file(self, address: str) -> File | None:
        """The file of an address without its leading slash; None where there is none."""
        if address in ("", "index.html"):
            page = (self.folders.web / "index.html").read_bytes()
            return _file(page.replace(CONFIG, CONFIG + self._config()), "index.html", pack=True)
        if address in self._makers:
            return self._make(address)
        if address == "gallery/index.json":
            return _file(self._gallery(), address, pack=True)
        if address.startswith("gallery/"):
            name, folder = address.removeprefix("gallery/"), self.folders.gallery
            demo = self._read(folder, name, "no-cache", pack=True, also=".py")
            return demo or self._read(folder / "examples", name, "no-cache", pack=True, also=".py")
        if address.startswith("modules/"):
            return self._module(address.removeprefix("modules/"))
        if address.startswith("kept/"):
            return self._kept(address)
        if address.startswith("peers/"):
            return self._read(PEERS, address.removeprefix("peers/"), "no-cache", pack=True)
        return self._read(self.folders.web, address, "no-cache", pack=True)

    def _make(self, address: str) -> File:
        changed = max(path.stat().st_mtime for path in self._sources())
        with self._lock:
            kept = self._made.get(address)
            if kept is None or kept[0] != changed:
                self._made[address] = kept = (changed, _file(self._makers[address](), address, pack=True))
        return kept[1]

    def _kept(self, address: str) -> File | None:
        """What is made here, at an address that never means anything else."""
        named = KEPT.fullmatch(address)
        if named is None or named[1] != self._version():
            return None
        name = named[2]
        if name in ARCHIVES:
            return replace(self._make(name), cache=FOREVER)
        if name in (*BRIDGE, *PLAYER):
            content = stripping.bare(name, (self.folders.bridge / name).read_bytes())
            return _file(content, name, cache=FOREVER, pack=True)
        body = prepared.ready(name, named[1]) if name in (*SNAPSHOTS, *KERNELS) else None
        return None if body is None else _file(body, name, cache=FOREVER, pack=True)

    def _version(self) -> str:
        """Stands for all that archives and snapshots are made of."""
        changed = max(path.stat().st_mtime for path in self._sources())
        with self._lock:
            if self._versioned[0] != changed:
                digest = sha256(f"{PYODIDE} {sys.version}".encode())
                for path in sorted(self._sources()):
                    digest.update(f"{path} {path.stat().st_size}\n".encode() + path.read_bytes())
                self._versioned = (changed, digest.hexdigest()[:24])
            return self._versioned[1]

    def _gallery(self) -> bytes:
        """The programs of the gallery: a title and a line for each, as its docstring has them."""
        pieces, folder = [], self.folders.gallery
        for path in (*sorted(folder.glob("examples/*.py")), *sorted(folder.glob("*.py"))):
            title, _, about = (ast.get_docstring(ast.parse(path.read_bytes())) or "").partition(": ")
            is_example = path.parent != folder
            about = about[:1].upper() + about[1:]
            pieces.append({"name": path.stem, "title": title, "about": about, "isExample": is_example})
        return json.dumps(pieces).encode()

    def _sources(self) -> Iterable[Path]:
        for folder in (PACKAGE, self.folders.bridge, self.folders.demo, self.folders.web):
            yield from (path for path in folder.rglob("*.*") if path.name.endswith(page_files.CARRIED))

    def _config(self) -> bytes:
        """Where a worker finds its parts. A snapshot that is not ready yet has no address."""
        pyodide = f"./modules/pyodide@{PYODIDE}/" if self.folders.modules else f"{CDN}/pyodide/v{PYODIDE}/full/"
        version, has_first = self._version(), (self.folders.web / FIRST).exists()
        ready = [name for name in (*SNAPSHOTS, *KERNELS) if prepared.is_ready(name, version)]
        names = [*ARCHIVES, "python.mjs", "player.mjs", *ready]
        kept = {name: f"kept/{version}/{name}" for name in names}
        return json.dumps(
            {
                "pyodide": pyodide,
                "is_cdn": self.folders.modules is None,
                "version": version,
                "kept": kept,
                "hasFirst": has_first,
                "peers": sorted(path.parent.name for path in PEERS.glob("*/node_modules")),
                "hasGallery": self.folders.gallery.is_dir(),  # An installation has none.
            }
        ).encode()

    def prepare(self) -> None:
        """Makes what takes seconds, as far as it is missing."""
        version, folders = self._version(), self.folders
        for family, name in zip(first_kernels.FAMILIES, KERNELS, strict=True):
            sizes = folders.web / "sizes.json"
            prepared.keep(name, version, partial(first_kernels.make, folders.demo, sizes, family))
        if folders.modules is not None:
            for name in SNAPSHOTS:
                prepared.keep(name, version, partial(self._snapshot, name.removesuffix(".gz"), folders.modules))

    def _snapshot(self, name: str, modules: Path) -> bytes:
        """Of a Python that has imported all that training imports of the library, and a script of web/."""
        library = sorted(member for member in self._members("training.py") if member.startswith("pywebgpu/"))
        files = [member for member in library if member.endswith(".py") and not _is_in(page_files.LATER, member)]
        names = [member.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for member in files]
        archive = self._make(f"{name}.xz").body
        source = snapshot.Source(
            modules / "pyodide", self.folders.web / "parts.py", archive, self._make("rest.xz").body, (*names, name)
        )
        return snapshot.make(source)

    def _workloads(self) -> dict[str, bytes]:
        """What is measured, without what measures it natively."""
        names = ("gpt.py", "vision.py", "workloads.py")
        contents = {f"pywebgpu/bench/{name}": (PACKAGE / "bench" / name).read_bytes() for name in names}
        return contents | {"pywebgpu/bench/__init__.py": b""}

    def _documentation(self) -> bytes:
        """Pyodide's standard library lacks the text; that of this Python has it."""
        spec = importlib.util.spec_from_file_location("chargpt_data", self.folders.demo / "data.py")
        assert spec is not None
        assert spec.loader is not None
        data = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(data)
        text: str = data.python_documentation()
        return text.encode()

    def _training(self, *, later: bool) -> dict[str, bytes]:
        """What training is made of, or the rest of the library; without comments, docstrings and types."""
        own = {f"pywebgpu/js_bridge/{name}" for name in BRIDGE}  # The worker has these as modules of its own.
        members = {name: content for name, content in self._files("training.py").items() if name not in own}
        rest = {name for name in members if _is_in(page_files.LATER, name)}
        return {name: stripping.bare(name, content) for name, content in members.items() if (name in rest) == later}

    def _files(self, script: str) -> dict[str, bytes]:
        """The library, the demo and one script of web/, by their names in an archive."""
        return {name: path.read_bytes() for name, path in self._members(script).items()}

    def _members(self, script: str) -> dict[str, Path]:
        """Where those files lie."""
        folders = self.folders
        members = {f"pywebgpu/{path.relative_to(PACKAGE).as_posix()}": path for path in PACKAGE.rglob("*.*")}
        members |= {f"pywebgpu/js_bridge/{path.name}": path for path in folders.bridge.glob("*.mjs")}
        members |= {path.name: path for path in folders.demo.glob("*.py") if path.name != "main.py"}
        members |= {name: folders.web / name for name in (script, *BESIDE.get(script, ()))}
        carried = {name: path for name, path in members.items() if name.endswith(page_files.CARRIED)}
        return {name: path for name, path in carried.items() if not _stays(name)}

    def _archive(self, contents: dict[str, bytes]) -> bytes:
        """A line of JSON with the names of files and with words, then the texts, a zero between two of them.

        The words that stand most often are bytes that no text has: as single symbols they take 3% less.
        """
        names = sorted(contents)
        text = b"\0".join([contents[name] for name in names])
        words = _frequent(text)
        for byte, word in words:
            text = text.replace(word, bytes([byte]))
        head = json.dumps([names, [(byte, word.decode()) for byte, word in words]], separators=(",", ":"))
        return lzma.compress(head.encode() + b"\n" + text, filters=[PACKING])

    def _module(self, address: str) -> File | None:
        """A file of a package of npm, of the version that the address names."""
        named = SERVED.fullmatch(address)
        if named is None:
            return None
        name, version, path = named.groups()
        if self.folders.modules is None:
            elsewhere = f"{CDN}/pyodide/v{version}/full/{path}" if name == "pyodide" else f"{CDN}/npm/{address}"
            return File(b"", "text/plain", "", redirect=elsewhere)
        folder = self.folders.pyodide if name == "pyodide" and self.folders.pyodide else self.folders.modules / name
        if name == "pyodide" and PACKAGED.search(path) and not (folder / path).is_file():  # The network may have it.
            return File(b"", "text/plain", "", redirect=f"{CDN}/pyodide/v{version}/full/{path}")
        description = folder / "package.json"  # which a full distribution has as well
        if not description.exists() or json.loads(description.read_text(encoding="utf-8"))["version"] != version:
            raise SiteError(f"node_modules has no {name}@{version}; run npm ci")
        return self._read(folder, path, FOREVER, pack=name != "pyodide")

    def _read(self, folder: Path, path: str, cache: str, *, pack: bool, also: str = "") -> File | None:
        """also: a kind of file that is served from here only."""
        try:
            root = folder.resolve()
            file = (root / path).resolve()
            if not file.is_relative_to(root) or not file.is_file() or file.suffix not in (*TYPES, also):
                return None
            body = (
                stripping.bare(file.name, file.read_bytes())
                if root == self.folders.web.resolve()
                else file.read_bytes()
            )
            return _file(body, file.name, cache=cache, pack=pack)
        except (OSError, ValueError, RuntimeError):  # No file can have the name: too long, a NUL, links in a circle.
            return None


def _templates() -> dict[str, bytes]:
    """What turns a chat into text by the model's template, as far as this Python has it."""
    contents: dict[str, bytes] = {}
    for name in ("jinja2", "markupsafe"):
        spec = importlib.util.find_spec(name)
        for folder in (spec and spec.submodule_search_locations) or ():
            contents |= {f"{name}/{path.name}": path.read_bytes() for path in Path(folder).glob("*.py")}
    return contents


def _frequent(text: bytes) -> list[tuple[int, bytes]]:
    """The words of a text, the longest first, that take most of it, each with a byte that the text has not."""
    counts = Counter(WORD.findall(text))
    free = [byte for byte in range(1, 256) if byte not in text and byte != NEWLINE][:WORDS]
    words = sorted(counts, key=lambda word: (len(word) - 1) * counts[word], reverse=True)[: len(free)]
    return [*zip(free, sorted(words, key=len, reverse=True), strict=False)]


def _stays(name: str) -> bool:
    """Whether a file is for hosts where Python has files of its own."""
    return "__pycache__" in name or _is_in(page_files.NATIVE, name)


def _is_in(parts: Iterable[str], name: str) -> bool:
    """Whether a file of an archive is one of these parts: of the package, or of the demo."""
    return name.removeprefix("pywebgpu/").startswith(tuple(parts))


def _file(body: bytes, name: str, *, cache: str = "no-cache", pack: bool) -> File:
    kind = TYPES.get(Path(name).suffix, "application/octet-stream")
    is_text = kind.startswith(TEXTS) or name.endswith(".py")
    packed = gzip.compress(body, mtime=0) if pack and is_text and len(body) > 500 else b""
    return File(body, kind, f'"{sha256(body).hexdigest()[:24]}"', cache, packed)
