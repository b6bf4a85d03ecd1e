"""Program -> JSON: what the bridge replays, and what a Program is in a file (see serialization.py).

The bridge sees buffers, ranges of them, kernels and counts. A step names a buffer by its number, and the range r by
r + the number of buffers; last comes the block of host numbers that its kernel reads, where it reads any. Shapes and
dtypes stand only where a value goes in or comes out, for those who feed the Program. js_bridge/wire.d.ts says the same
to TypeScript; both carry VERSION.
"""

import json
from typing import Any

from pywebgpu.compiler.program import Dispatch, Program, Slot
from pywebgpu.errors import CompileError
from pywebgpu.kernels.kernel import Kernel

VERSION = 4


def to_json(program: Program) -> str:
    """One line of JSON. Raises CompileError for a Program of the cpu device, whose steps are Python."""
    return json.dumps(as_data(program), separators=(",", ":"))


def as_data(program: Program) -> dict[str, Any]:
    """The same as dictionaries and lists."""
    steps: list[list[int]] = []
    ranges: dict[tuple[int, int, int], int] = {}

    def bound(slot: Slot) -> int:
        if slot.offset is None:
            return slot.buffer
        return len(program.sizes) + ranges.setdefault((slot.buffer, slot.offset, slot.nbytes), len(ranges))

    blocks = {block: index for index, block in enumerate(program.blocks)}
    for step in program.steps:
        if not isinstance(step, Dispatch):
            raise CompileError(f"{step.op.name}: a program of the cpu device cannot leave Python")
        own = [blocks[step.numbers]] if step.numbers else []
        steps.append([step.kernel, *(bound(program.slots[slot]) for slot in step.slots), *own])
    return {
        "version": VERSION,
        "kernels": [_kernel_data(kernel) for kernel in program.kernels],
        "steps": steps,
        "sizes": list(program.sizes),
        "ranges": [list(span) for span in ranges],
        "scratch": list(program.scratch),
        "inputs": [_value_data(program.slots[slot]) for slot in program.inputs],
        "outputs": [_value_data(program.slots[slot]) for slot in program.outputs],
        "numbers": [dtype.name for dtype in program.numbers],
        "blocks": [list(block) for block in blocks],
        "written": [list(pair) for pair in program.written],
        "lower_bound": program.lower_bound,
    }


def kernel_json(kernel: Kernel) -> str:
    """A kernel as it stands in a Program's JSON."""
    return json.dumps(_kernel_data(kernel), separators=(",", ":"))


def _kernel_data(kernel: Kernel) -> dict[str, Any]:
    """`bindings`: a letter a binding, in order: r is read, w is written, n the host numbers, f the fault words.

    `needs`: features that the device must have, where it must have any. `work`: multiplications, of large products.
    """
    letters = "".join("w" if writes else "r" for writes in kernel.writes)
    letters += "n" * kernel.numbers + "f" * kernel.faults
    data = {"name": kernel.name, "wgsl": kernel.wgsl, "grid": list(kernel.grid), "bindings": letters}
    work = {"work": kernel.work} if kernel.work else {}
    return data | ({"needs": list(kernel.needs)} if kernel.needs else {}) | work


def _value_data(slot: Slot) -> dict[str, Any]:
    return {"buffer": slot.buffer, "dtype": slot.spec.dtype.name, "shape": list(slot.spec.shape)}
