"""Programs that come from files: JSON -> Program, checked before anything is made of it.

wire.py is the other way; a page that trains reads no Program, and does without this file.
"""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from pywebgpu import dtypes
from pywebgpu.compiler import validate, wire
from pywebgpu.compiler.program import Dispatch, Program, Slot, Words
from pywebgpu.errors import CompileError
from pywebgpu.ir.graph import Spec
from pywebgpu.kernels.kernel import Checks, Kernel
from pywebgpu.support import atomic, documents
from pywebgpu.support.documents import Malformed
from pywebgpu.support.formats import WORD

DIGEST = 65  # bytes: as text, and a line's end


def from_json(text: str | bytes) -> Program:
    """The opposite of wire.to_json. A value inside the Program has lost its shape; it is words.

    Raises: CompileError for what is no Program, or one of another version.
    """
    try:
        return from_data(documents.parse(text))
    except Malformed as error:
        raise CompileError(f"a damaged program: {error}") from None


def save(program: Program, file: str | Path) -> None:
    """Writes a Program as `wire.to_json` gives it."""
    atomic.write(file, wire.to_json(program))


def load(file: str | Path) -> Program:
    """The Program of a file. Raises CompileError for one that is no Program, or of another version; OSError."""
    try:
        return from_data(documents.parse(documents.read(file)))
    except (Malformed, CompileError) as error:
        raise CompileError(f"{file} is not a program: {error}") from None


def save_sealed(program: Program, file: Path) -> None:
    """As `save`, with a digest of the text and of the file's name: a cache must not read what another one meant."""
    text = wire.to_json(program).encode()
    atomic.write(file, _digest(file, text) + text)


def load_sealed(file: Path) -> Program:
    """What `save_sealed` wrote under this name. Raises CompileError for anything else; OSError."""
    try:
        sealed = documents.read(file)
    except Malformed as error:
        raise CompileError(f"{file}: {error}") from None
    digest, text = sealed[:DIGEST], sealed[DIGEST:]
    if digest != _digest(file, text):
        raise CompileError(f"{file} is not what was written there")
    program = from_json(text)
    return replace(program, kernels=tuple(replace(kernel, checks=Checks.BOUNDS) for kernel in program.kernels))


def from_data(data: Any) -> Program:
    """As from_json, of what wire.as_data gives. Raises Malformed, and CompileError for another version."""
    if isinstance(data, dict) and not (type(data.get("version")) is int and data["version"] == wire.VERSION):
        version = documents.shown(data.get("version"))
        raise CompileError(f"a program of version {version}; this pywebgpu reads version {wire.VERSION}")
    validate.check(data)
    inside = [Slot(_words(size), buffer) for buffer, size in enumerate(data["sizes"])]
    inside += [Slot(_words(size), buffer, offset) for buffer, offset, size in data["ranges"]]
    ends = [_slot(value) for value in (*data["inputs"], *data["outputs"])]
    first, middle = len(inside), len(inside) + len(data["inputs"])
    outputs: dict[int, int] = {}  # Equal values are one slot, so that a run gives them one buffer.
    for index, value in enumerate(data["outputs"], middle):
        outputs.setdefault(value["buffer"], index)
    return Program(
        kernels=tuple(_kernel(kernel) for kernel in data["kernels"]),
        steps=tuple(_step(step, data) for step in data["steps"]),
        slots=(*inside, *ends),
        inputs=tuple(range(first, middle)),
        numbers=tuple(dtypes.BY_NAME[name] for name in data["numbers"]),
        outputs=tuple(outputs[value["buffer"]] for value in data["outputs"]),
        written=tuple((output, leaf) for output, leaf in data["written"]),
        sizes=tuple(data["sizes"]),
        scratch=tuple(data["scratch"]),
        lower_bound=data["lower_bound"],
    )


def _digest(file: Path, text: bytes) -> bytes:
    return sha256(f"{file.name}\n".encode() + text).hexdigest().encode() + b"\n"


def _words(nbytes: int) -> Words:
    return Words((nbytes // WORD,), dtypes.uint32)


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
        needs=tuple(data.get("needs", ())),
        work=data.get("work", 0),
    )


def _step(step: list[int], data: dict[str, Any]) -> Dispatch:
    kernel, *bound = step
    if "n" in data["kernels"][kernel]["bindings"]:
        *bound, block = bound
        return Dispatch(kernel, tuple(bound), tuple(data["blocks"][block]))
    return Dispatch(kernel, tuple(bound))


def _slot(data: dict[str, Any]) -> Slot:
    return Slot(Spec(tuple(data["shape"]), dtypes.BY_NAME[data["dtype"]]), data["buffer"])
