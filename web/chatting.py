"""What the Chat tab asks of Python: a conversation with the model that is open."""

from typing import Any

from desk import Desk, device_bytes

from pywebgpu.models.chat import Chat
from pywebgpu.models.generation import Sampling

LENGTH = 2048  # tokens of a conversation


class Tab:
    """One conversation."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.chat: Chat | None = None

    async def do(self, command: dict[str, Any]) -> None:
        if command["begin"] or self.chat is None:
            self.begin(**command["begin"])
        await self.say(command["text"])

    def begin(self, system: str, sampling: dict[str, float]) -> None:
        """A conversation from its beginning, with other settings."""
        opened, choice = self.desk.opened, Sampling(**sampling)
        self.chat = Chat(opened.model, opened.tokenizer, system=system or None, length=LENGTH, sampling=choice)

    async def say(self, text: str) -> None:
        """Answers, piece by piece, until the page stops it."""
        assert self.chat is not None
        chat = self.chat
        async for piece in chat.reply_async(text):
            self.desk.tell("piece", text=piece, tokens=chat.tokens, seconds=chat.seconds)
            if self.desk.is_stopped():
                break
        self.desk.port.ran()
        self.desk.tell("said", tokens=chat.tokens, seconds=chat.seconds, memory=device_bytes())
