"""The state of a training run, kept outside of its device, so that a loop goes on after the device was lost."""

from __future__ import annotations

import copy
import os
import random
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from pywebgpu.io import state as files
from pywebgpu.tensor import create
from pywebgpu.tensor import generator as sources
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.tensor.generator import Source


class Checkpointer:
    """Keeps the newest state of `objects`, in the memory of the host, or in the file `path`, which changes whole.

    An object has state_dict() and load_state_dict() as modules, optimizers and schedulers do, or is a torch.Generator.
    The default generator's state goes along, and those of `random` and, where the program uses it, of NumPy.

        kept = torch.utils.Checkpointer({"model": model, "optimizer": optimizer}, every=100)
        step = 0
        while step < steps:
            try:
                kept.step(step)
                train(step)
                step += 1
            except DeviceLostError:
                torch.webgpu.recover()
                step = kept.restore()

    Gradients are not kept: `step` and `save` belong where a loop has none that it still needs.
    """

    def __init__(
        self, objects: Mapping[str, Any], *, every: int = 100, path: str | os.PathLike[str] | None = None
    ) -> None:
        if every < 1:
            raise ValueError(f"Checkpointer: every is a number of steps from 1 on, got {every}")
        self.objects, self.every, self.path = dict(objects), every, path
        self._kept: dict[str, Any] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to restore yet."""
        return self._kept is None and (self.path is None or not os.path.exists(self.path))

    def step(self, step: int) -> bool:
        """Saves where `step` is a multiple of `every`; whether it did."""
        if step % self.every == 0:
            self.save(step)
            return True
        return False

    async def step_async(self, step: int) -> bool:
        """As step, also where Python cannot wait."""
        if step % self.every == 0:
            await self.save_async(step)
            return True
        return False

    def save(self, step: int) -> None:
        """Reads all state from the devices, and only then replaces what was kept."""
        state, tensors = self._found(step)
        self._keep(state, [tensor._bytes() for tensor in tensors], tensors)

    async def save_async(self, step: int) -> None:
        """As save, also where Python cannot wait."""
        state, tensors = self._found(step)
        self._keep(state, [await tensor._bytes_async() for tensor in tensors], tensors)

    def restore(self) -> int:
        """Puts the newest state back, and returns its step. Gradients are dropped.

        Parameters, and what an optimizer has of them, stay the objects that they are, also where the device that they
        were on was lost and opened again. Raises RuntimeError where nothing was saved.
        """
        if self.is_empty:
            raise RuntimeError("Checkpointer: nothing was saved yet; call save(step) before the first step")
        kept = files.load(self.path, "cpu") if self._kept is None and self.path is not None else self._kept
        if kept is None or kept["objects"].keys() != self.objects.keys():
            names = sorted(kept["objects"]) if kept else []
            raise RuntimeError(f"Checkpointer: what was saved holds {names}, and not {sorted(self.objects)}")
        for name, stateful in self.objects.items():
            _restore(stateful, _mapped(kept["objects"][name], lambda tensor: tensor))
        _restore_random(kept["random"])
        step: int = kept["step"]
        return step

    def _found(self, step: int) -> tuple[dict[str, Any], list[Tensor]]:
        """The state now, and the tensors in it, in their order."""
        objects = {name: _state_of(stateful) for name, stateful in self.objects.items()}
        state = {"step": step, "objects": objects, "random": _random_state()}
        tensors: list[Tensor] = []
        _mapped(objects, tensors.append)
        return state, [tensor.detach() for tensor in tensors]

    def _keep(self, state: dict[str, Any], data: list[bytes], tensors: list[Tensor]) -> None:
        copies = iter([create.frombytes(d, t.dtype, tuple(t.shape), "cpu") for d, t in zip(data, tensors, strict=True)])
        state["objects"] = _mapped(state["objects"], lambda tensor: next(copies))
        if self.path is None:
            self._kept = state
        else:
            files.save_checkpoint(state, self.path)


class Stateful(Protocol):
    """A module, an optimizer, a schedule."""

    def state_dict(self) -> Any: ...
    def load_state_dict(self, state_dict: Any, /) -> Any: ...


def _state_of(stateful: Source | Stateful) -> object:
    return list(stateful.numbers()) if isinstance(stateful, sources.Source) else stateful.state_dict()


def _restore(stateful: Source | Stateful, state: Any) -> None:
    if isinstance(stateful, sources.Source):
        stateful.restore(sources.State(*state))
        return
    stateful.load_state_dict(state)
    if hasattr(stateful, "zero_grad"):
        stateful.zero_grad(set_to_none=True)


def _mapped(value: object, function: Callable[[Tensor], Any]) -> object:
    """A copy of a nest of containers, with what `function` makes of each tensor in its place."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, dict):
        mapped = copy.copy(value)  # With its class and what it has besides items, as the metadata of a state dict.
        mapped.update({key: _mapped(inner, function) for key, inner in value.items()})
        return mapped
    if isinstance(value, list | tuple):
        items = [_mapped(inner, function) for inner in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)  # type: ignore[arg-type]
    return copy.deepcopy(value)


def _random_state() -> dict[str, Any]:
    state: dict[str, Any] = {"torch": list(sources.default().numbers()), "python": random.getstate()}
    if "numpy" in sys.modules:
        kind, keys, *rest = sys.modules["numpy"].random.get_state()
        state["numpy"] = (kind, keys.tolist(), *rest)
    return state


def _restore_random(state: dict[str, Any]) -> None:
    sources.default().restore(sources.State(*state["torch"]))
    random.setstate(state["python"])
    if "numpy" in state and "numpy" in sys.modules:
        sys.modules["numpy"].random.set_state(state["numpy"])
