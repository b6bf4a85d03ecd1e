"""What the Fine-tune tab asks of Python: adapters beside the model that is open, which learn a text."""

import time
from pathlib import Path
from typing import Any

from desk import Desk, device_bytes

from pywebgpu.io import safetensors
from pywebgpu.models import finetuning, lora
from pywebgpu.models.chat import Answer
from pywebgpu.models.generation import Decoder

PATH = Path("/page/checkpoint.safetensors")  # from where a file goes to the page
N_WRITTEN = 48  # tokens of a sample
LENGTH = 512  # tokens that a sample has room for


class Tab:
    """One adapter."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.config: lora.LoraConfig | None = None

    async def do(self, command: dict[str, Any]) -> None:
        match command["do"]:
            case "train":
                await self.train(command["text"], command["prompt"], **command["settings"])
            case "save":
                await self.save()
            case "remove":
                self.remove()
                self.desk.tell_opened()

    async def train(self, text: str, prompt: str, steps: int, length: int, rank: int, rate: float) -> None:
        """Writes, learns, and writes again; the page may stop it between two tokens or steps."""
        opened, tell = self.desk.opened, self.desk.tell
        ids = opened.tokenizer.encode(text)
        rows = finetuning.rows(ids, length)
        tell("data", tokens=len(ids), rows=len(rows))
        self.remove()
        await self.write("before", prompt)
        config = lora.LoraConfig(r=rank, lora_alpha=2 * rank)
        lora.add(opened.model, config)
        self.config = config
        training, start, step = finetuning.Finetuning(opened.model, learning_rate=rate), time.perf_counter(), 0
        async for loss in training.run_async(rows, steps):
            step += 1
            tell("step", step=step, loss=loss, seconds=time.perf_counter() - start)
            if self.desk.is_stopped():
                break
        opened.model.eval()
        await self.write("after", prompt)
        self.desk.port.ran()
        tell("trained", step=step, memory=device_bytes())
        self.desk.tell_opened()

    async def write(self, when: str, prompt: str) -> None:
        """How the model goes on after a prompt, piece by piece."""
        opened = self.desk.opened
        ids = opened.tokenizer.encode(prompt or "\n")[-LENGTH // 2 :]
        decoder, answer = Decoder(opened.model, LENGTH), Answer(opened.tokenizer, N_WRITTEN)
        decoder.begin(ids)
        self.desk.tell("sample", when=when, text=prompt)
        while True:
            self.desk.tell("sample", when=when, text=answer.take(await decoder.read_async()))
            if answer.is_over or self.desk.is_stopped():
                return
            decoder.advance()

    async def save(self) -> None:
        """Gives the page the adapter as peft's two files."""
        if self.config is None:
            raise ValueError("There is no adapter yet.")
        tensors = {name: await value.cpu_async() for name, value in lora.state_dict(self.desk.opened.model).items()}
        safetensors.save_file(tensors, PATH, {"format": "pt"})
        self.desk.give("adapter", weights=lora.WEIGHTS, config=lora.CONFIG, text=lora.config_file(self.config))

    def remove(self) -> None:
        """Leaves the model as it was opened."""
        lora.remove(self.desk.opened.model)
        self.config = None
