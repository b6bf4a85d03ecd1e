"""A tensor as text, in torch's form: fixed or scientific columns, summarised where it is long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from importlib import import_module
from math import ceil, inf, isfinite
from typing import TYPE_CHECKING, Any

from pywebgpu import dtypes
from pywebgpu.autodiff import grad_mode
from pywebgpu.dtypes import DType
from pywebgpu.errors import CannotWaitError
from pywebgpu.ir.graph import Node
from pywebgpu.ir.observer import share
from pywebgpu.tensor import history, movement

if TYPE_CHECKING:
    from pywebgpu.step_capture.free_number import Number
    from pywebgpu.tensor.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Options:
    """precision: digits after the point. threshold: elements above which a tensor is summarised, to `edgeitems` at
    both ends of each axis. linewidth: characters a line. sci_mode: None decides by the values."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PROFILES = {"default": Options(), "short": Options(precision=2, edgeitems=2), "full": Options(threshold=inf)}
_options = share("options of printing", [Options()])


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Changes how tensors print; `profile` is "default", "short" or "full"."""
    base = _options[0] if profile is None else PROFILES[profile]
    options = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    changes: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    _options[0] = replace(base, **changes, sci_mode=sci_mode)


def get_printoptions() -> dict[str, Any]:
    """The options as a dictionary for set_printoptions."""
    return {field.name: getattr(_options[0], field.name) for field in fields(Options)}


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Other options inside a `with` block."""
    before = _options[0]
    set_printoptions(**options)
    try:
        yield
    finally:
        _options[0] = before


def text(tensor: Tensor, contents_text: str | None = None) -> str:
    """repr(tensor). Waits for the device; where Python cannot, it says what is known without the values.

    contents_text: what a class of a program says in place of the elements.
    """
    try:
        grad_fn = type(tensor.grad_fn).__name__  # Before the value is read: a layer's node is taken apart for that.
    except RuntimeError:  # A view that was taken without gradients, of what was written since.
        grad_fn = "Invalid"
    prefix = "tensor(" if type(tensor).__name__ in _PLAIN else f"{type(tensor).__name__}("
    body, suffixes = (contents_text, []) if contents_text is not None else _elements(tensor, len(prefix))
    if not tensor.is_cpu:
        suffixes.insert(0, f"device='{tensor.device}'")
    if grad_fn != "NoneType":
        suffixes.append(f"grad_fn=<{grad_fn}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    tangent = None if history.tangent_of is None else history.tangent_of(tensor)
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")
    shown = with_suffixes(prefix + body, suffixes)
    return f"Parameter({shown})" if getattr(tensor, "_is_param", False) else shown


def _elements(tensor: Tensor, indent: int) -> tuple[str, list[str]]:
    """The elements as text, and the size and the dtype where the text does not show them."""
    size, dtype = f"size={tuple(tensor.shape)}", f"dtype={tensor.dtype}"
    if tensor.is_meta or tensor.numel() == 0:
        sizes = [size] if tensor.is_meta or tensor.ndim != 1 else []
        return "..." if tensor.is_meta else "[]", sizes + [dtype] * (tensor.dtype is not dtypes.default())
    dtypes_shown = [] if is_usual(tensor.dtype) else [dtype]
    try:
        return contents(tensor, indent), dtypes_shown
    except CannotWaitError:
        unread = [size, dtype] if tensor.dtype is dtypes.default() else [size]
        return "<not read: await x.cpu_async()>", dtypes_shown + unread


_PLAIN = ("Tensor", "Parameter")


def gradient_name(node: Node) -> str:
    """What torch calls the gradient of an op: AddBackward0."""
    name: str = import_module("pywebgpu.tensor.grad_fn_names").name(node)
    return name


def contents(tensor: Tensor, indent: int) -> str:
    """The values of a tensor that has some, as text: its lines begin `indent` letters further right."""
    options = _options[0]
    summarise = tensor.numel() > options.threshold
    cut: tuple[bool, ...] = (False,) * tensor.ndim
    with grad_mode.no_grad():
        shown = tensor.detach()
        if summarise:
            cut = tuple(n > 2 * options.edgeitems for n in tensor.shape)
            for axis, is_cut in enumerate(cut):
                if is_cut:
                    shown = _ends(shown, axis, options.edgeitems)
        values = shown.tolist()
    flat = list(_flat(values))
    column = import_module("pywebgpu.tensor.complex_numbers").Pairs if tensor.is_complex() else Column
    write = column(flat, tensor.dtype, options)
    return _rows(values, cut, indent, write) if tensor.ndim else write(values)


def _ends(tensor: Tensor, axis: int, count: int) -> Tensor:
    n = tensor.shape[axis]
    return movement.cat([tensor.narrow(axis, 0, count), tensor.narrow(axis, n - count, count)], axis)


def _flat(values: object) -> Iterator[Any]:
    if isinstance(values, list):
        for item in values:
            yield from _flat(item)
    else:
        yield values


class Column:
    """Writes numbers with one width and one notation."""

    def __init__(self, values: list[Any], dtype: DType, options: Options) -> None:
        self.options = options
        self.floating = dtype.is_floating_point
        self.whole, self.scientific, self.width = True, False, 1
        if not self.floating:
            self.width = max((len(str(value)) for value in values), default=1)
            return
        finite = [value for value in values if isfinite(value) and value != 0]
        if not finite:
            return
        low, high = min(abs(value) for value in finite), max(abs(value) for value in finite)
        self.whole = all(value == ceil(value) for value in finite)
        needed = high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4
        self.scientific = needed if options.sci_mode is None else options.sci_mode
        extra = 1 if self.whole and not self.scientific else 0
        self.width = max(1, *(len(self._number(value).rstrip(".")) + extra for value in finite))

    def __call__(self, value: Number) -> str:
        return (self._number(value) if self.floating else str(value)).rjust(self.width)

    def _number(self, value: float) -> str:
        if self.scientific:
            return f"{value:.{self.options.precision}e}"
        if self.whole:
            return f"{value:.0f}." if isfinite(value) else f"{value:.0f}"
        return f"{value:.{self.options.precision}f}"


def _rows(values: list[Any], cut: tuple[bool, ...], indent: int, write: Column) -> str:
    edge = write.options.edgeitems
    if len(cut) == 1:
        words = [write(value) for value in values]
        if cut[0]:
            words[edge:edge] = [" ..."]
        a_line = max(1, (write.options.linewidth - indent) // (write.width + 2))
        lines = [", ".join(words[i : i + a_line]) for i in range(0, len(words), a_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    parts = [_rows(part, cut[1:], indent + 1, write) for part in values]
    if cut[0]:
        parts[edge:edge] = ["..."]
    return "[" + ("," + "\n" * (len(cut) - 1) + " " * (indent + 1)).join(parts) + "]"


def is_usual(dtype: DType) -> bool:
    """Whether numbers tell it themselves."""
    default = dtypes.default()
    return dtype in (default, dtypes.to_complex(default), dtypes.int64, dtypes.bool_)


def part(tensor: Tensor, prefix: str, indent: int) -> str:
    """A tensor that another one is made of, behind its name."""
    body = contents(tensor, indent + len(prefix)) if tensor.numel() else f"[], size={tuple(tensor.shape)}"
    return f"{prefix}{body})"


def with_suffixes(body: str, suffixes: list[str], *, newline: bool = False) -> str:
    """The text of a tensor with what else is told of it; `newline` begins a line for the first of that."""
    parts = [body]
    indent = body.index("(") + 1
    last = _options[0].linewidth if newline else len(body) - body.rfind("\n") + 1
    for suffix in suffixes:
        if last + len(suffix) + 2 > _options[0].linewidth:
            parts.append(",\n" + " " * indent + suffix)
            last = indent + len(suffix)
        else:
            parts.append(", " + suffix)
            last += len(suffix) + 2
    return "".join(parts) + ")"
