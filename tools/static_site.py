"""`make site`: the page, the documentation and the exported demo as plain files, for any web server and any path."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from pywebgpu.hosts import site

ROOT = Path(__file__).parents[1]
LITE = ROOT / "dist" / "lite"  # where `make lite` has been
PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
LINKS = b"""<nav aria-label="More of this site">
        <a href="docs/index.html">Documentation</a> \xc2\xb7 <a href="export/index.html">The same without Python</a>
      </nav>
    </header>"""


def main(into: Path) -> int:
    """Writes the site to a folder, which is emptied before."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    try:
        page(into)
    except site.SiteError as error:
        print(f"make site: {error}", file=sys.stderr)
        return 2
    documentation(into / "docs")
    exported(into / "export")
    if LITE.is_dir():
        shutil.copytree(LITE, into / "lite")
    (into / ".nojekyll").touch()  # GitHub's pages leave out folders that begin with an underscore unless it is there.
    count = sum(path.is_file() for path in into.rglob("*"))
    print(f"{into}: {count} files, {sum(path.stat().st_size for path in into.rglob('*')) / 1e6:.0f} MB")
    return 0


def page(into: Path) -> None:
    """What `pywebgpu serve` would answer to each address that the page may ask for."""
    pages = site.Site(site.find_folders(cdn=False))
    pages.prepare()
    index = answer(pages, "index.html")
    found = re.search(rb'<script type="application/json" id="config">(.*?)</script>', index)
    assert found is not None, "the page says where its parts are"
    config = json.loads(found[1])
    own = [path.relative_to(pages.folders.web).as_posix() for path in pages.folders.web.rglob("*") if path.is_file()]
    named = [name.decode() for name in re.findall(rb'"\./(modules/[^"]+)"', index)]
    python = [f"{config['pyodide'].removeprefix('./')}{name}" for name in PYODIDE]
    made = [f"kept/{config['version']}/{name}" for name in (*site.BRIDGE, *site.PLAYER)]  # what modules import
    programs = [*pages.folders.gallery.iterdir(), *pages.folders.gallery.glob("examples/*.py")]
    gallery = ["index.json", *(path.name for path in programs if path.is_file())]
    pieces = [f"gallery/{name}" for name in gallery]
    for address in [*own, *site.PLAIN, *named, *python, *made, *pieces, *config["kept"].values()]:
        content = pages.file(address)
        if content is not None:  # Some files of web/ are for the server alone.
            write(into / address, content.body)
    config["peers"] = []  # Other libraries stay where they are.
    index = index.replace(found[1], json.dumps(config).encode(), 1)
    write(into / "index.html", index.replace(b"</header>", LINKS, 1))


def answer(pages: site.Site, address: str) -> bytes:
    found = pages.file(address)
    assert found is not None, address
    return found.body


def write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def documentation(into: Path) -> None:
    """With `-t site` its programs can be run, in the editor of the page beside it."""
    run(["-m", "sphinx", "-W", "--keep-going", "-q", "-t", "site", "-d", "docs/_build/.site", "docs", str(into)])


def exported(into: Path) -> None:
    """For any adapter, since visitors have others than the machine that makes the site."""
    command = ["-m", "pywebgpu", "export", "demos/chargpt/export.py", str(into), "--layers", "2", "--trained", "20"]
    run(command, PYWEBGPU_PORTABLE="1", PYWEBGPU_DEVICE="webgpu")


def run(command: list[str], **changes: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | changes
    subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, check=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "dist/site").resolve()))
