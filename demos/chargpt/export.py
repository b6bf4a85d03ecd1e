"""A run for a page without Python: `python -m pywebgpu export demos/chargpt/export.py OUT`, and serve the folder."""

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path

import data
import texts
import train

import pywebgpu as torch
from pywebgpu import nn

PAGE = Path(__file__).parent / "page"
MUCH = 1_500_000  # characters of verse: so many that a small model cannot learn them by heart


def exported(arguments: list[str]) -> dict:
    """A program that trains on a batch, one that scores the next character of one text, and the page with its text."""
    options = parser().parse_args(arguments)
    text = texts.named(options.data)
    run = trained(options, text)
    training, inference = programs(run)
    return {
        "programs": {"training": training, "inference": inference},
        "names": run.model,
        "optimizer": run.optimizer,
        "page": PAGE,
        "files": {"text.json": json.dumps(about(run)), "text.txt": text},
    }


def writer(arguments: list[str]) -> dict:
    """A model that only writes, for the first view of a page. It may be trained on another device than it writes on."""
    options = parser().parse_args(arguments)
    run = trained(options, texts.named(options.data) if options.data else texts.verse(characters=MUCH))
    known = {"vocabulary": run.corpus.vocabulary, "context": run.settings.context, "steps": run.step}
    known |= {"loss": run.validate(), "recording": "".join(run.sample("The ", 600))}  # for whoever has no WebGPU
    run.model.to("webgpu")
    run.device = "webgpu"
    return {"programs": {"inference": scores(run)}, "names": run.model, "files": {"about.json": json.dumps(known)}}


def trained(options: argparse.Namespace, text: str) -> train.Run:
    """A run after so many steps."""
    settings = train.Settings(**{field.name: getattr(options, field.name) for field in fields(train.Settings)})
    run = train.Run(data.Corpus(text, context=settings.context, seed=settings.seed), settings, options.device)
    for _ in range(options.trained):
        run.advance()
    return run


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="chargpt export")
    made.add_argument("--data", metavar="FILE", help="a text in UTF-8, or verse; otherwise Python's documentation")
    made.add_argument("--device", default="webgpu")
    made.add_argument("--trained", type=int, default=0, metavar="N", help="steps that are trained before (0)")
    for name, default in asdict(train.Settings()).items():
        made.add_argument(f"--{name}", type=type(default), default=default, help=f"as in main.py ({default})")
    return made


def programs(run: train.Run) -> tuple:
    """The step and the scores as captured functions, made ready without running them."""

    @torch.compile
    def training(characters, targets):
        run.optimizer.zero_grad()
        loss = run.model.loss(characters, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(run.model.parameters(), train.CLIP)
        run.optimizer.step()
        run.schedule.step()
        return loss.detach()

    settings = run.settings
    batch = torch.zeros(settings.batch, settings.context, dtype=torch.int64, device=run.device)
    training.warmup(batch, batch.clone())
    return training, scores(run)


def scores(run: train.Run) -> Callable:
    """The scores of the character after the last one, as a captured function."""

    @torch.compile
    @torch.no_grad()
    def inference(characters, last):
        return run.model(characters)[0].index_select(0, last)[0]

    characters = torch.zeros(1, run.settings.context, dtype=torch.int64, device=run.device)
    inference.warmup(characters, torch.zeros(1, dtype=torch.int64, device=run.device))
    return inference


def about(run: train.Run) -> dict:
    """What the page must know: the vocabulary, the settings, and how the learning rate goes."""
    schedule = {"warm_up": train.WARM_UP, "floor": train.FLOOR}
    cut = len(run.corpus.parts["train"])
    return {**asdict(run.settings), **schedule, "vocabulary": run.corpus.vocabulary, "trained_on": cut}
