"""Graph -> values: finds or compiles the Program, runs it, hangs the buffers on the nodes.

Whatever live storages of a device still wait for goes into one Program: forward, backward and update of an ordinary
loop are one submit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from typing import Any

from pywebgpu import devices
from pywebgpu.devices.base import Buffer, Device
from pywebgpu.errors import CaptureError, PywebgpuError
from pywebgpu.gradient import backward
from pywebgpu.graph import ir, key, walk
from pywebgpu.graph.ir import Node
from pywebgpu.ops import indexing, movement, pointwise
from pywebgpu.program import compile as compiler
from pywebgpu.runtime import program_cache, state
from pywebgpu.runtime.storage import Storage, wait
from pywebgpu.settings import settings
from pywebgpu.step_capture.capture import recorder
from pywebgpu.step_capture.free_number import plain


def record(device: Device) -> None:
    """Counts one more recorded value: a loop which reads nothing must not grow for ever."""
    counts = state.default.recorded
    counts[device] += 1
    if counts[device] > settings.pending:
        submit(device)


def forget(device: Device) -> None:
    """Drops what was compiled for a device that is gone, and what waits to run on it."""
    runtime = state.default
    for found in [found for found in runtime.programs if found[0] is device]:
        del runtime.programs[found]
    runtime.pending.pop(device, None)
    runtime.recorded.pop(device, None)
    recorder.changes += 1  # Captured steps look whether they can still run.


def _leave() -> None:
    """In a forked process, which can reach no driver of its parent."""
    for device in devices.leave():
        forget(device)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave)


def submit(device: Device) -> None:
    """Queues everything that live storages of the device wait for. Waits for nothing; not while a step is captured."""
    if recorder.capture is None:
        with ir.recording.span("run", device.name):
            submit_now(device)


@dataclass(frozen=True, slots=True)
class Run:
    """A Program that ran: its leaves, and the storages that took its outputs (an output may have none)."""

    device: Device
    structure: key.Structure
    program: Any
    loaded: Any
    data: list[Node]
    numbers: list[Node]
    outputs: list[list[Storage]]


def submit_now(device: Device, *, dry: bool = False) -> Run | None:
    """Queues everything that live storages of the device wait for. None where nothing does.

    dry: the Program is found or compiled and loaded, and does not run.
    """
    state.default.recorded[device] = 0
    waiting = state.default.pending.get(device)
    if not waiting:
        return None
    found = [storage for ref in list(waiting.values()) if (storage := ref()) is not None]
    waiting.clear()
    storages: list[Storage] = []
    roots: dict[int, Node] = {}
    for storage in found:
        if storage.node.buffer is None:
            roots[id(storage.node)] = storage.node
            storages.append(storage)
        else:
            storage.settle()
    for node in backward.saved_nodes(list(roots.values())):
        roots.setdefault(id(node), node)
    if not roots:
        return None
    try:
        done = _run(device, list(roots.values()), storages, dry=dry)
    except (PywebgpuError, RuntimeError, IndexError) as error:
        if not device.is_gone:
            _run_apart(device, storages)
        raise error
    except BaseException:
        for storage in storages:
            wait(storage)
        raise
    for storage in () if dry else storages:
        storage.settle()
    return done


def _run_apart(device: Device, storages: list[Storage]) -> None:
    """Computes what can be computed after a Program failed, value by value.

    A value that fails again is dropped from the queue: its error was raised once, and again by whoever reads it.
    """
    for storage in storages:
        if storage.node.buffer is None:
            with suppress(PywebgpuError, RuntimeError, IndexError):
                _run(device, [storage.node], [storage], dry=False)
        if storage.node.buffer is not None:
            storage.settle()


def _run(device: Device, roots: list[Node], storages: list[Storage], *, dry: bool) -> Run:
    order = walk.toposort(roots)
    data, numbers = compiler.leaves(order)
    place = {id(root): at for at, root in enumerate(roots)}
    outputs: list[Buffer | None] = [None] * len(roots)
    leaf_of = {id(node.buffer): at for at, node in enumerate(data)}
    written = []
    takers: list[list[Storage]] = [[] for _ in roots]
    for storage in storages:
        home, at = storage.home, place[id(storage.node)]
        takers[at].append(storage)
        if (
            home is not None
            and home.holders == 1
            and outputs[at] is None
            and home.nbytes == _bytes(device, storage.node)
        ):
            outputs[at] = home
            if id(home) in leaf_of:
                written.append((at, leaf_of[id(home)]))
    program, loaded, structure = program_cache.load(device, order, roots, tuple(written))
    done = Run(device, structure, program, loaded, data, numbers, takers)
    if dry:
        return done
    for at, leaf in written:
        if (at, leaf) not in program.written:
            outputs[at] = None
    buffers = device.run(loaded, [node.buffer for node in data], [plain(node.buffer) for node in numbers], outputs)
    given: set[int] = set()
    for root, buffer in zip(roots, buffers, strict=True):
        buffer.holders += id(buffer) in given  # Equal values share it for good, so no write in place may go there.
        given.add(id(buffer))
        root.stale = walk.is_stale(root)  # A view of what was overwritten stays known as one.
        root.buffer = buffer
        if not root.requires or root.freed:
            root.inputs = ()
    return done


def run_again(
    run: Run, inputs: list[Buffer], numbers: list[float], outputs: list[Buffer | None], takers: list[list[Storage]]
) -> None:
    """Runs a Program once more and hands its results to the storages of `takers`."""
    if ir.recording.trace is not None:
        ir.recording.trace.again(run.device, run.program)
    buffers = run.device.run(run.loaded, inputs, numbers, outputs)
    for buffer, storages in zip(buffers, takers, strict=True):
        for storage in storages:
            before = storage.node
            before.stale = True
            if storage.whole is not None:
                storage.leave(before)
            storage.node = ir.data(before.spec, buffer)
            storage.version += 1
            storage.settle()


def _bytes(device: Device, node: Node) -> int:
    size = 4 if device.target.wgsl else node.spec.dtype.itemsize
    for n in node.spec.shape:
        size *= n
    return max(4, size) if device.target.wgsl else size


def _force(storage: Storage) -> None:
    capture = recorder.capture
    if capture is not None and not (
        storage.node.buffer is not None and any(ref() is storage for ref in capture.storages)
    ):
        raise CaptureError(
            "a value is read on the host while a compiled step is captured: the step runs as one Program, whose values "
            "are there when it is over. Return the tensor, or register it with pywebgpu.capture(name, tensor)"
        )
    if storage.node.buffer is None:
        wait(storage)
        submit(storage.device)


def _alone(storage: Storage) -> Storage:
    """A storage with a buffer that holds this value and no other. All parts of one shape share a Program for it."""
    if storage.whole is None:
        return storage
    _force(storage.whole)
    shape = storage.place["shape"]
    cut = {"starts": (storage.place["start"],), "sizes": (prod(shape),), "steps": (1,)}
    node = movement.reshape(indexing.slice_of_data(storage.whole.node, **cut), shape=shape)
    return Storage(pointwise.copy(node), storage.device)


def read(storage: Storage) -> bytes:
    """The bytes of a storage's value. Waits for the device."""
    storage = _alone(storage)
    _force(storage)
    return storage.device.download(storage.node.buffer, storage.node.spec)


async def read_async(storage: Storage) -> bytes:
    """As read, also where Python cannot wait. Only a device behind the bridge has to be awaited."""
    storage = _alone(storage)
    _force(storage)
    download = getattr(storage.device, "download_async", None)
    if download is None:
        return storage.device.download(storage.node.buffer, storage.node.spec)
    found: bytes = await download(storage.node.buffer, storage.node.spec)
    return found


def live(device: Device) -> Iterable[Storage]:
    """Storages of the device that wait for their value."""
    return [s for ref in state.default.pending.get(device, {}).values() if (s := ref()) is not None]


def waiting() -> list[Device]:
    """Devices with work that is not queued yet."""
    return [device for device in state.default.pending if live(device)]
