"""Python in the training worker: takes the page's commands, trains between them, and tells what came of it.

One loop does all the work, a step or a character at a time, so that a command never waits for longer than that. What
comes from the GPU is awaited, so that it also works in a browser where Python cannot be suspended.
"""

import gc
import json
import linecache
import os
import sys
import time
import traceback
from dataclasses import asdict, replace
from types import ModuleType
from typing import Any

import data
import inside
import model
import texts
import train

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.errors import DeviceLostError, PywebgpuError

PATH = "/page/checkpoint.safetensors"
PROMPT = "The "
TOP_K = 40  # characters that may be drawn
OWN = "own_model.py"
TELL_SECONDS, MEMORY_SECONDS, KEEP_SECONDS, LOOK_SECONDS = 0.1, 1.0, 20.0, 1.0
EXPECTED = (data.TextError, train.CheckpointError, PywebgpuError)  # their messages are for the user


class Session:
    """What the page shows: one run, or none. `state` is idle, training, paused, done, or lost.

    A copy of the run in Python's memory is as old as its last sample or pause; a run whose device was lost goes on
    from there.
    """

    def __init__(self, port: Any, device: str) -> None:
        self.port, self.device = port, device
        self.state = "idle"
        self.run: train.Run | None = None
        self._copy: tuple[data.Corpus, dict[str, Any]] | None = None
        self._writing: train.Passage | None = None
        self._left = 0  # characters of the passage
        self._every, self._prompt, self._temperature = 100, PROMPT, 0.8
        self._model: ModuleType = model
        self._is_looked_at = False
        self._looked_at = 0.0
        self._told = self._seen = 0  # losses, validations
        self._told_at = self._memory_at = self._kept_at = self._seconds = 0.0

    async def serve(self) -> None:
        """Takes commands and works until the worker ends."""
        while True:
            message = self.port.take()
            try:
                if message:
                    await self._obey(json.loads(message))
                elif self._writing is not None:
                    await self._write_on()
                elif self.state == "training":
                    await self._advance()
                else:
                    await self.port.arrived()
            except EXPECTED as error:
                self._stop(error)
            except Exception as error:
                self._stop(error, details=traceback.format_exc())

    # Commands

    async def _obey(self, command: dict[str, Any]) -> None:
        action = command.pop("do")
        match action:
            case "start":
                await self._start(**command)
            case "open":
                await self._open(**command)
            case "save":
                await self._save(**command)
            case "keep" if self.state == "training":
                await self._keep(at_once=True)
            case "further" if self.state == "done":
                self._further()
            case "reset":
                await self._leave()
            case "pause" if self.state == "training":
                self._change("paused")
                await self._keep(at_once=True)
            case "resume" if self.state == "paused":
                self._change("training")
            case "resume" if self.state == "lost":
                await self._recover()
            case "write" if self.run is not None:
                self._write(int(command["length"]))
            case "choose":
                self._every, self._temperature = int(command["every"]), float(command["temperature"])
                self._prompt = command["prompt"]
            case "look":
                self._is_looked_at = command["is_wanted"]
                await self._look(dict(devices.open_device(self.device).counters), 0.0)

    async def _start(self, settings: dict[str, Any], text: str | None, source: str | None) -> None:
        """A new run. text: None for verse.  source: the model's, None for the demo's."""
        chosen = train.Settings(**settings)
        corpus = self._corpus(text, chosen)
        await self._leave()
        self._model = model if source is None else own_model(source)
        await open_device(self.device)
        self._take(train.Run(corpus, chosen, self.device, self._model))
        self._change("training")

    async def _open(self, text: str | None, source: str | None) -> None:
        """Becomes the run whose checkpoint is at PATH; where it cannot, the present run stays."""
        await open_device(self.device)
        try:
            state = train.read_checkpoint(PATH)
        except train.CheckpointError as error:
            reason = str(error).replace(f" {PATH}: {PATH}:", ":").replace(f" {PATH}", "").replace(PATH, "the file")
            raise train.CheckpointError(reason) from None
        finally:
            os.unlink(PATH)
        settings = train.settings_of(state)
        corpus = self._corpus(text, settings)
        if corpus.fingerprint != state["text"]:
            raise train.CheckpointError("it was trained on another text: choose that one, then open it again")
        made_of = model if source is None else own_model(source)
        run = train.Run(corpus, settings, self.device, made_of)
        run.restore(state)
        self._reset()
        self._model = made_of
        self._take(run)
        self._change("paused" if run.step < settings.steps else "done")
        await self._keep(at_once=True)

    async def _recover(self) -> None:
        """The run of the copy, on a new device."""
        assert self._copy is not None
        corpus, state = self._copy
        await open_device(self.device)
        run = train.Run(corpus, train.settings_of(state), self.device, self._model)
        run.restore(state)
        self._take(run)
        self._change("training")

    async def _save(self, source: str | None) -> None:
        """Gives the page a checkpoint: of the run, or of the copy where the device was lost."""
        await self._keep()
        if self._copy is not None:
            _, state = self._copy
            torch.save(state | {"source": source}, PATH)
            self.port.give(json.dumps({"is": "checkpoint", "step": len(state["losses"])}))

    async def _keep(self, *, at_once: bool = False) -> None:
        """Copies the run, and now and then gives the page a checkpoint to keep."""
        if self.run is None:
            return
        self._copy = (self.run.corpus, await on_host(self.run.state(None)))
        if self.run.step and (at_once or time.perf_counter() - self._kept_at > KEEP_SECONDS):
            torch.save(self._copy[1], PATH)
            self.port.give(json.dumps({"is": "kept", "step": self.run.step}))
            self._kept_at = time.perf_counter()

    def _further(self) -> None:
        """As many steps again."""
        assert self.run is not None
        self.run.settings = replace(self.run.settings, steps=2 * self.run.settings.steps)
        self._tell("steps", steps=self.run.settings.steps)
        self._change("training")

    async def _leave(self) -> None:
        """Gives up the run, which the page keeps as far as it came."""
        if self.state == "training":
            await self._keep(at_once=True)
        self._reset()

    def _reset(self) -> None:
        self.run = self._writing = self._copy = None
        self._told = self._seen = 0
        self._seconds = 0.0
        gc.collect()
        if self.state != "idle":
            self._change("idle")
            self._tell_memory()

    def _corpus(self, text: str | None, settings: train.Settings) -> data.Corpus:
        return data.Corpus(texts.verse() if text is None else text, context=settings.context, seed=settings.seed)

    def _take(self, run: train.Run) -> None:
        self.run = run
        self._told, self._seen = 0, 0
        count = sum(parameter.numel() for parameter in run.model.parameters())
        size = sum(map(len, run.corpus.parts.values()))
        self._tell(
            "run",
            settings=asdict(run.settings),
            parameters=count,
            characters=size,
            vocabulary=len(run.corpus.vocabulary),
        )
        self._tell_progress()

    # Work

    async def _advance(self) -> None:
        run = self.run
        assert run is not None
        before = dict(devices.open_device(self.device).counters) if self._is_looked_at else {}
        start = time.perf_counter()
        run.losses.append(await run.queue_step().item_async())
        now = time.perf_counter()
        self._seconds = 0.9 * self._seconds + 0.1 * (now - start) if self._seconds else now - start
        if self._is_looked_at and now - self._looked_at > LOOK_SECONDS:
            await self._look(before, now - start)
        if run.step == 1 or now - self._told_at > TELL_SECONDS:
            self._tell_progress()
        if run.step == 2:  # The second step's kernels are those of all later ones.
            self.port.ran()
        is_done = run.step >= run.settings.steps
        if is_done or run.step % self._every == 0:
            run.keep_validation([await run.validation_loss(at).item_async() for at in range(train.PANEL)])
            self._tell_progress()
            await self._keep(at_once=is_done)
            self._write(400 if is_done else 150)
        if is_done:
            self._change("done")

    async def _look(self, before: dict[str, int], seconds: float) -> None:
        """Tells what is inside the model, and what the last step took since the counters of before."""
        if self.run is None or not self._is_looked_at:
            return
        after = devices.open_device(self.device).counters
        cost = {name: after[name] - before[name] for name in ("dispatches", "submits")}
        self._tell("inside", **await inside.look(self.run), cost=cost, ms=1e3 * seconds)
        self._looked_at = time.perf_counter()

    def _write(self, length: int) -> None:
        """Starts a sample."""
        run = self.run
        assert run is not None
        known = set(run.corpus.vocabulary)
        prompt = "".join(letter for letter in self._prompt if letter in known) or run.corpus.decode(
            run.corpus.parts["train"][:1]
        )
        lacks = [letter for letter in dict.fromkeys(self._prompt) if letter not in known]
        loss = run.validation[-1][1] if run.validation else None
        self._tell("sample", step=run.step, loss=loss, lacks=lacks)
        self._tell("written", text=prompt, is_done=False)
        self._writing, self._left = train.Passage(run, prompt, self._temperature, TOP_K), length

    async def _write_on(self) -> None:
        """One character more."""
        passage = self._writing
        assert passage is not None
        character = passage.add(await passage.draw().item_async())
        self._left -= 1
        if not self._left:
            self._writing = None
            self.port.ran()
        self._tell("written", text=character, is_done=not self._left)

    # Words to the page

    def _tell(self, what: str, **content: Any) -> None:
        self.port.tell(json.dumps({"is": what, **content}))

    def _change(self, state: str) -> None:
        self._memory_at = 0.0  # What the panel shows is of this run and of now, however short the run is.
        self._tell_progress()
        self.state = state
        self._tell("state", state=state)

    def _tell_progress(self) -> None:
        """The losses that the page does not have yet."""
        run = self.run
        self._told_at = time.perf_counter()
        if run is None:
            return
        speed = run.characters_per_step / self._seconds if self._seconds else 0.0
        self._tell(
            "progress",
            step=run.step,
            losses=run.losses[self._told :],
            validation=run.validation[self._seen :],
            speed=speed,
        )
        self._told, self._seen = run.step, len(run.validation)
        if self._told_at - self._memory_at > MEMORY_SECONDS:
            self._tell_memory()

    def _tell_memory(self) -> None:
        self._memory_at = time.perf_counter()
        if self.state != "lost":
            self._tell("memory", heap=self.port.heapBytes(), device=dict(devices.open_device(self.device).counters))

    def _stop(self, error: Exception, details: str = "") -> None:
        """Tells what went wrong. What is left can still be saved."""
        self._writing = None
        said = error.msg if isinstance(error, SyntaxError) else error
        text = str(error) if isinstance(error, EXPECTED) else f"{type(error).__name__}: {said}"
        about = "text" if isinstance(error, data.TextError) else ""
        if line := line_of(error):
            text, details, about = f"line {line}: {text}", "", "model"
        if isinstance(error, DeviceLostError):
            text, details = self._lose(), str(error)
        elif self.state == "training":
            self._change("paused")
        self._tell("trouble", text=text[:1].upper() + text[1:], details=details, about=about)

    def _lose(self) -> str:
        """Gives up what was on the device; returns what the user can do."""
        self.run = None
        devices.close(self.device)
        if self._copy is None:
            self._change("idle")
            return "The GPU was lost, and with it the run. Start begins anew."
        step = len(self._copy[1]["losses"])
        self._change("lost")
        return f"The GPU was lost. A copy of the run after {step:,} steps is left: Resume goes on from there."


def own_model(source: str) -> ModuleType:
    """The module of the user's source, which must have what model.py has. Raises whatever the source raises."""
    module = ModuleType("own_model")
    sys.modules["own_model"] = module
    linecache.cache[OWN] = (len(source), None, source.splitlines(keepends=True), OWN)
    exec(compile(source, OWN, "exec"), module.__dict__)
    return module


def line_of(error: Exception) -> int | None:
    """The line of the user's own model where an error arose."""
    if isinstance(error, SyntaxError) and error.filename == OWN:
        return error.lineno
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == OWN]
    return lines[-1] if lines else None


async def on_host(value: Any) -> Any:
    """A nest of containers with its tensors on device cpu."""
    if isinstance(value, torch.Tensor):
        return await value.cpu_async()
    if isinstance(value, dict):
        return {name: await on_host(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([await on_host(inner) for inner in value])
    return value


async def open_device(name: str) -> Any:
    """The device; a new one where the last one was lost."""
    if name == "webgpu":
        await torch.webgpu.init()
    torch.set_default_device(name)
    return devices.open_device(name)


async def main(port: Any) -> None:
    """Opens the device, then serves."""
    session = Session(port, port.device)
    try:
        device = await open_device(port.device)
    except PywebgpuError as error:
        port.tell(json.dumps({"is": "broken", "text": str(error)}))
        return
    adapter = {"name": "CPU, by NumPy", "is_software": True, "limits": {}, "features": []}
    if port.device == "webgpu":
        info = device.info
        adapter = {"name": info.name, "is_software": info.is_software, "limits": info.limits, "features": info.features}
    port.tell(json.dumps({"is": "ready", "adapter": adapter}))
    port.loaded()
    await session.serve()
