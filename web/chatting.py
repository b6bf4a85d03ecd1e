"""Python in the chat's worker: the language model of a file that the page hands over, and a conversation with it."""

import json
import math
import time
from collections.abc import Callable
from typing import Any

from js import FileReaderSync
from pyodide.ffi import JsException, create_proxy

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.errors import PywebgpuError
from pywebgpu.io import gguf
from pywebgpu.models.chat import Chat
from pywebgpu.models.generation import Sampling
from pywebgpu.models.llama import Llama
from pywebgpu.models.tokenizer import Tokenizer

WINDOW = 1 << 22  # bytes that are read at once where less is asked for
LENGTH = 2048  # tokens of a conversation
TOLD_EACH = 0.1  # seconds between two messages of progress


async def main(port: Any) -> None:
    """Opens the device, then opens models and answers as the page asks."""
    talker = Talker(port)
    try:
        await torch.webgpu.init()
    except PywebgpuError as error:
        return talker.tell("broken", text=str(error))
    torch.set_default_device("webgpu")
    port.loaded()
    talker.tell("ready")
    while True:
        command = json.loads(port.take() or "null")
        if command is None:
            await port.arrived()
            continue
        try:
            await talker.do(command)
        except Exception as error:
            talker.tell("failed", text=_explain(error))


class Talker:
    """One model at a time, and one conversation with it."""

    def __init__(self, port: Any) -> None:
        self.port = port
        self.chat: Chat | None = None
        self._opened: tuple[Llama, Tokenizer] | None = None

    def tell(self, what: str, **content: Any) -> None:
        self.port.tell(json.dumps({"is": what, **content}))

    async def do(self, command: dict[str, Any]) -> None:
        match command["do"]:
            case "open":
                await self.open(self.port.blob())
            case "keep":
                await self._fetch(lambda progress: self.port.keepModel(self.port.blob(), progress))
            case "fetch":
                await self._fetch(lambda progress: self.port.fetchModel(command["address"], progress))
            case "begin":
                self.begin(command["system"], command["sampling"])
            case "say":
                await self.say(command["text"])

    async def _fetch(self, start: Callable[[Any], Any]) -> None:
        """Keeps a file, and opens it."""
        told_at = 0.0

        def progress(came: int, total: int) -> bool:
            nonlocal told_at
            if time.perf_counter() - told_at > TOLD_EACH or came == total:
                told_at = time.perf_counter()
                self.tell("fetching", came=came, total=total)
            return not self._is_stopped()

        proxy = create_proxy(progress)
        try:
            blob = await start(proxy)
        finally:
            proxy.destroy()
            self.tell("kept")
        if blob is None:
            self.tell("failed", text="Stopped. What came is kept, and the next attempt goes on from there.")
        else:
            await self.open(blob)

    async def open(self, blob: Any) -> None:
        """Reads the model of a file; one that was open before is let go first."""
        self.chat = self._opened = None
        self.tell("opening", name=blob.name)
        file = gguf.File(Ranges(blob))
        tokenizer = Tokenizer.from_file(file)
        self._opened = Llama.from_file(file), tokenizer
        await devices.open_device("webgpu").synchronize_async()
        parameters = sum(math.prod(entry.shape) for entry in file.entries.values())
        title = file.metadata.get("general.name") or blob.name
        self.tell("opened", name=title, parameters=parameters, memory=_device_bytes())

    def begin(self, system: str, sampling: dict[str, float]) -> None:
        """A conversation from its beginning, with other settings."""
        assert self._opened is not None
        self.chat = Chat(*self._opened, system=system or None, length=LENGTH, sampling=Sampling(**sampling))

    async def say(self, text: str) -> None:
        """Answers, piece by piece, until the page stops it."""
        assert self.chat is not None
        chat = self.chat
        async for piece in chat.reply_async(text):
            self.tell("piece", text=piece, tokens=chat.tokens, seconds=chat.seconds)
            if self._is_stopped():
                break
        self.tell("said", tokens=chat.tokens, seconds=chat.seconds, memory=_device_bytes())

    def _is_stopped(self) -> bool:
        command = json.loads(self.port.take() or "{}")
        return command.get("do") == "stop"


class Ranges:
    """The bytes of a file of the browser's, of which ranges are read as they are asked for."""

    def __init__(self, blob: Any) -> None:
        self._blob, self._reader = blob, FileReaderSync.new()
        self._begin, self._window = 0, b""

    def __len__(self) -> int:
        return int(self._blob.size)

    def __getitem__(self, key: slice) -> bytes:
        begin, end, _ = key.indices(len(self))
        if end - begin >= WINDOW:
            return self._read(begin, end)
        if begin < self._begin or end > self._begin + len(self._window):
            self._begin, self._window = begin, self._read(begin, min(begin + WINDOW, len(self)))
        return self._window[begin - self._begin : end - self._begin]

    def _read(self, begin: int, end: int) -> bytes:
        content: bytes = self._reader.readAsArrayBuffer(self._blob.slice(begin, end)).to_bytes()
        return content


def _explain(error: Exception) -> str:
    if isinstance(error, JsException):
        return str(error.message)
    return str(error) if isinstance(error, PywebgpuError | ValueError) else f"{type(error).__name__}: {error}"


def _device_bytes() -> int:
    counters = devices.open_device("webgpu").counters
    return int(counters.get("device_bytes", counters["live_bytes"]))
