"""Trains a small GPT on a text and lets it write: `make demo`, or `python demos/chargpt/main.py --help`."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import data
import texts
import train

import pywebgpu as torch
from pywebgpu.devices import adapters
from pywebgpu.errors import DeviceError

HERE = Path(__file__).parent
STOPPED, WRONG = 130, 2  # exit statuses
PROMPT = "The "


class Interrupt:
    """Ctrl-C once ends the run after the step at hand, so that what is saved is whole; twice ends it at once."""

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> "Interrupt":
        self._before = signal.signal(signal.SIGINT, self._ask)
        return self

    def __exit__(self, *exception: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _ask(self, number: int, frame: object) -> None:
        self.asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)


def main(arguments: list[str] | None = None) -> int:
    """Returns 0 when the run is complete, 130 when it was stopped, 2 with one line when something is wrong."""
    options = parser().parse_args(arguments)
    try:
        return run(options)
    except KeyboardInterrupt:
        print("\nstopped; what the last checkpoint holds is safe", file=sys.stderr)
        return STOPPED
    except (data.TextError, train.CheckpointError, DeviceError) as error:
        print(f"chargpt: {error}", file=sys.stderr)
    except OSError as error:
        print(f"chargpt: cannot write {error.filename}: {error.strerror}", file=sys.stderr)
    except ImportError as error:
        print(f'chargpt: {error.name} is missing: pip install -e ".[demo]"', file=sys.stderr)
    return WRONG


def parser() -> argparse.ArgumentParser:
    settings = train.Settings()
    made = argparse.ArgumentParser(prog="chargpt", description="Trains a small GPT on a text and lets it write.")
    made.add_argument("--data", metavar="FILE", help="a text in UTF-8, or verse; otherwise Python's documentation")
    made.add_argument("--device", choices=("webgpu", "cpu"), help="otherwise webgpu where a hardware adapter is")
    made.add_argument("--out", type=Path, default=HERE / "out", metavar="DIR", help="what is written goes there")
    made.add_argument("--resume", action="store_true", help="go on from the checkpoint in DIR")
    made.add_argument("--every", type=_count, default=250, metavar="N", help="steps from one sample to the next (250)")
    made.add_argument("--prompt", metavar="TEXT", help=f"what its passages begin with ({PROMPT!r})")
    made.add_argument("--length", type=_count, default=500, metavar="N", help="characters of the last passage (500)")
    made.add_argument("--temperature", type=_positive, default=0.7, help="lower is safer, higher is bolder (0.7)")
    made.add_argument("--top-k", type=_count, default=40, help="only the K likeliest characters are drawn (40)")
    texts = {"steps": "training steps", "batch": "pieces of text in a step", "context": "characters in a piece"}
    texts |= {"layers": "blocks", "heads": "attention heads", "width": "numbers for a character"}
    texts |= {"rate": "highest learning rate", "seed": "of weights, batches and samples"}
    for name, text in texts.items():
        default = getattr(settings, name)
        kind = _positive if name == "rate" else int if name == "seed" else _count
        made.add_argument(f"--{name}", type=kind, help=f"{text} ({default})")
    return made


def run(options: argparse.Namespace) -> int:
    """The whole program but for its errors."""
    # Small products gain a fifth from a second BLAS thread on an idle machine, and lose far more on a busy one, where
    # threads spin while they wait for one another. NumPy reads this when it is first imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    import matplotlib  # noqa: F401 - Better missed now than after the training.
    import tqdm  # noqa: F401

    device, reason = (options.device, "--device says so") if options.device else adapters.choose_default()
    torch.set_default_device(device)
    training = prepare(options, device)
    options.prompt = prompt_of(options.prompt, training.corpus)
    options.out.mkdir(parents=True, exist_ok=True)
    shape = training.settings
    print(f"device: {device}, because {reason}")
    print(f"text:   {_describe(training.corpus, options.data)}")
    n_parameters = sum(parameter.numel() for parameter in training.model.parameters())
    print(f"model:  {shape.layers} layers, {shape.width} wide, {shape.heads} heads, context {shape.context}: "
          f"{n_parameters / 1e6:.2f} M parameters")  # fmt: skip
    if options.resume:
        print(f"going on after step {training.step} of {shape.steps}")
    else:
        (options.out / "samples.txt").write_text("", encoding="utf-8")
    with Interrupt() as interrupt:
        learn(training, options, interrupt)
        if not interrupt.asked:
            finish(training, options, interrupt)
    if interrupt.asked:
        go_on = "" if training.step == shape.steps else "; --resume goes on from there"
        print(f"\nstopped after step {training.step} of {shape.steps}; the checkpoint is saved{go_on}", file=sys.stderr)
        return STOPPED
    return 0


def prepare(options: argparse.Namespace, device: str) -> train.Run:
    """A new run, or the one in the checkpoint. Sets `options.data` to where the text comes from."""
    given = {field.name: getattr(options, field.name) for field in fields(train.Settings)}
    given = {name: value for name, value in given.items() if value is not None}
    if not options.resume:
        settings = train.Settings(**given)
        if settings.width % settings.heads:
            raise data.TextError(f"--width {settings.width} cannot be shared out among {settings.heads} heads")
        return train.Run(corpus_of(options.data, settings), settings, device)
    state = train.read_checkpoint(str(checkpoint(options)))
    settings = train.settings_of(state)
    for name, value in given.items():
        if value != getattr(settings, name):
            made = f"the checkpoint was made with --{name} {getattr(settings, name)}"
            raise train.CheckpointError(f"{made}; leave --{name} out, or start anew without --resume")
    options.data = options.data or state["source"]
    training = train.Run(corpus_of(options.data, settings), settings, device)
    training.restore(state)
    return training


def corpus_of(path: str | None, settings: train.Settings) -> data.Corpus:
    return data.Corpus(texts.named(path), context=settings.context, seed=settings.seed)


def prompt_of(given: str | None, corpus: data.Corpus) -> str:
    """The prompt, checked; where none is given, the usual one if the text has its characters."""
    if given is None:
        return PROMPT if set(PROMPT) <= set(corpus.vocabulary) else corpus.decode(corpus.parts["train"][:1])
    if not given:
        raise data.TextError("--prompt needs a character to begin with")
    corpus.encode(given)
    return given


def learn(training: train.Run, options: argparse.Namespace, interrupt: Interrupt) -> None:
    """All steps that are left, with samples between them. Saves at each sample, and when interrupted."""
    import tqdm

    total, seconds = training.settings.steps, 0.0
    with tqdm.tqdm(total=total, initial=training.step, unit="step", dynamic_ncols=True, mininterval=0.5) as bar:
        while training.step < total and not interrupt.asked:
            start = time.perf_counter()
            training.advance()
            now = time.perf_counter() - start
            seconds = now if not seconds else 0.9 * seconds + 0.1 * now  # Compilation fades out.
            loss = _means(training.losses[-25:])[-1]
            speed = training.characters_per_step / seconds
            bar.set_postfix_str(f"loss {loss:.3f}, {speed:,.0f} tokens/s", refresh=False)
            bar.update()
            if training.step == total:
                judge(training, options, "", bar.write)
            elif training.step % options.every == 0:
                judge(training, options, "".join(_until(interrupt, training.sample(options.prompt, 200))), bar.write)
    keep(training, options)


def judge(training: train.Run, options: argparse.Namespace, sample: str, write: Callable[[str], None]) -> None:
    """Tells of the losses so far and of the sample, and keeps all."""
    loss, unseen = _means(training.losses[-25:])[-1], training.validate()
    write(f"step {training.step}: loss {loss:.3f}, on unseen text {unseen:.3f}  {' '.join(sample[:60].split())}")
    if sample:
        add_sample(options, f"step {training.step}, loss on unseen text {unseen:.3f}", sample)
    keep(training, options)


def keep(training: train.Run, options: argparse.Namespace) -> None:
    """Writes what there is to see, and what the run can go on from."""
    plot(training, options.out / "loss.png")
    training.save(str(checkpoint(options)), options.data and os.path.abspath(options.data))


def add_sample(options: argparse.Namespace, heading: str, text: str) -> None:
    with open(options.out / "samples.txt", "a", encoding="utf-8") as file:
        file.write(f"--- {heading}\n{text}\n\n")


def finish(training: train.Run, options: argparse.Namespace, interrupt: Interrupt) -> None:
    """The passage at the end, letter by letter."""
    print(f"\nA passage, {options.length} characters at temperature {options.temperature}:\n")
    passage = []
    pieces = training.sample(options.prompt, options.length, options.temperature, options.top_k)
    for piece in _until(interrupt, pieces):
        passage.append(piece)
        print(piece, end="", flush=True)
    print()
    add_sample(options, f"after all {training.step} steps", "".join(passage))
    print(f"\nloss.png, samples.txt and checkpoint.safetensors are in {_shortest(options.out)}")


def plot(training: train.Run, path: Path) -> None:
    """Both losses by step."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    axes.plot(range(1, training.step + 1), training.losses, color="tab:blue", alpha=0.3, linewidth=0.8)
    axes.plot(range(1, training.step + 1), _means(training.losses), color="tab:blue", label="training")
    points = training.validation
    axes.plot([at for at, _ in points], [loss for _, loss in points], "o-", color="tab:orange", label="unseen text")
    axes.set(xlabel="step", ylabel="cross-entropy a character (nats)", xlim=(0, training.settings.steps))
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def checkpoint(options: argparse.Namespace) -> Path:
    found: Path = options.out / "checkpoint.safetensors"
    return found


def _means(losses: list[float], window: int = 25) -> list[float]:
    """The mean of each loss and of those just before it, since the loss of one step is noisy."""
    means = []
    for at in range(len(losses)):
        recent = losses[max(0, at + 1 - window) : at + 1]
        means.append(sum(recent) / len(recent))
    return means


def _until(interrupt: Interrupt, pieces: Iterator[str]) -> Iterator[str]:
    for piece in pieces:
        if interrupt.asked:
            return
        yield piece


def _describe(corpus: data.Corpus, path: str | None) -> str:
    n = sum(len(part) for part in corpus.parts.values())
    return f"{path or 'the documentation of Python'}, {n:,} characters, {len(corpus.vocabulary)} different ones"


def _shortest(path: Path) -> str:
    return min(str(path), os.path.relpath(path), key=len)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"needs a whole number from 1 up, got {text!r}")
    return int(text)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"needs a number above 0, got {text!r}")
    return value


if __name__ == "__main__":
    sys.exit(main())
