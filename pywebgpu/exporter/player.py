"""Playing an export natively: the same programs, and the same API, as js_bridge/player.mjs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pywebgpu import devices, dtypes
from pywebgpu.compiler.program import Dispatch, Program
from pywebgpu.devices.base import Buffer, Device
from pywebgpu.errors import CompileError
from pywebgpu.exporter import validate
from pywebgpu.exporter.export import PROGRAM, VERSION, WEIGHTS
from pywebgpu.exporter.host import Host, PlayError
from pywebgpu.io import safetensors
from pywebgpu.ir import graph
from pywebgpu.ir.graph import Spec
from pywebgpu.runtime import executor
from pywebgpu.runtime.storage import Storage
from pywebgpu.support import documents
from pywebgpu.support.documents import Malformed, require
from pywebgpu.support.shapes import strides
from pywebgpu.tensor import create
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.tensor.factory_options import DeviceLike

Data = dict[str, Any]


def load_program(folder: str | Path, device: DeviceLike = None) -> Player:
    """What `export` or `save_program` wrote, on a device with kernels (the default one when None).

    Raises: CompileError for files of another version; PlayError for files that are damaged or do not fit together, and
    for a device that runs no kernels, or smaller ones; OSError for files that cannot be read.
    """
    folder_path = Path(folder)
    opened = devices.open_device(device)
    if not opened.target.wgsl:
        raise PlayError(f"a program is kernels, and device {opened.name} runs none; load it on webgpu")
    try:
        weights = safetensors.load_file(folder_path / WEIGHTS, "cpu")
        return read(documents.read(folder_path / PROGRAM), weights, opened)
    except (Malformed, CompileError) as error:
        raise (PlayError if isinstance(error, Malformed) else CompileError)(
            f"{folder_path / PROGRAM}: {error}"
        ) from None
    except safetensors.SafetensorError as error:
        raise PlayError(str(error)) from None


def read(text: bytes, weights: Mapping[str, Tensor], device: Device) -> Player:
    """The player of a program.json, once all of it is checked. Raises Malformed and CompileError."""
    data = documents.parse(text)
    form = [data.get(key) if isinstance(data, dict) else None for key in ("format", "version")]
    if form != ["pywebgpu", VERSION] or type(form[1]) is not int:
        said = " ".join(part if isinstance(part, str) else documents.shown(part) for part in form)[:80]
        raise CompileError(f"an export of the format {said}; this pywebgpu reads pywebgpu {VERSION}")
    checked = validate.checked(data, {name: weight.shape for name, weight in weights.items()})
    limits = device.target.limits
    for name, checked_step in checked.items():
        needed = max((len(kernel.writes) + kernel.faults for kernel in checked_step.program.kernels), default=0)
        require(needed <= limits.bindings, name, f"it binds {needed} buffers; this device allows {limits.bindings}")
    states = (dtypes.BY_NAME[state["dtype"]].format.nbytes(prod(state["shape"])) for state in data["states"])
    largest = max([0, *states, *(size for checked_step in checked.values() for size in checked_step.program.sizes)])
    allowed = limits.buffer_bytes
    require(largest <= allowed, "an export", f"it has a buffer of {largest} bytes; this device allows {allowed}")
    bound, allowed = (
        max([_largest_binding(checked_step.program) for checked_step in checked.values()], default=0),
        limits.binding_bytes,
    )
    require(bound <= allowed, "an export", f"it binds {bound} bytes at once; this device allows {allowed}")
    return Player(data, checked, weights, device)


def _largest_binding(program: Program) -> int:
    """Bytes of the largest binding: of a whole buffer, or of a range of it."""
    bound = {slot for step in program.steps if isinstance(step, Dispatch) for slot in step.slots}
    slots = [program.slots[slot] for slot in bound]
    return max((program.sizes[slot.buffer] if slot.offset is None else slot.nbytes for slot in slots), default=0)


class Player:
    """The programs of an export and what they keep, which they share.

    params, gradients, optimizer: tensors by name. options: the numbers of the host. captures: tensors of the last runs.
    notes: by program, what of its host code stayed in Python.
    """

    def __init__(
        self, data: Data, checked: Mapping[str, validate.Checked], files: Mapping[str, Tensor], device: Device
    ) -> None:
        self.device = device
        self.programs: dict[str, Data] = data["programs"]
        self.notes = {name: step["notes"] for name, step in self.programs.items()}
        self.captures: dict[str, Tensor] = {}
        self._specs = [Spec(tuple(state["shape"]), dtypes.BY_NAME[state["dtype"]]) for state in data["states"]]
        self._buffers = [
            device.upload(_bytes(spec, state["parts"], files), spec)
            for spec, state in zip(self._specs, data["states"], strict=True)
        ]
        self._cells = [cell["value"] for cell in data["cells"]]
        self._kinds = [cell["kind"] for cell in data["cells"]]
        titles = [cell["name"] for cell in data["cells"]]
        self._loaded = {
            name: (checked_step.program, device.load(checked_step.program)) for name, checked_step in checked.items()
        }
        self._hosts = {name: Host(step["host"], checked[name].host, titles) for name, step in self.programs.items()}
        named = data["tensors"]
        self.params = Tensors(self, [entry for entry in named if entry["kind"] in ("parameter", "buffer")])
        self.gradients = Tensors(self, [entry for entry in named if entry["kind"] == "gradient"])
        self.optimizer = Moments(self, [entry for entry in named if entry["kind"] == "optimizer"])
        self.options = Options(self._cells, [cell["name"] for cell in data["cells"]])

    def run(self, name: str, inputs: Mapping[str, Any] | None = None) -> Any:
        """Runs a program: inputs by name, tensors or what becomes one. Returns what its function returned."""
        step = self.programs.get(name)
        if step is None:
            raise PlayError(f"there is no program {name!r}; there are {', '.join(self.programs)}")
        arguments, numbers = self._given(name, step, inputs or {})
        host = self._hosts[name]
        cells, values = host.run(name, self._cells, numbers)
        program, loaded = self._loaded[name]
        held = [tensor._storage.node.buffer for tensor in arguments]
        sources = [held[index] if kind == "argument" else self._buffers[index] for kind, index in step["sources"]]
        words = [values[folder_path] for folder_path in host.words]
        outputs = self.device.run(loaded, sources, words, self._homes(step, program, sources))
        for taken, buffer in zip(step["takers"], outputs, strict=True):
            for state in taken:
                self._buffers[state] = buffer
        self._cells[:] = cells
        shown = _Shown(self, step, program, arguments, outputs, values)
        self.captures |= {key: shown.made(template) for key, template in step["captures"].items()}
        return shown.made(step["result"])

    step = run

    def _given(self, name: str, step: Data, inputs: Mapping[str, Any]) -> tuple[list[Tensor], list[float]]:
        wanted = [entry["name"] for entry in step["tensors"]] + step["numbers"]
        if set(wanted) != set(inputs):
            said = ", ".join(inputs) or "nothing"
            raise PlayError(f"{name} takes {', '.join(wanted) or 'nothing'}; it was given {said}")
        tensors = []
        for entry in step["tensors"]:
            dtype = dtypes.BY_NAME[entry["dtype"]]
            argument = create.as_tensor(inputs[entry["name"]], dtype=dtype, device=self.device.name)
            if list(argument.shape) != entry["shape"]:
                raise PlayError(f"{name}: {entry['name']} has shape {list(argument.shape)}, not {entry['shape']}")
            tensors.append(argument.clone() if argument._path or argument._storage.whole is not None else argument)
        executor.submit(self.device)
        return tensors, [float(inputs[entry]) for entry in step["numbers"]]

    def _homes(self, step: Data, program: Program, sources: list[Buffer]) -> list[Buffer | None]:
        """Where outputs go: over the input that they replace, into a state's own memory, or (None) somewhere new."""
        over = dict(program.written)
        homes: list[Buffer | None] = []
        for index, taken in enumerate(step["takers"]):
            own = self._buffers[taken[0]] if len(taken) == 1 else None
            alone = own is not None and sum(own is buffer for buffer in self._buffers) == 1
            free = alone and not any(own is source for source in sources)
            homes.append(sources[over[index]] if index in over else own if free else None)
        return homes


class _Shown:
    """What one run returns."""

    def __init__(
        self,
        player: Player,
        step: Data,
        program: Program,
        arguments: list[Tensor],
        outputs: list[Buffer],
        values: list[Any],
    ) -> None:
        self.player, self.step, self.program = player, step, program
        self.given, self.outputs, self.values = arguments, outputs, values

    def made(self, template: Data) -> object:
        if "tensor" in template:
            return self._tensor(template)
        if "list" in template:
            return [self.made(item) for item in template["list"]]
        if "dict" in template:
            return {key: self.made(item) for key, item in template["dict"].items()}
        return self.values[template["number"]] if "number" in template else template["plain"]

    def _tensor(self, template: Data) -> Tensor:
        kind: str = template["tensor"][0]
        index: int = template["tensor"][1]
        if kind == "argument":
            return self.given[index]
        spec = self.player._specs[index] if kind == "state" else self.program.slots[self.program.outputs[index]].spec
        buffer = self.player._buffers[index] if kind == "state" else self.outputs[index]
        shown = _tensor(buffer, spec, self.player.device)
        shape = tuple(template["shape"])
        if template["offset"] or shape != spec.shape or tuple(template["strides"]) != strides(shape):
            shown = shown.reshape(-1).as_strided(shape, template["strides"], template["offset"])
        elif kind == "state" or self.step["takers"][index]:
            shown = shown.clone()
        return shown


class Tensors:
    """Tensors by name, each a range of a state."""

    def __init__(self, player: Player, entries: list[Data]) -> None:
        self._player = player
        self._entries = {entry["name"]: entry for entry in entries}

    @property
    def names(self) -> list[str]:
        return list(self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def shape(self, name: str) -> list[int]:
        sizes: list[int] = self._entry(name)["shape"]
        return sizes

    def get(self, name: str) -> Tensor:
        """A copy of its present value."""
        entry, player = self._entry(name), self._player
        flat = _tensor(player._buffers[entry["state"]], player._specs[entry["state"]], player.device)
        begin, shape = entry["offset"], tuple(entry["shape"])
        part: Tensor = flat.reshape(-1)[begin : begin + prod(shape)].reshape(shape).clone()
        return part

    def all(self) -> dict[str, Tensor]:
        """Copies of all of them."""
        return {name: self.get(name) for name in self._entries}

    def set(self, values: Mapping[str, Any]) -> None:
        """New values for some of them; where one does not fit, none is set. Raises PlayError."""
        tensors = {name: create.as_tensor(value, device="cpu") for name, value in values.items()}
        for name, value in tensors.items():
            if value.numel() != prod(self.shape(name)):
                raise PlayError(f"{name} has {prod(self.shape(name))} elements; it was given {value.numel()}")
        for name, value in tensors.items():
            self._write(self._entry(name), value)

    def _entry(self, name: str) -> Data:
        if name not in self._entries:
            raise PlayError(f"there is no tensor {name!r}; there are {', '.join(self._entries) or 'none'}")
        return self._entries[name]

    def _write(self, entry: Data, value: Tensor) -> None:
        player, index = self._player, entry["state"]
        spec, old = player._specs[index], player._buffers[index]
        data = bytearray(player.device.download(old, spec))
        new = value.to(dtype=spec.dtype).contiguous().tobytes()
        begin = spec.dtype.itemsize * entry["offset"]
        data[begin : begin + len(new)] = new
        buffer = player.device.upload(bytes(data), spec)
        player._buffers[:] = [buffer if current is old else current for current in player._buffers]


class Moments(Tensors):
    """What the optimizer keeps of each parameter."""

    def reset(self) -> None:
        """Forgets all steps: what it keeps becomes zero, and so do the counts of steps."""
        self.set({name: create.zeros(self.shape(name), device="cpu") for name in self.names})
        cells = self._player._cells
        cells[:] = [0 if kind == "count" else n for kind, n in zip(self._player._kinds, cells, strict=True)]


class Options:
    """The numbers of the host, by name. `lr` is that of all groups that have one; `lr:1` that of the second."""

    _cells: list[float]
    _found: dict[str, list[int]]

    def __init__(self, cells: list[float], names: list[str]) -> None:
        by_name: dict[str, list[int]] = {}
        for index, name in enumerate(names):
            by_name.setdefault(name, []).append(index)
        by_name |= {
            f"{name}:{k}": [index] for name, indices in list(by_name.items()) for k, index in enumerate(indices)
        }
        self.__dict__["_cells"], self.__dict__["_found"] = cells, by_name

    def __dir__(self) -> list[str]:
        return list(self._found)

    def __getattr__(self, name: str) -> float:
        return self[name]

    def __setattr__(self, name: str, value: float) -> None:
        self[name] = value

    def __getitem__(self, name: str) -> float:
        return self._cells[self._indices(name)[0]]

    def __setitem__(self, name: str, value: float) -> None:
        for index in self._indices(name):
            self._cells[index] = value

    def _indices(self, name: str) -> list[int]:
        if name not in self._found:
            known = ", ".join(cell_name for cell_name in self._found if ":" not in cell_name)
            raise PlayError(f"there is no option {name!r}; there are {known or 'none'}")
        return self._found[name]


def _bytes(spec: Spec, parts: list[Any], files: Mapping[str, Tensor]) -> bytes:
    data = bytearray(prod(spec.shape) * spec.dtype.itemsize)
    for name, offset in parts:
        part = files[name].to(spec.dtype).tobytes()
        begin = offset * spec.dtype.itemsize
        data[begin : begin + len(part)] = part
    return bytes(data)


def _tensor(buffer: Buffer, spec: Spec, device: Device) -> Tensor:
    tensor: Tensor = Tensor._of(Storage(graph.data(spec, buffer), device), ())
    return tensor
