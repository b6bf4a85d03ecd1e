"""What the Search tab asks of Python: the passages of texts whose meaning is nearest to a question's."""

from pathlib import Path
from typing import Any

import blobs
from desk import Desk, device_bytes

from pywebgpu import devices
from pywebgpu.models.embedding import TextEncoder
from pywebgpu.models.search import Passage, Search, split
from pywebgpu.tensor import functions

FOLDER = "/encoder"  # where the model's files are shown
BATCH = 32  # passages that are encoded between two looks at the page
COUNT = 8  # answers


class Tab:
    """One model, and the passages that it has read."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.encoder: TextEncoder | None = None
        self.index: Search | None = None

    async def do(self, command: dict[str, Any]) -> None:
        match command["do"]:
            case "open":
                await self.open(command)
            case "ask":
                if command["texts"] is not None:
                    await self.read(command["texts"])
                await self.ask(command["question"])

    async def open(self, command: dict[str, Any]) -> None:
        """Reads the model of a folder; one that was open before is let go first."""
        files = await self.desk.files(command)
        self.encoder = self.index = None
        self.desk.tell("opening", name=command["name"])
        blobs.mount(files, FOLDER)
        self.encoder = TextEncoder.from_file(FOLDER)
        await devices.open_device("webgpu").synchronize_async()
        parameters = sum(value.numel() for value in self.encoder.model.parameters())
        self.desk.tell("encoder", name=command["name"], parameters=parameters, memory=device_bytes())

    async def read(self, texts: list[dict[str, str]]) -> None:
        """Encodes the passages of texts; where the page stops it, those that are encoded can be searched."""
        assert self.encoder is not None
        self.index = None
        passages: list[Passage] = [part for text in texts for part in split(Path(text["name"]), text["text"])]
        vectors = []
        for begin in range(0, len(passages), BATCH):
            vectors.append(self.encoder.encode([part.text for part in passages[begin : begin + BATCH]]))
            await devices.open_device("webgpu").synchronize_async()
            n_read = min(begin + BATCH, len(passages))
            self.desk.tell("reading", came=n_read, total=len(passages))
            if self.desk.is_stopped():
                passages = passages[:n_read]
                break
        self.index = Search(self.encoder, passages, functions.cat(vectors) if vectors else None)

    async def ask(self, question: str) -> None:
        """Answers from what was read."""
        if self.index is None:
            raise ValueError("There is no text to search in.")
        pairs = await self.index.nearest_async(question, COUNT)
        answers = [{"score": score, "name": str(p.path), "line": p.line, "text": p.text} for score, p in pairs]
        self.desk.port.ran()
        self.desk.tell("answers", answers=answers, passages=len(self.index.passages))
