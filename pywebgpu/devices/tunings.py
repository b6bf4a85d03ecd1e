"""Where the tunings of this machine's adapters are kept: a file an adapter, in the cache folder."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pywebgpu.settings import settings
from pywebgpu.support import atomic


def load(info: Mapping[str, Any]) -> str:
    """The text of an adapter of wgpu-py; "" where none is kept."""
    file = _file(info)
    with suppress(OSError, UnicodeDecodeError):
        return "" if file is None else file.read_text(encoding="utf-8")
    return ""


def save(info: Mapping[str, Any], text: str) -> str:
    """Keeps it. Where, as text; "" where nothing is kept."""
    file = _file(info)
    if file is None:
        return ""
    file.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(file, text)
    return str(file)


def _file(info: Mapping[str, Any]) -> Path | None:
    name = quote(f"{info['vendor']} {info['device']} {info['backend_type']} naga", safe="")
    return Path(settings.cache) / "tuning" / f"{name}.json" if settings.cache else None
