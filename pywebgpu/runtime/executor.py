"""Graph -> values: finds or compiles the Program, runs it, hangs the buffers on the nodes.

Whatever live storages of a device still wait for goes into one Program: forward, backward and update of an ordinary
loop are one submit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import prod
from typing import Any

from pywebgpu import devices
from pywebgpu.autodiff import backward
from pywebgpu.composites import bounds
from pywebgpu.devices.base import Buffer, Device
from pywebgpu.errors import CaptureError, DeviceLostError, RangeError
from pywebgpu.ir import graph, key, walk
from pywebgpu.ir.graph import Node, thread_state
from pywebgpu.ir.observer import changed
from pywebgpu.ops import indexing, movement, pointwise
from pywebgpu.runtime import program_cache, state
from pywebgpu.runtime.state import Queue
from pywebgpu.runtime.storage import Storage
from pywebgpu.settings import settings
from pywebgpu.step_capture.free_number import plain
from pywebgpu.support import interrupts

IN_VMAP = (
    "vmap: It looks like you're calling .item() on a Tensor, or reading it otherwise. A function of one sample has no "
    "values while it is recorded"
)


class StandInError(RuntimeError):
    """Raised for the value of what stands for all samples of a batch."""


Work = list[tuple[Storage, Node, bool]]  # who waits for which node, and whether that may go where the last value is


def record(storage: Storage) -> None:
    """Counts one more recorded value: a loop which reads nothing must not grow for ever."""
    queue = storage.queue
    if queue is not None:
        queue.recorded += 1
        if queue.recorded > settings.pending and (queue.hurries is None or queue.hurries(storage)):
            submit(storage.device)


def submit(device: Device, *, everyone: bool = False) -> None:
    """Queues what live storages of the device wait for. Waits for nothing; does nothing while a step is captured.

    A value that cannot be computed tells who reads it; a lost device tells everybody.
    everyone: also what other threads recorded and did not submit.
    """
    if thread_state.observer is None and (
        everyone or state.default.local.queues[device].storages or graph.used.origins
    ):
        with graph.thread_state.span("run", device.name):
            try:
                submit_now(device, everyone=everyone)
            except DeviceLostError:
                raise
            except Exception:
                return


@contextmanager
def held() -> Iterator[None]:
    """No other thread submits what this one records inside."""
    queues = state.default.local.queues
    queues.is_held = True
    try:
        yield
    finally:
        queues.is_held = False


def flush() -> None:
    """Queues what any thread recorded on any device: a step that is captured next starts from values."""
    for device in list(state.default.queues):
        submit(device, everyone=True)


def forget(device: Device) -> None:
    """Drops what was compiled for a device that is gone, and what waits to run on it."""
    runtime = state.default
    with runtime.lock:
        for cached_key in [cached for cached in runtime.programs if cached[0] is device]:
            del runtime.programs[cached_key]
        for queue in runtime.queues.get(device, ()):
            for storage in _queued(queue):
                storage.leave_queue()
            queue.recorded = 0
    changed()  # Captured steps look whether they can still run.


def _locks() -> list[Any]:
    """In the order in which they are taken."""
    return [state.default.lock, *(device.lock for device in devices.opened())]


def _before_fork() -> None:
    """The child has this thread alone: what another one holds would never be free there."""
    _held.extend(_locks())
    for lock in _held:
        lock.acquire()


def _after_fork() -> None:
    while _held:
        _held.pop().release()


def _leave() -> None:
    """In a forked process, which can reach no driver of its parent."""
    _after_fork()
    for device in devices.leave():
        forget(device)


_held: list[Any] = []  # while a process is forked
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_leave)


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


def submit_now(device: Device, *, dry: bool = False, everyone: bool = False) -> Run | None:
    """Queues what live storages of the device wait for. None where nothing does. Raises what made the Program fail.

    dry: the Program is found or compiled and loaded, and does not run.
    What a device has queued has happened: an interrupt is raised when its values have their buffers, or while it is
    compiled or computed on the host, and then all of it waits as before.
    """
    with interrupts.held(), state.default.lock:
        state.default.local.queues[device].forget_ended()
        work, others = _collect(device, everyone=everyone)
        try:
            work = _sound(work)
            roots = _with_saved([node for _, node, _ in work])
            if not roots:
                return None
            try:
                done = _run(device, roots, work, _read_by(others), dry=dry)
            except Exception:
                if not (dry or device.is_gone):
                    _run_apart(device, work)
                raise
            for storage, node, _ in () if dry else work:
                if storage._node is node:
                    storage.take(node)
            return done
        except BaseException as error:
            if not isinstance(error, Exception):  # An interrupt: what is not done stays queued.
                for storage, node, _ in work:
                    if node.buffer is None:
                        storage.wait()
                    else:
                        storage.settle(node)
            raise


def _collect(device: Device, *, everyone: bool) -> tuple[Work, list[Node]]:
    """What this thread waits for, with what other threads wait for of the same nodes; and what they wait for besides.

    What others recorded stays theirs, so that each thread meets the Programs that it would meet alone. Their storages
    are not held when the lock is free again: who captures a step takes one that is held for one that is kept.
    """
    own = state.default.local.queues[device]
    own.recorded = 0 if own.hurries is None else settings.pending
    queues = state.default.queues.get(device, [])
    if len(queues) == 1 and not own.stand_ins:
        return _pending(own, may_write=True), []
    left = [queue for queue in queues if queue.is_left]
    work = [entry for queue in (*left, own) for entry in _pending(queue, may_write=True)]
    for queue in left:
        queues.remove(queue)
    others = [queue for queue in queues if queue is not own]
    if everyone:
        free = [queue for queue in others if not queue.is_held]
        return work + [entry for queue in free for entry in _pending(queue, may_write=False)], []
    reached = set(walk.toposort(node for _, node, _ in work))
    nodes: list[Node] = []
    for queue in others:
        for storage in _queued(queue):
            node = storage.node
            if node in reached and not queue.is_held:
                storage.leave_queue()
                work.append((storage, node, False))
            else:
                nodes.append(node)
    return work, nodes


def _pending(queue: Queue, *, may_write: bool) -> Work:
    """Takes what waits out of a queue."""
    work: Work = []
    for storage in independent(queue) if queue.stand_ins else _queued(queue):
        storage.leave_queue()
        node = storage.node
        if node.buffer is None:
            work.append((storage, node, may_write))
        else:
            storage.settle(node)
    return work


def _queued(queue: Queue) -> list[Storage]:
    return [storage for ref in list(queue.storages.values()) if (storage := ref()) is not None]


def independent(queue: Queue) -> list[Storage]:
    """The storages of a queue whose values are made of no stand-in."""
    queued = _queued(queue)
    of_samples = reached([storage.node for storage in queued], queue.stand_ins)
    return [storage for storage in queued if storage.node not in of_samples]


def reached(roots: list[Node], sources: frozenset[Node]) -> set[Node]:
    """The nodes that are made of `sources`."""
    reached_nodes = set(sources)
    for node in walk.toposort(roots):
        if not reached_nodes.isdisjoint(node.inputs):
            reached_nodes.add(node)
    return reached_nodes


def _sound(work: Work) -> Work:
    """Without what reads a value that failed: it would fail, too, and all else with it."""
    failed = state.default.failed
    if not failed:
        return work
    reached: set[Node] = set()
    for node in walk.toposort(node for _, node, _ in work):
        if node in failed or (node.buffer is None and not reached.isdisjoint(node.inputs)):
            reached.add(node)
    for _, node, _ in work:
        if node in reached:
            _give_up(node)
    return [entry for entry in work if entry[1] not in reached]


def _give_up(node: Node) -> None:
    """A value failed: nobody computes it but who reads it. What it is made of stays as it is until then."""
    failed = state.default.failed
    if node not in failed:
        failed.add(node)
        for leaf in walk.leaves(walk.toposort([node]))[0]:
            leaf.buffer.kept += 1


def _with_saved(nodes: list[Node]) -> list[Node]:
    """Each node once, then what gradients through them will read."""
    roots = {id(node): node for node in nodes}
    for node in backward.saved_nodes(list(roots.values())):
        roots.setdefault(id(node), node)
    return list(roots.values())


def _read_by(others: list[Node]) -> set[int]:
    """The ids of buffers that the pending work of other threads reads."""
    if not others:
        return set()
    data, _ = walk.leaves(walk.toposort(others))
    return {id(node.buffer) for node in data}


def _run_apart(device: Device, work: Work) -> None:
    """Computes what can be computed after a Program failed, value by value."""
    for storage, node, _ in work:
        if node.buffer is None:
            with suppress(Exception):
                _run_alone(device, storage, node)
        else:
            storage.settle(node)


def _run_alone(device: Device, storage: Storage, node: Node) -> None:
    """Computes one value. It overwrites nothing: others are still to be computed from what is there."""
    try:
        _run(device, _with_saved([node]), [(storage, node, False)], set(), dry=False)
    except Exception:
        _give_up(node)
        raise
    state.default.failed.discard(node)
    storage.settle(node)


def _run(device: Device, roots: list[Node], work: Work, kept: set[int], *, dry: bool) -> Run | None:
    """kept: the ids of buffers that are not to be written to."""
    if not device.has_values:
        _count_as_computed(device, roots)
        return None
    order = walk.toposort(roots)
    data, numbers = walk.leaves(order)
    position = {id(root): index for index, root in enumerate(roots)}
    outputs: list[Buffer | None] = [None] * len(roots)
    leaf_of = {id(node.buffer): index for index, node in enumerate(data)}
    written = []
    takers: list[list[Storage]] = [[] for _ in roots]
    for storage, node, may_write in work:
        home, output_index = storage.home, position[id(node)]
        takers[output_index].append(storage)
        if home is None or not (may_write and home.may_be_written) or id(home) in kept:
            continue
        if outputs[output_index] is None and home.nbytes == _bytes(device, node):
            outputs[output_index] = home
            if id(home) in leaf_of:
                written.append((output_index, leaf_of[id(home)]))
    with interrupts.allowed():
        program, loaded, structure = program_cache.load(device, order, roots, tuple(written))
    done = Run(device, structure, program, loaded, data, numbers, takers)
    if dry:
        return done
    for output_index, leaf in written:
        if (output_index, leaf) not in program.written:
            outputs[output_index] = None
    try:
        buffers = device.run(loaded, [node.buffer for node in data], [plain(node.buffer) for node in numbers], outputs)
    except RangeError as error:
        raise bounds.told(error, order) from None
    _settle(roots, buffers, takers)
    return done


def _settle(roots: list[Node], buffers: list[Buffer], takers: list[list[Storage]]) -> None:
    """Puts what a run computed into its nodes and storages."""
    seen_buffers: set[int] = set()
    for root, result, storages in zip(roots, buffers, takers, strict=True):
        buffer = result
        for storage in storages:
            buffer = storage.place(buffer)
        buffer.kept += id(buffer) in seen_buffers  # Equal values share it for good, so no write in place may go there.
        seen_buffers.add(id(buffer))
        if root.op.__class__ not in graph.NO_VIEWS:
            walk.note_view(root)
        root.buffer = buffer
        if not root.requires or root.freed:
            root.inputs = ()


def _count_as_computed(device: Device, roots: list[Node]) -> None:
    """What a device without values does with a graph: nobody will ask for them."""
    for root in roots:
        root.buffer = device.zeros(root.spec)
        if not root.requires or root.freed:
            root.inputs = ()


def run_again(
    run: Run, inputs: list[Buffer], numbers: list[float], outputs: list[Buffer | None], takers: list[list[Storage]]
) -> None:
    """Runs a Program once more and hands its results to the storages of `takers`."""
    if graph.thread_state.origins is not None:
        graph.thread_state.origins.again(run.device, run.program)
    with interrupts.held(), state.default.lock:
        buffers = run.device.run(run.loaded, inputs, numbers, outputs)
        for buffer, storages in zip(buffers, takers, strict=True):
            for storage in storages:
                storage.renew(storage.place(buffer))


def _bytes(device: Device, node: Node) -> int:
    shape, dtype = node.spec
    return dtype.format.room(prod(shape)) if device.target.wgsl else dtype.itemsize * prod(shape)


def force(storage: Storage) -> Node:
    """The node of a storage's value, which then has its buffer. Raises what the value raised, at each call."""
    capture, node, device = thread_state.observer, storage.node, storage.device
    if capture is not None and not (node.buffer is not None and capture.have_created([storage])):
        capture.fail(
            CaptureError(
                "a value is read on the host while a compiled step is captured: the step runs as one Program, whose "
                "values are there when it is over. Return the tensor, or register it with pywebgpu.capture(name, "
                "tensor)"
            )
        )
    if node.buffer is None:
        stand_ins = state.default.local.queues[device].stand_ins
        if stand_ins and node in reached([node], stand_ins):
            raise StandInError(IN_VMAP)
        if node not in state.default.failed:
            storage.wait()
        submit(device)
        with interrupts.held(), state.default.lock:
            if node.buffer is None:
                _run_alone(device, storage, node)
    return node


def alone(storage: Storage) -> Storage:
    """A storage with a buffer that holds this value and no other. All parts of one shape share a Program for it."""
    if storage.whole is None:
        return storage
    flat = force(storage.whole)
    shape = storage.location["shape"]
    cut = {"starts": (storage.location["start"],), "sizes": (prod(shape),), "steps": (1,)}
    node = movement.reshape(indexing.slice_of_data(flat, **cut), shape=shape)
    return Storage(pointwise.copy(node), storage.device)


def read(storage: Storage) -> bytes:
    """The bytes of a storage's value. Waits for the device."""
    storage = alone(storage)
    node = force(storage)
    return storage.device.download(node.buffer, node.spec)


async def read_async(storage: Storage) -> bytes:
    """As read, also where Python cannot wait."""
    storage = alone(storage)
    node = force(storage)
    return await storage.device.download_async(node.buffer, node.spec)


def pending(device: Device) -> Iterable[Storage]:
    """Storages of the device that wait for their value in this thread."""
    return _queued(state.default.local.queues[device])


def waiting() -> list[Device]:
    """Devices for which this thread has work that is not queued yet."""
    return [device for device in list(state.default.local.queues) if pending(device)]
