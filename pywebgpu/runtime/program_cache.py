"""Programs that are ready to run, by what they were made of: found here, in a file, or compiled now."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from pywebgpu.devices.base import Device
from pywebgpu.ir import graph, key
from pywebgpu.ir.graph import Node
from pywebgpu.runtime import state
from pywebgpu.settings import settings

if TYPE_CHECKING:
    from pywebgpu.compiler.program import Loaded, Program, Written

PROGRAMS = 512  # programs kept, the least recently used goes first
NBYTES = 1 << 22  # of texts and steps that all of them have, where more than these are kept:
RECENT = 32
STEP = 1024  # bytes that a step of a Program takes


def load(
    device: Device, order: list[Node], roots: list[Node], written: Written
) -> tuple[Program, Loaded, key.Structure]:
    """The Program of a toposorted graph, what the device made of it, and the structure that it was made of."""
    runtime = state.default
    cache_key = (device, device.target.digest, key.structure(order, roots), written)
    loaded = runtime.programs.get(cache_key)
    if loaded is None:
        runtime.counters["program_misses"] += 1
        with graph.thread_state.span("compile", "compile"):
            program = _program(device, cache_key[2], roots, written)
        loaded = (program, device.load(program), cache_key[2])
        runtime.programs[cache_key] = loaded
        _shrink()
    else:
        runtime.counters["program_hits"] += 1
        runtime.programs.move_to_end(cache_key)
    if graph.thread_state.origins is not None:
        graph.thread_state.origins.loading(device, loaded[0], roots, written)
    return loaded


def clear() -> None:
    """Forgets all compiled programs."""
    state.default.programs.clear()


def _shrink() -> None:
    """Lets the programs go that are too many, or too large together."""
    programs = state.default.programs
    nbytes = sum([_nbytes(program) for program, *_ in programs.values()])
    while len(programs) > PROGRAMS or (nbytes > NBYTES and len(programs) > RECENT):
        nbytes -= _nbytes(programs.popitem(last=False)[1][0])


def _nbytes(program: Program) -> int:
    return STEP * len(program.steps) + sum([len(kernel.wgsl) for kernel in program.kernels])


def _program(device: Device, structure: key.Structure, roots: list[Node], written: Written) -> Program:
    """From an earlier process, or compiled now. Where somebody wants to see the passes, they run."""
    is_watched = settings.debug or graph.thread_state.origins is not None
    file = program = None
    if settings.cache and not is_watched:
        from pywebgpu.runtime import disk_cache  # Pages have no cache, and no such file.

        file = disk_cache.find(structure, device.target, written)
        program = None if file is None else disk_cache.load(file)
    if program is None:
        from pywebgpu.compiler import driver  # A quarter of what importing this library takes; much of it runs no step.

        was_on = gc.isenabled()
        gc.disable()  # It makes much and no cycles; a collection this deep in calls overflows the stack of a browser.
        try:
            program = driver.compile_graph(tuple(roots), device.target, written, device.prepare)
        finally:
            if was_on:
                gc.enable()
        if file is not None:
            disk_cache.save(program, file)
    return program
