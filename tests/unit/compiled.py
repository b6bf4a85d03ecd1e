"""What a few lines of user code are compiled to, on a machine without a GPU."""

import re
from collections.abc import Callable
from itertools import pairwise
from math import inf, prod
from typing import Any

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.compiler.driver import compile_graph
from pywebgpu.compiler.program import Dispatch, Program, Slot, Written
from pywebgpu.ir.graph import Node
from pywebgpu.kernels.kernel import Kernel, Limits
from pywebgpu.kernels.target import Target
from pywebgpu.runtime import executor, program_cache

NULL: Any = devices.open_device("null")


def leaf(*shape: int, dtype: Any = torch.float32, grad: bool = False) -> Any:
    """A tensor that has its buffer."""
    x = torch.empty(*shape, dtype=dtype, device="null").fill_(0)
    settle()
    return x.requires_grad_() if grad else x


def settle() -> None:
    executor.submit(NULL)


def programs(function: Callable[[], Any]) -> list[Program]:
    """Every Program that the device is given while `function` runs and right after it, with its results alive."""
    settle()
    program_cache.clear()
    before = len(NULL.loaded)
    results = function()
    settle()
    del results
    return list(NULL.loaded[before:])


def only(function: Callable[[], Any]) -> Program:
    (program,) = programs(function)
    return program


def for_limits(limits: Limits, *wanted: Any, written: Written = ()) -> Program:
    """The Program of some tensors, or of nodes, for a device with these limits."""
    roots = tuple(x if isinstance(x, Node) else x._node for x in wanted)
    return compile_graph(roots, Target(wgsl=True, limits=limits), written)


def kernel(*wanted: Any) -> Kernel:
    """The kernel of tensors that one dispatch computes."""
    program = for_limits(Limits(), *wanted)
    assert len(program.steps) == 1, [k.name for k in program.kernels]
    return program.kernels[0]


def check(program: Program, limits: Limits) -> None:
    """What every Program must keep to, whatever it computes."""
    known = {program.slots[slot].buffer for slot in program.inputs}  # buffers with something in them
    for step in program.steps:
        assert isinstance(step, Dispatch)
        found = program.kernels[step.kernel]
        assert len(step.slots) == len(found.writes)
        assert len(step.slots) + found.faults <= limits.bindings, f"{found.name} binds {len(step.slots)} buffers"
        assert any(found.writes), f"{found.name} writes nothing"
        assert all(1 <= n <= limits.workgroups for n in found.grid), f"{found.name}: grid {found.grid}"
        assert workgroup_bytes(found) <= limits.shared_bytes, f"{found.name}: {workgroup_bytes(found)} shared bytes"
        assert lanes(found) <= limits.workgroup_size
        bound = [(program.slots[slot], writes) for slot, writes in zip(step.slots, found.writes, strict=True)]
        check_bound(found.name, bound)
        for slot, writes in bound:
            assert writes or slot.buffer in known, f"{found.name} reads {slot} before it is written"
            assert program.sizes[slot.buffer] >= (slot.offset or 0) + slot.nbytes, f"{slot} has a small buffer"
            assert (slot.offset or 0) % 256 == 0, f"{slot} cannot be bound"
        known |= {slot.buffer for slot, _ in bound}
    empty = {slot.buffer for slot in program.slots if 0 in slot.spec.shape}
    in_place = {program.slots[program.outputs[i]].buffer for i, _ in program.written}
    assert {program.slots[at].buffer for at in program.outputs} <= known | empty | in_place, "an output is not written"


def check_bound(name: str, bound: list[tuple[Slot, bool]]) -> None:
    """A dispatch reads a buffer or writes it, and the ranges that it writes lie apart."""
    read = {slot.buffer for slot, writes in bound if not writes}
    written = sorted((slot.buffer, slot.offset or 0, slot) for slot, writes in bound if writes)
    assert not read & {buffer for buffer, _, _ in written}, f"{name}: a buffer is bound for reading and for writing"
    for (buffer, start, slot), (other, after, _) in pairwise(written):
        end = inf if slot.offset is None else start + slot.nbytes
        assert buffer != other or end <= after, f"{name}: a buffer is bound twice for writing"


def workgroup_bytes(found: Kernel) -> int:
    arrays = re.findall(r"var<workgroup> \w+: (?:array<)+(?:vec(\d)<|atomic<)?\w+>?((?:, \d+>)+);", found.wgsl)
    assert len(arrays) == found.wgsl.count("var<workgroup>")
    return sum(4 * int(width or 1) * prod(map(int, re.findall(r"\d+", extents))) for width, extents in arrays)


def lanes(found: Kernel) -> int:
    match = re.search(r"@workgroup_size\((\d+)\)", found.wgsl)
    assert match is not None
    return int(match[1])
