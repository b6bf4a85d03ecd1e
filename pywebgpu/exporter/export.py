"""Writing an export: program.json, weights.safetensors, and what plays them in a page without Python.

The weights are those of now. Names come from a module and an optimizer; what has no name is kept all the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from pywebgpu.devices.base import Buffer
from pywebgpu.errors import CaptureError
from pywebgpu.exporter import manifest
from pywebgpu.exporter import names as naming
from pywebgpu.exporter.manifest import Cell, Data, Shared, State
from pywebgpu.io import safetensors
from pywebgpu.kernels.kernel import Limits
from pywebgpu.optim.optimizer import Optimizer
from pywebgpu.runtime import executor
from pywebgpu.runtime.storage import Storage
from pywebgpu.support import atomic
from pywebgpu.support.installation import find_bridge
from pywebgpu.tensor import create
from pywebgpu.tensor.tensor import Tensor
from pywebgpu.version import own as __version__

VERSION = 3
PROGRAM, WEIGHTS = "program.json", "weights.safetensors"
PLAYER = ("player.mjs", "player.d.mts", "dawn.mjs")  # and what they import


@dataclass(slots=True)
class Exported:
    """What was written: the folder, and for each program what of its host code stays behind."""

    folder: Path
    programs: list[str]
    options: list[str]
    n_bytes: int
    n_bindings: int  # storage buffers that a kernel binds, at most
    notes: dict[str, list[str]] = field(default_factory=dict)
    needs: list[str] = field(default_factory=list)  # features that a device must have, and not every one has

    def __str__(self) -> str:
        lines = [f"{self.folder}: {', '.join(self.programs)}; {self.n_bytes:,} bytes of weights"]
        if self.options:
            lines.append(f"numbers that can be set: {', '.join(self.options)}")
        if self.n_bindings > Limits().bindings:
            few = f"{Limits().bindings} are everywhere, and PYWEBGPU_PORTABLE=1 keeps to that"
            lines.append(f"needs a device that binds {self.n_bindings} storage buffers; {few}")
        if self.needs:
            lines.append(f"needs a device with {', '.join(self.needs)}; PYWEBGPU_PORTABLE=1 does without")
        lines += [f"{name}: {note}" for name, notes in self.notes.items() for note in notes]
        return "\n".join(lines)


def save_program(
    folder: str | Path,
    programs: Mapping[str, Any],
    names: naming.Names = None,
    optimizer: Optimizer | None = None,
) -> Exported:
    """Writes captured steps, what they keep, and its names: what `load_program` and the player read.

    programs: functions that pywebgpu.compile made, each called before (or warmed up) with what it will be given.
    names: a module, or a mapping to modules and tensors. optimizer: whose states get names, and can be reset.
    Raises: CaptureError for what cannot leave Python.
    """
    shared = Shared()
    for name, compiled in programs.items():
        shared.note_reads(manifest.step_of(name, compiled))
    steps = {name: manifest.step_data(name, compiled, shared) for name, compiled in programs.items()}
    devices = {manifest.step_of(name, compiled).run.device for name, compiled in programs.items()}
    if len(devices) != 1:
        raise CaptureError(f"an export has programs of one device, not of {len(devices)}")
    for device in devices:
        executor.submit(device)
    _refuse_shared_memory(steps)
    tensors, files, states = _kept(shared, names, optimizer)
    options = _titles(shared.cells)
    data = {
        "format": "pywebgpu",
        "version": VERSION,
        "made by": f"pywebgpu {__version__}",
        "states": states,
        "tensors": tensors,
        "cells": [_cell_data(cell) for cell in shared.cells],
        "programs": steps,
    }
    folder_path = Path(folder)
    folder_path.mkdir(parents=True, exist_ok=True)
    safetensors.save_file(files, folder_path / WEIGHTS)
    atomic.write(folder_path / PROGRAM, json.dumps(data, separators=(",", ":"), allow_nan=False))
    return _exported(folder_path, steps, options)


def _exported(folder: Path, steps: Mapping[str, Data], options: list[str]) -> Exported:
    notes = {name: step["notes"] for name, step in steps.items() if step["notes"]}
    kernels = [kernel for step in steps.values() for kernel in step["program"]["kernels"]]
    n_bindings = max((len(kernel["bindings"].replace("n", "")) for kernel in kernels), default=0)
    needs = sorted({name for kernel in kernels for name in kernel.get("needs", ())})
    return Exported(folder, list(steps), options, (folder / WEIGHTS).stat().st_size, n_bindings, notes, needs)


def export(
    folder: str | Path,
    programs: Mapping[str, Any],
    names: naming.Names = None,
    optimizer: Optimizer | None = None,
    *,
    page: str | Path | None = None,
    files: Mapping[str, str | bytes] | None = None,
) -> Exported:
    """As save_program, and beside it the player with all that it imports, and a page.

    page: a folder whose files are copied; without one, a page that shows what there is. files: further ones by name.
    """
    done = save_program(folder, programs, names, optimizer)
    bridge = find_bridge()
    for name in _imported(bridge, PLAYER):
        atomic.write(done.folder / name, (bridge / name).read_bytes())
    for path in Path(bridge / "page" if page is None else page).iterdir():
        if path.is_file():
            atomic.write(done.folder / path.name, path.read_bytes())
    for name, content in (files or {}).items():
        atomic.write(done.folder / name, content)
    return done


def _imported(folder: Path, names: tuple[str, ...]) -> list[str]:
    """These modules and all that they import, also for types."""
    needed_files = list(names)
    for name in needed_files:
        text = (folder / name).read_text(encoding="utf-8")
        for other in re.findall(r"""(?:from |import\()["']\./([\w.-]+)["']""", text):
            if other not in needed_files:
                needed_files.append(other)
    return needed_files


# States


def _refuse_shared_memory(steps: Mapping[str, Data]) -> None:
    """Two states that take one value share its memory from then on, so no Program may write one of them in place."""
    together = {state for step in steps.values() for taken in step["takers"] if len(taken) > 1 for state in taken}
    for name, step in steps.items():
        for _, input_index in step["program"]["written"]:
            kind, state = step["sources"][input_index]
            if kind == "state" and state in together:
                raise CaptureError(f"{name} writes a tensor in place that shares its memory with another one")


def _kept(
    shared: Shared, wanted: naming.Names, optimizer: Optimizer | None
) -> tuple[list[Data], dict[str, Tensor], list[Data]]:
    """The named tensors, the contents of the weights' file, and of what in it each state is made."""
    tensors: list[Data] = []
    pieces: dict[int, list[tuple[str, naming.View]]] = {}
    for named in naming.of(wanted, optimizer):
        storage, view = naming.home(named.tensor)
        state_index = shared.known(storage)
        if state_index is None or view is None or not view.is_dense:
            continue  # No program uses it, or it is no range of what one uses.
        tensors.append(
            {
                "name": named.name,
                "kind": named.kind,
                "state": state_index,
                "offset": view.offset,
                "shape": list(view.shape),
            }
        )
        title = named.name if named.kind in ("parameter", "buffer") else f"{named.kind}/{named.name}"
        pieces.setdefault(state_index, []).append((title, view))
    files: dict[str, Tensor] = {}
    states = []
    for state_index, state in enumerate(shared.states):
        parts = _parts(state_index, state, pieces.get(state_index, [])) if state.is_read else {}
        files |= {title: tensor for title, (tensor, _) in parts.items()}
        layout = [[title, offset] for title, (_, offset) in parts.items()]
        states.append({"dtype": state.spec.dtype.name, "shape": list(state.spec.shape), "parts": layout})
    return tensors, files, states


def _parts(state_index: int, state: State, pieces: list[tuple[str, naming.View]]) -> dict[str, tuple[Tensor, int]]:
    """What a state is made of, by name, with the first element of each: its pieces, or where they miss some, all."""
    data, dtype = _bytes(state), state.spec.dtype
    if not pieces and data.count(0) == len(data):  # What has no part is zero.
        return {}
    left = bytearray(data)
    pieces_of_state: dict[str, tuple[Tensor, int]] = {}
    taken: set[tuple[int, int]] = set()
    for title, view in pieces:
        begin, end = (dtype.itemsize * n for n in (view.offset, view.offset + prod(view.shape)))
        if (begin, end) in taken:  # A tensor with two names is there once.
            continue
        if any(begin < other_end and other < end for other, other_end in taken):
            return _whole(state_index, state, data)
        taken.add((begin, end))
        behind = min(end + dtype.itemsize * view.gap, len(left))
        left[begin:behind] = bytes(behind - begin)
        pieces_of_state[title] = (create.frombytes(data[begin:end], dtype, view.shape, "cpu"), view.offset)
    return pieces_of_state if pieces and not any(left) else _whole(state_index, state, data)


def _whole(state_index: int, state: State, data: bytes) -> dict[str, tuple[Tensor, int]]:
    kind = "constant" if isinstance(state.home, Buffer) else "state"
    return {f"{kind}/{state_index}": (create.frombytes(data, state.spec.dtype, state.spec.shape, "cpu"), 0)}


def _bytes(state: State) -> bytes:
    if isinstance(state.home, Storage):
        return executor.read(state.home)
    data: bytes = state.home.device.download(state.home, state.spec)
    return data


# Cells


def _cell_data(cell: Cell) -> Data:
    kind = "option" if not cell.is_count else "count" if isinstance(cell.owner, Mapping) else "draws"
    return {"name": cell.name, "value": cell.value, "kind": kind}


def _titles(cells: list[Cell]) -> list[str]:
    """Names of the cells that nothing but the user sets."""
    return list(dict.fromkeys(cell.name for cell in cells if not cell.is_count))
