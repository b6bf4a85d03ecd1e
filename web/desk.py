"""What the tabs of language models share: the page that is told, files that it hands over, and a model that is open."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import blobs
import js
from pyodide.ffi import JsException, create_proxy, to_js

from pywebgpu import devices
from pywebgpu.errors import PywebgpuError
from pywebgpu.io import gguf
from pywebgpu.models import lora
from pywebgpu.models.llama import Llama
from pywebgpu.models.tokenizer import Tokenizer

TOLD_EACH = 0.1  # seconds between two messages of progress


class Stopped(Exception):
    """The page stopped what was done."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A language model, and where it came from."""

    model: Llama
    tokenizer: Tokenizer
    name: str
    parameters: int


class Desk:
    """The page that is told, and one language model at a time. tabs: what does the commands of each tab."""

    def __init__(self, port: Any, tabs: Mapping[str, Callable[[Desk], Any]]) -> None:
        self.port, self._kinds = port, tabs
        self._opened: Opened | None = None
        self._tabs: dict[str, Any] = {}
        self._told_at = 0.0

    def tell(self, what: str, **content: Any) -> None:
        self.port.tell(json.dumps({"is": what, **content}))

    def give(self, what: str, **content: Any) -> None:
        """The same, with the file that was written for the page."""
        self.port.give(json.dumps({"is": what, **content}))

    def tell_progress(self, what: str, came: int, total: int) -> None:
        """How far something is, seldom enough to cost nothing."""
        if time.perf_counter() - self._told_at > TOLD_EACH or came == total:
            self._told_at = time.perf_counter()
            self.tell(what, came=came, total=total)

    async def do(self, command: dict[str, Any]) -> None:
        try:
            if command["do"] == "open model":
                await self._open(command)
            else:
                name = command["tab"]
                if name not in self._tabs:
                    self._tabs[name] = self._kinds[name](self)
                await self._tabs[name].do(command)
        except Stopped as error:
            self.tell("failed", text=str(error))
        except Exception as error:
            self.tell("failed", text=_explain(error))
        self.tell("idle")

    @property
    def opened(self) -> Opened:
        """The model that is open. Raises: ValueError when none is."""
        if self._opened is None:
            raise ValueError("Open a model first.")
        return self._opened

    async def files(self, command: dict[str, Any]) -> dict[str, Any]:
        """The files of a model by their names, which are kept first where the page says so. Raises: Stopped."""
        kind, name, sha256 = command["kind"], command["name"], command.get("sha256", "")
        files = dict(js.Object.entries(self.port.blobs())) if "sources" not in command else {}
        if not command.get("keep"):
            self._check(files, sha256)
            return files
        sources = command.get("sources") or [{"name": name, "blob": blob} for name, blob in files.items()]
        progress, digest = create_proxy(self._progress), create_proxy(self._digest)
        request = {"kind": kind, "name": name, "sources": sources, "sha256": sha256}
        request |= {"progress": progress, "digest": digest}
        try:
            is_whole = await self.port.keepModel(to_js(request, dict_converter=js.Object.fromEntries))
        finally:
            progress.destroy()
            digest.destroy()
            self.tell("kept")
        if not is_whole:
            raise Stopped("Stopped. What came is kept, and the next attempt goes on from there.")
        return dict(js.Object.entries(await self.port.keptFiles(kind, name)))

    def _progress(self, came: int, total: int) -> bool:
        self.tell_progress("fetching", came, total)
        return not self.is_stopped()

    def _digest(self, blob: Any) -> str:
        self.tell("checking")
        return blobs.sha256(blob)

    def _check(self, files: dict[str, Any], wanted: str) -> None:
        """Compares the weights, which come last, with a checksum."""
        *_, (name, blob) = files.items()
        if wanted and (actual := self._digest(blob)) != wanted:
            raise ValueError(f"{name}: its SHA-256 is {actual}, not {wanted}")

    async def _open(self, command: dict[str, Any]) -> None:
        """Reads the language model of a file; one that was open before is let go first."""
        *_, blob = (await self.files(command)).values()
        self._opened = None
        for name in ("chat", "tune"):  # They hold what the model computes with.
            self._tabs.pop(name, None)
        self.tell("closed")
        self.tell("opening", name=command["name"])
        file = gguf.File(blobs.Ranges(blob))
        tokenizer = Tokenizer.from_file(file)
        title = file.metadata.get("general.name") or command["name"]
        parameters = sum(math.prod(entry.shape) for entry in file.entries.values())
        self._opened = Opened(Llama.from_file(file), tokenizer, title, parameters)
        await devices.open_device("webgpu").synchronize_async()
        self.tell_opened()

    def tell_opened(self) -> None:
        """Tells what is open, also when it is no longer what it was: conversations begin anew."""
        model = self.opened.model
        n_added = sum(value.numel() for value in lora.parameters(model))
        facts = {"name": self.opened.name, "parameters": self.opened.parameters, "added": n_added}
        self.tell("opened", **facts, memory=device_bytes())

    def is_stopped(self) -> bool:
        """Whether the page asked to stop."""
        command = json.loads(self.port.take() or "{}")
        return command.get("do") == "stop"


def device_bytes() -> int:
    """The bytes that live on the GPU."""
    counters = devices.open_device("webgpu").counters
    return int(counters.get("device_bytes", counters["live_bytes"]))


def _explain(error: Exception) -> str:
    if isinstance(error, JsException):
        return str(error.message)
    return str(error) if isinstance(error, PywebgpuError | ValueError) else f"{type(error).__name__}: {error}"
