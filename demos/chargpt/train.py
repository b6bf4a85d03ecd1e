"""One training run: its settings, its steps, its samples, and the checkpoint from which it goes on as if never stopped.

Needs nothing but pywebgpu, and prints nothing: a terminal or a page stands around it.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from types import ModuleType

import model
from data import Corpus

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
    """A model, its optimizer, and what they have been through.

    source: the module that the model is of; it has a `GPT` and its `Config`, as model.py does.
    """

    def __init__(self, corpus: Corpus, settings: Settings, device: str, source: ModuleType = model) -> None:
        torch.manual_seed(settings.seed)
        self.corpus, self.settings, self.device = corpus, settings, device
        shape = source.Config(len(corpus.vocabulary), settings.context, settings.layers, settings.heads, settings.width)
        self.model = source.GPT(shape).to(device)
        matrices = [parameter for parameter in self.model.parameters() if parameter.ndim > 1]
        others = [parameter for parameter in self.model.parameters() if parameter.ndim <= 1]
        groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=settings.rate, betas=(0.9, 0.95))
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self._share_of_rate)
        self._learn = torch.compile(self._learn_once)
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
        self.losses.append(self.queue_step().item())
        return self.losses[-1]

    def queue_step(self) -> torch.Tensor:
        """One step, and its loss, which nobody has waited for and which is not kept yet."""
        return self._learn(*self._batch("train", self.step))

    def _learn_once(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Forward, backward, clipping, update and schedule: one program, which later steps run without Python."""
        self.optimizer.zero_grad()
        loss = self.model.loss(inputs, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimizer.step()
        self.schedule.step()
        return loss

    def validate(self) -> float:
        """The loss on text that is never trained on, always the same pieces. Keeps it."""
        return self.keep_validation([self.validation_loss(at).item() for at in range(PANEL)])

    def validation_loss(self, at: int) -> torch.Tensor:
        """The loss on one piece of that text."""
        self.model.eval()
        with torch.no_grad():
            loss = self.model.loss(*self._batch("validation", at))
        self.model.train()
        return loss

    def keep_validation(self, losses: list[float]) -> float:
        """Keeps the mean of the pieces' losses, and returns it."""
        self.validation.append((self.step, sum(losses) / len(losses)))
        return self.validation[-1][1]

    def sample(self, prompt: str, length: int, temperature: float = 0.7, top_k: int = 40) -> Iterator[str]:
        """Yields the prompt, then `length` characters that the model makes up, one by one.

        Raises TextError for a prompt with unknown characters.
        """
        passage = Passage(self, prompt, temperature, top_k)
        yield prompt
        for _ in range(length):
            yield passage.add(passage.draw().item())

    def save(self, path: str, source: str | None) -> None:
        """Writes the checkpoint; the file appears whole or not at all. `source` is where the text came from."""
        torch.save(self.state(source), path)

    def state(self, source: str | None) -> dict:
        """All that the run can go on from."""
        return {
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


class Passage:
    """What a model makes up, character by character. What is drawn depends on the run's seed and step only."""

    def __init__(self, run: Run, prompt: str, temperature: float, top_k: int) -> None:
        self.run, self.temperature, self.top_k = run, temperature, top_k
        self.numbers = run.corpus.encode(prompt)
        self.generator = torch.Generator(device=run.device).manual_seed(run.settings.seed + run.step)

    def draw(self) -> torch.Tensor:
        """The number of the next character, which is one of the `top_k` most likely ones."""
        run = self.run
        known = self.numbers[-run.settings.context :]
        # Always a whole context, so that the same kernels serve every length; the model never looks ahead.
        filled = known + [0] * (run.settings.context - len(known))
        run.model.eval()
        with torch.no_grad():
            scores = run.model(torch.tensor([filled], device=run.device))[0]
            last = torch.tensor([len(known) - 1], device=run.device)
            best, which = (scores.index_select(0, last)[0] / self.temperature).topk(min(self.top_k, scores.shape[1]))
            drawn = torch.multinomial(best.softmax(dim=-1), 1, generator=self.generator)
            number = which.gather(0, drawn)
        run.model.train()
        return number

    def add(self, number: int) -> str:
        """Takes the drawn number; returns its character."""
        self.numbers.append(number)
        return self.run.corpus.vocabulary[number]


def read_checkpoint(path: str) -> dict:
    """What `Run.save` wrote. Raises CheckpointError, with the reason, for all else."""
    try:
        state = torch.load(path, map_location="cpu")  # Whoever takes it copies it; the state of draws is read at once.
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
