"""PyTorch's source package as Debian has it: fetched through apt, unpacked into a cache folder elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

SUITE = "trixie"
SOURCES = f"""Types: deb-src
URIs: http://deb.debian.org/debian
Suites: {SUITE}
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""
PARTS = ("test/", "torch/testing/")


def cache() -> Path:
    """Where the source lies, and what runs write that is no result."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pywebgpu-tests"


def folder() -> Path:
    """The folder with `test/` and `torch/testing/`; fetched at the first call, as root, where apt is.

    Raises SystemExit where it cannot be fetched.
    """
    unpacked = cache() / "pytorch"
    if not (unpacked / "complete").exists():
        archive = _archive() or _fetched()
        _unpack(archive, unpacked)
        (unpacked / "complete").write_text(f"{archive.name}\n", encoding="utf-8")
    return unpacked


def _archive() -> Path | None:
    return next(iter(sorted(cache().glob("pytorch_*.orig.tar.*"))), None)


def _fetched() -> Path:
    lists = cache() / "lists"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    sources = cache() / "pytorch.sources"
    sources.write_text(SOURCES, encoding="utf-8")
    options = {"Dir::Etc::sourcelist": sources, "Dir::Etc::sourceparts": "/dev/null", "Dir::State::lists": lists}
    apt = ["apt-get", "-q", *(text for key, value in options.items() for text in ("-o", f"{key}={value}"))]
    try:
        for command in (["update"], ["source", "--download-only", "pytorch"]):
            subprocess.run([*apt, *command], cwd=cache(), check=True, stdout=sys.stderr)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"PyTorch's source package of Debian {SUITE} cannot be fetched: {error}") from None
    archive = _archive()
    if archive is None:
        raise SystemExit(f"apt fetched no source of PyTorch into {cache()}")
    return archive


def _unpack(archive: Path, target: Path) -> None:
    with tarfile.open(archive) as tar:
        for member in tar:
            _, _, path = member.name.partition("/")
            if path.startswith(PARTS):
                member.name = path
                tar.extract(member, target, filter="data")
