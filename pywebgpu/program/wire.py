"""Program <-> JSON: what the bridge replays, and what a Program is in a file.

The bridge sees buffers, kernels and counts. Shapes and dtypes stand only where a value goes in or comes out, for those
who feed the Program. js_bridge/wire.d.ts says the same to TypeScript; both carry VERSION.
"""

import json
from typing import Any

from pywebgpu import dtypes
from pywebgpu.errors import CompileError
from pywebgpu.graph.ir import Spec
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.program.program import Dispatch, Program, Slot

VERSION = 1


def to_json(program: Program) -> str:
    """One line of JSON. Raises CompileError for a Program of the cpu device, whose steps are Python."""
    return json.dumps(as_data(program), separators=(",", ":"))


def as_data(program: Program) -> dict[str, Any]:
    """The same as dictionaries and lists."""
    steps: list[list[int]] = []
    for step in program.steps:
        if not isinstance(step, Dispatch):
            raise CompileError(f"{step.op.name}: a program of the cpu device cannot leave Python")
        steps.append([step.kernel, *(program.slots[slot].buffer for slot in step.slots)])
    return {
        "version": VERSION,
        "kernels": [_kernel_data(kernel) for kernel in program.kernels],
        "steps": steps,
        "sizes": list(program.sizes),
        "scratch": list(program.scratch),
        "inputs": [_value_data(program.slots[slot]) for slot in program.inputs],
        "outputs": [_value_data(program.slots[slot]) for slot in program.outputs],
        "numbers": [dtype.name for dtype in program.numbers],
        "written": [list(pair) for pair in program.written],
        "lower_bound": program.lower_bound,
    }


def from_json(text: str) -> Program:
    """The opposite. A value inside the Program has lost its shape; it is words. CompileError: another version."""
    data = json.loads(text)
    if data.get("version") != VERSION:
        raise CompileError(f"a program of version {data.get('version')}; this pywebgpu reads version {VERSION}")
    inside = [Slot(Spec((size // 4,), dtypes.uint32), buffer) for buffer, size in enumerate(data["sizes"])]
    ends = [_slot(value) for value in (*data["inputs"], *data["outputs"])]
    first, middle, last = len(inside), len(inside) + len(data["inputs"]), len(inside) + len(ends)
    return Program(
        kernels=tuple(_kernel(kernel) for kernel in data["kernels"]),
        steps=tuple(Dispatch(kernel, tuple(buffers)) for kernel, *buffers in data["steps"]),
        slots=(*inside, *ends),
        inputs=tuple(range(first, middle)),
        numbers=tuple(dtypes.BY_NAME[name] for name in data["numbers"]),
        outputs=tuple(range(middle, last)),
        written=tuple((output, given) for output, given in data["written"]),
        sizes=tuple(data["sizes"]),
        scratch=tuple(data["scratch"]),
        lower_bound=data["lower_bound"],
    )


def _kernel_data(kernel: Kernel) -> dict[str, Any]:
    """`bindings`: a letter a binding, in order: r is read, w is written, n the host numbers, f the fault words."""
    letters = "".join("w" if writes else "r" for writes in kernel.writes)
    letters += "n" * kernel.numbers + "f" * kernel.faults
    return {"name": kernel.name, "wgsl": kernel.wgsl, "grid": list(kernel.grid), "bindings": letters}


def _kernel(data: dict[str, Any]) -> Kernel:
    letters: str = data["bindings"]
    x, y, z = data["grid"]
    return Kernel(
        name=data["name"],
        wgsl=data["wgsl"],
        grid=(x, y, z),
        writes=tuple(letter == "w" for letter in letters if letter in "rw"),
        numbers="n" in letters,
        faults="f" in letters,
    )


def _value_data(slot: Slot) -> dict[str, Any]:
    return {"buffer": slot.buffer, "dtype": slot.spec.dtype.name, "shape": list(slot.spec.shape)}


def _slot(data: dict[str, Any]) -> Slot:
    return Slot(Spec(tuple(data["shape"]), dtypes.BY_NAME[data["dtype"]]), data["buffer"])
