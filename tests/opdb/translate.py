"""Values and functions of PyTorch as those of pywebgpu, so that what calls PyTorch calls pywebgpu."""

import contextlib
import dataclasses
import functools
import importlib
import io
import types
from collections.abc import Callable
from typing import Any

import torch

import pywebgpu
from pywebgpu.tensor import create, layout, memory_format

# What PyTorch's tests call around an operator, and what stands for it: generators here belong to devices.
STAND_INS: dict[str, Any] = {"freeze_rng_state": contextlib.nullcontext}
SPACES = (
    "",
    "nn.functional",
    "linalg",
    "special",
    "fft",
    "signal.windows",
    "nn.init",
    "nn",
    "Tensor",
    "optim",
    "autograd",
    "_C._nn",
    "masked",
    "sparse",
)


class AbsentError(AttributeError):
    """pywebgpu has no such name, or no such kind of value."""


def _is_dense(value: torch.Tensor) -> bool:
    """Whether its elements fill memory without gaps, in whatever order of the axes."""
    shape, steps = tuple(value.shape), tuple(value.stride())
    return 0 not in shape and layout.is_dense(shape, steps, layout.by_stride(shape, steps))


class Translator:
    """Translates for one device of pywebgpu."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._tensors: dict[int, Any] = {}  # of one sample: a tensor that stands twice in it is one again
        self._kept: list[Any] = []
        self._memory: dict[int, tuple[int, Any]] = {}  # where storages begin that were translated

    def value(self, value: Any) -> Any:
        """A tensor with its values, or a dtype, a function and so on; containers of them, too."""
        match value:
            case torch.Tensor():
                return self._tensor(value)
            case torch.dtype():
                return named(str(value).removeprefix("torch."))
            case torch.device():
                return pywebgpu.device(self.device if value.type == "cpu" else value.type)
            case torch.Size():
                return pywebgpu.Size(value)
            case torch.Generator():
                return pywebgpu.Generator(self.device).manual_seed(value.initial_seed())
            case torch.memory_format() | torch.layout():
                return named(str(value).removeprefix("torch."))
            case slice():
                return slice(*(self.value(part) for part in (value.start, value.stop, value.step)))
            case dict():
                return type(value)({self.value(key): self.value(item) for key, item in value.items()})
            case list() | set():
                return type(value)(self.value(item) for item in value)
            case tuple():
                parts = [self.value(item) for item in value]
                return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
            case types.ModuleType():
                return module(value)
            case torch.nn.Module() if type(value).__module__.startswith("torch.nn"):
                return self._layer(value)
            case functools.partial():
                return functools.partial(
                    self.value(value.func), *self.value(value.args), **self.value(dict(value.keywords))
                )
        if dataclasses.is_dataclass(value) and not isinstance(value, type) and id(type(value)) in paths():
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return named(paths()[id(type(value))])(**self.value(fields))
        return self.function(value) if callable(value) else value

    def _layer(self, value: torch.nn.Module) -> Any:
        """A module as one that was saved is read here."""
        file = io.BytesIO()
        torch.save(value, file)
        file.seek(0)
        return pywebgpu.load(file, self.device, weights_only=False)

    def _tensor(self, value: torch.Tensor) -> Any:
        found = self._tensors.get(id(value))
        if found is None:
            if value.layout is torch.sparse_csr and value.ndim == 2 and value.values().ndim == 1:
                return self._rows(value)
            if value.layout is not torch.strided or value.is_quantized:
                raise AbsentError(f"{value.dtype} tensors of {value.layout}")
            shown = self._shown(value)
            if shown is not None:
                return shown
            part = self._part(value)
            if part is not None:
                self._tensors[id(value)] = part
                self._kept.append(value)
                return part
            plain = (
                torch.zeros(value.shape, dtype=value.dtype)
                if value._is_zerotensor()
                else value.detach().resolve_conj().resolve_neg().contiguous()
            )
            raw = plain.view(torch.int16) if value.dtype is torch.bfloat16 else plain
            raw = torch.view_as_real(raw) if value.dtype is torch.complex32 else raw
            dtype = named(str(value.dtype).removeprefix("torch."))
            found = create.frombytes(raw.numpy().tobytes(), dtype, tuple(value.shape), self.device)
            if not value.is_contiguous() and _is_dense(value):
                found = memory_format.laid_out(found, tuple(value.stride()))
            if value.requires_grad:
                found.requires_grad_()
            self._tensors[id(value)] = found
            self._kept.append(value)
            if value.is_contiguous() and value.numel() and not value._is_zerotensor():
                self._memory.setdefault(value.untyped_storage().data_ptr(), (value.storage_offset(), found))
        return found

    def _rows(self, value: torch.Tensor) -> Any:
        """A sparse matrix by rows."""
        given = [self.value(part.detach()) for part in (value.crow_indices(), value.col_indices(), value.values())]
        found = self._tensors[id(value)] = pywebgpu.sparse_csr_tensor(*given, size=tuple(value.shape))
        self._kept.append(value)
        return found.requires_grad_() if value.requires_grad else found

    def _part(self, value: torch.Tensor) -> Any:
        """What is a part of a larger memory, of which it may be asked for the rest, or written to; else None."""
        memory = value.untyped_storage()
        count = memory.nbytes() // value.element_size() if memory.nbytes() else 0
        if count <= value.numel() or not value.numel() or not value.is_contiguous() or value._is_zerotensor():
            return None
        if memory.data_ptr() not in self._memory:
            whole = self._tensor(value.detach().as_strided((count,), (1,), 0).clone())
            self._memory[memory.data_ptr()] = 0, whole
        start, whole = self._memory[memory.data_ptr()]
        begin = value.storage_offset() - start
        if str(whole.dtype) != str(value.dtype) or begin < 0 or begin + value.numel() > whole.numel():
            return None
        shown = whole.reshape(-1)[begin : begin + value.numel()].reshape(tuple(value.shape))
        return shown.detach().requires_grad_() if value.requires_grad else shown

    def _shown(self, value: torch.Tensor) -> Any:
        """A part of the memory of a tensor that was translated, or a row again and again; else None."""
        if value.requires_grad or not value.numel():
            return None
        if any(n > 1 and step == 0 for n, step in zip(value.shape, value.stride(), strict=True)):
            ones = [0 if step == 0 else slice(None) for step in value.stride()]
            row = self._tensor(value[tuple(slice(0, 1) if one == 0 else one for one in ones)].clone())
            return row.expand(tuple(value.shape))
        start, base = self._memory.get(value.untyped_storage().data_ptr(), (0, None))
        begin = value.storage_offset() - start
        same = base is not None and str(base.dtype) == str(value.dtype) and not base.requires_grad
        if not same or not value.is_contiguous() or begin < 0 or begin + value.numel() > base.numel():
            return None
        return base.reshape(-1)[begin : begin + value.numel()].reshape(tuple(value.shape))

    def function(self, function: Any) -> Any:
        """The function of the same name here; one that PyTorch's tests wrote is made anew over this library."""
        if type(function).__module__ == "torch._ops":
            return named(f"ops.{function}")
        if getattr(function, "__name__", "") in STAND_INS:
            return STAND_INS[function.__name__]
        path = paths().get(id(function))
        if path is not None:
            return named(path)
        if isinstance(function, types.FunctionType) and "testing" in (function.__module__ or ""):
            return self._rebound(function)
        is_function = isinstance(function, types.FunctionType | types.BuiltinFunctionType)
        if is_function and (function.__module__ or "").startswith("torch"):
            raise AbsentError(f"{function.__module__}.{function.__name__}")
        return function

    def _rebound(self, function: types.FunctionType) -> Callable[..., Any]:
        cells = tuple(types.CellType(self.value(cell.cell_contents)) for cell in function.__closure__ or ())
        space = _Globals(function.__globals__, self)
        made = types.FunctionType(function.__code__, space, function.__name__, None, cells or None)
        made.__defaults__ = self.value(function.__defaults__)
        made.__kwdefaults__ = function.__kwdefaults__ and self.value(dict(function.__kwdefaults__))
        return made


class _Globals(dict[str, Any]):
    """The globals of a function, each translated when it is asked for."""

    def __init__(self, source: dict[str, Any], translator: Translator) -> None:
        super().__init__()
        self._source, self._translator = source, translator

    def __getitem__(self, name: str) -> Any:
        value = self._source[name]
        if isinstance(value, type) and not issubclass(value, torch.Tensor | torch.nn.Module):
            return value
        return self._translator.value(value)


@functools.cache
def paths() -> dict[int, str]:
    """Functions and classes of PyTorch by their identity: where they stand in torch."""
    found: dict[int, str] = {id(torch.Tensor): "Tensor"}
    for space in SPACES:
        holder = functools.reduce(getattr, space.split("."), torch) if space else torch
        for name in sorted(dir(holder), key=lambda name: name.startswith("_")):  # A public name before a hidden one.
            item = getattr(holder, name, None)
            if callable(item) and not isinstance(item, types.ModuleType):
                where = "nn.functional" if space == "_C._nn" else space
                found.setdefault(id(item), f"{where}.{name}" if where else name)
    return found


def module(source: types.ModuleType) -> Any:
    if not source.__name__.startswith("torch"):
        return source
    return named(source.__name__.removeprefix("torch").removeprefix("."))


@functools.cache
def named(path: str) -> Any:
    """pywebgpu's value of a dotted name. Raises AbsentError."""
    found: Any = pywebgpu
    for part in path.split(".") if path else ():
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(f"{found.__name__}.{part}")
            except (ImportError, AttributeError, TypeError):
                raise AbsentError(path) from None
    return found
