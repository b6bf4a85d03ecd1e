"""One training run: its settings, its steps, its samples, and the checkpoint from which it goes on as if never stopped.

Needs nothing but pywebgpu, and prints nothing: a terminal or a page stands around it.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields

from data import Corpus
from model import GPT, Config

import pywebgpu as torch
from pywebgpu import nn

WARM_UP = 100  # steps in which the learning rate rises
FLOOR = 0.05  # the part of the learning rate that is left at the end
CLIP = 1.0  # the longest gradient that is followed
PANEL = 8  # validation batches
FORMAT = "chargpt 1"
# What a checkpoint must hold, and as what.
PARTS = {"settings": dict, "text": str, "losses": list, "validation": list, "model": dict, "optimizer": dict}
PARTS |= {"schedule": dict, "random": torch.Tensor}


class CheckpointError(ValueError):
    """The file is not a checkpoint which this run can go on from. The message is one line for the user."""


@dataclass(frozen=True)
class Settings:
    """All that a run depends on, besides its text."""

    steps: int = 1200
    batch: int = 16
    context: int = 80
    layers: int = 4
    heads: int = 4
    width: int = 128
    rate: float = 4e-3
    seed: int = 1


class Run:
    """A model, its optimizer, and what they have been through."""

    def __init__(self, corpus: Corpus, settings: Settings, device: str) -> None:
        torch.manual_seed(settings.seed)
        self.corpus, self.settings, self.device = corpus, settings, device
        shape = Config(len(corpus.vocabulary), settings.context, settings.layers, settings.heads, settings.width)
        self.model = GPT(shape).to(device)
        matrices = [parameter for parameter in self.model.parameters() if parameter.ndim > 1]
        others = [parameter for parameter in self.model.parameters() if parameter.ndim <= 1]
        groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=settings.rate, betas=(0.9, 0.95))
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self._share_of_rate)
        self.losses: list[float] = []  # of each step
        self.validation: list[tuple[int, float]] = []  # steps done, loss

    @property
    def step(self) -> int:
        """How many steps have been done."""
        return len(self.losses)

    @property
    def characters_per_step(self) -> int:
        return self.settings.batch * self.settings.context

    def advance(self) -> float:
        """One step. Returns its loss."""
        inputs, targets = self._batch("train", self.step)
        self.optimizer.zero_grad()
        loss = self.model.loss(inputs, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimizer.step()
        self.schedule.step()
        self.losses.append(loss.item())
        return self.losses[-1]

    def validate(self) -> float:
        """The loss on text that is never trained on, always the same pieces. Keeps it."""
        self.model.eval()
        with torch.no_grad():
            losses = [self.model.loss(*self._batch("validation", at)).item() for at in range(PANEL)]
        self.model.train()
        self.validation.append((self.step, sum(losses) / PANEL))
        return self.validation[-1][1]

    def sample(self, prompt: str, length: int, temperature: float = 0.7, top_k: int = 40) -> Iterator[str]:
        """Yields the prompt, then `length` characters that the model makes up, one by one.

        What is drawn depends on seed and step only. Raises TextError for a prompt with unknown characters.
        """
        numbers = self.corpus.encode(prompt)
        generator = torch.Generator(device=self.device).manual_seed(self.settings.seed + self.step)
        yield prompt
        for _ in range(length):
            self.model.eval()
            numbers.append(self._next(numbers[-self.settings.context :], temperature, top_k, generator))
            self.model.train()
            yield self.corpus.vocabulary[numbers[-1]]

    def save(self, path: str, source: str | None) -> None:
        """Writes the checkpoint; the file appears whole or not at all. `source` is where the text came from."""
        state = {
            "format": FORMAT,
            "settings": asdict(self.settings),
            "source": source,
            "text": self.corpus.fingerprint,
            "losses": self.losses,
            "validation": self.validation,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "random": torch.get_rng_state(),
        }
        torch.save(state, path)

    def restore(self, state: dict) -> None:
        """Becomes the run that saved `state`. Raises CheckpointError when it was about another text."""
        if state["text"] != self.corpus.fingerprint:
            raise CheckpointError("the checkpoint was trained on another text; name that one with --data FILE")
        try:
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.schedule.load_state_dict(state["schedule"])
            torch.set_rng_state(state["random"])
        except (KeyError, RuntimeError, TypeError, ValueError) as error:
            raise CheckpointError(f"the checkpoint does not fit its own settings: {_line(error)}") from None
        self.losses = state["losses"]
        self.validation = [(step, loss) for step, loss in state["validation"]]

    def _share_of_rate(self, step: int) -> float:
        """Up in a line, then down along a cosine."""
        if step < WARM_UP:
            return (step + 1) / WARM_UP
        done = min(1.0, (step - WARM_UP) / max(1, self.settings.steps - WARM_UP))
        return FLOOR + (1.0 - FLOOR) * 0.5 * (1.0 + math.cos(math.pi * done))

    def _batch(self, part: str, step: int):
        inputs, targets = self.corpus.batch(part, step, self.settings.batch)
        return torch.tensor(inputs, device=self.device), torch.tensor(targets, device=self.device)

    def _next(self, numbers: list[int], temperature: float, top_k: int, generator) -> int:
        """Draws the next character from the `top_k` most likely ones."""
        # Always a whole context, so that the same kernels serve every length; the model never looks ahead.
        filled = numbers + [0] * (self.settings.context - len(numbers))
        with torch.no_grad():
            scores = self.model(torch.tensor([filled], device=self.device))[0]
            last = torch.tensor([len(numbers) - 1], device=self.device)
            best, which = (scores.index_select(0, last)[0] / temperature).topk(min(top_k, scores.shape[1]))
            drawn = torch.multinomial(best.softmax(dim=-1), 1, generator=generator)
            return which.gather(0, drawn).item()


def read_checkpoint(path: str, device: str) -> dict:
    """What `Run.save` wrote. Raises CheckpointError, with the reason, for all else."""
    try:
        state = torch.load(path, map_location=device)
    except FileNotFoundError:
        raise CheckpointError(f"there is no checkpoint {path} to go on from") from None
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise CheckpointError(f"cannot read the checkpoint {path}: {_line(error)}") from None
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise CheckpointError(f"{path} is not a checkpoint of this program")
    missing = [name for name, kind in PARTS.items() if not isinstance(state.get(name), kind)]
    if missing:
        raise CheckpointError(f"the checkpoint {path} is damaged: {', '.join(missing)}")
    return state


def settings_of(state: dict) -> Settings:
    """The settings that a checkpoint was made with."""
    known = {field.name for field in fields(Settings)}
    return Settings(**{name: value for name, value in state["settings"].items() if name in known})


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
