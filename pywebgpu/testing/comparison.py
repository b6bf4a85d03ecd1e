"""assert_close: whether two nests of tensors, arrays and numbers are close, and where they are not.

A nest is taken apart before anything is compared, so what no comparison is for is said first, as in PyTorch.
"""

from __future__ import annotations

import cmath
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pywebgpu import dtypes
from pywebgpu.dtypes import DType
from pywebgpu.support import closed_types
from pywebgpu.tensor import create, functions
from pywebgpu.tensor.tensor import Tensor
from pywebgpu.testing import mismatch
from pywebgpu.testing.mismatch import Number, Tolerance

if TYPE_CHECKING:
    from pywebgpu.sparse import SparseTensor
    from pywebgpu.sparse.compressed import SparseCompressed

Message = str | Callable[[str], str] | None
Place = tuple[object, ...]  # the keys and positions that lead to a value of a nest

# dtype: rtol, atol. All others have to be equal.
TOLERANCES = {
    "float16": (0.001, 1e-5), "bfloat16": (0.016, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex32": (0.001, 1e-5), "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip
OLDER = {"float16": (1e-3, 1e-3), "float32": (1e-4, 1e-5), "float64": (1e-5, 1e-8)}  # of assert_allclose
NUMBERS = {int: "int64", float: "float64", complex: "complex128"}


@dataclass(frozen=True, slots=True)
class Rules:
    """What assert_close was told."""

    rtol: float | None
    atol: float | None
    equal_nan: bool
    allow_subclasses: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool


class Mismatch(Exception):
    """What is wrong, and where in the nest; the caller gets it as an error of another kind."""

    def __init__(self, kind: type[Exception], text: str, place: Place = ()) -> None:
        super().__init__(text)
        self.kind, self.text, self.place = kind, text, place

    def error(self, msg: Message = None) -> Exception:
        if isinstance(msg, str):
            return self.kind(msg)
        where = "".join(f"[{key!r}]" for key in self.place)
        text = f"{self.text}\n\nThe failure occurred for item {where}" if where else self.text
        return self.kind(msg(text) if msg else text)


Pair = Callable[[], None]  # Compares two values; raises Mismatch.


def assert_close(
    actual: object,
    expected: object,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Message = None,
) -> None:
    """Raises AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere.

    Both may be tensors, arrays, numbers, or sequences and mappings of these. Tolerances that are not given follow from
    the dtype. msg: said instead, or a function that makes it of what would be said.
    """
    __tracebackhide__ = True
    rules = Rules(rtol, atol, equal_nan, allow_subclasses, check_device, check_dtype, check_layout, check_stride)
    try:
        comparisons = list(pairs(actual, expected, rules, ()))
    except Mismatch as mismatch:
        raise mismatch.error() from None
    try:
        for compare in comparisons:
            compare()
    except Mismatch as mismatch:
        raise mismatch.error(msg) from None


def assert_allclose(
    actual: object,
    expected: object,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """The older form of assert_close: what is no tensor becomes one, and dtypes may differ."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. Please "
        "use `torch.testing.assert_close()` instead.",
        FutureWarning,
        stacklevel=2,
    )
    first = actual if isinstance(actual, Tensor) else create.tensor(actual)
    other = expected if isinstance(expected, Tensor) else create.tensor(expected, dtype=first.dtype)
    if rtol is None and atol is None:
        rtol, atol = default_tolerances(first.dtype, other.dtype, table=OLDER)
    assert_close(first, other, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


def default_tolerances(*compared: DType, table: Mapping[str, tuple[float, float]] = TOLERANCES) -> tuple[float, float]:
    """The loosest rtol and atol of these dtypes."""
    known = [table.get(dtype.name, (0.0, 0.0)) for dtype in compared]
    return max(rtol for rtol, _ in known), max(atol for _, atol in known)


def pairs(actual: object, expected: object, rules: Rules, place: Place) -> Iterator[Pair]:
    """What has to be compared of two nests, in their order. Raises Mismatch where they have different forms."""
    if _is_sequence(actual) and _is_sequence(expected):
        first, other = cast(Sequence[object], actual), cast(Sequence[object], expected)
        if len(first) != len(other):
            text = f"The length of the sequences mismatch: {len(first)} != {len(other)}"
            raise Mismatch(AssertionError, text, place)
        for index in range(len(first)):
            yield from pairs(first[index], other[index], rules, (*place, index))
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        for key in _keys(actual, expected, place):
            yield from pairs(actual[key], expected[key], rules, (*place, key))
    else:
        yield _pair(actual, expected, rules, place)


def _is_sequence(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _keys(actual: Mapping[str, object], expected: Mapping[str, object], place: Place) -> list[str]:
    own, wanted = set(actual), set(expected)
    if own != wanted:
        text = (
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {sorted(wanted - own)}\n"
            f"Additional keys in the actual mapping: {sorted(own - wanted)}"
        )
        raise Mismatch(AssertionError, text, place)
    keys = list(actual)
    with suppress(TypeError):
        keys.sort()
    return keys


def _pair(actual: object, expected: object, rules: Rules, place: Place) -> Pair:
    """What compares two values that hold no others."""
    if actual is None or expected is None:
        return lambda: _same(actual, expected, f"None mismatch: {actual} is not {expected}", place)
    first, other = _plain(actual), _plain(expected)
    if isinstance(first, bool) and isinstance(other, bool):
        return lambda: _same(first, other, f"Booleans mismatch: {first} is not {other}", place)
    if isinstance(first, int | float | complex) and isinstance(other, int | float | complex):
        if isinstance(first, bool) or isinstance(other, bool):
            kinds = f"{type(actual).__name__}(): {actual} and {type(expected).__name__}(): {expected}"
            raise RuntimeError(f"assert_close: a bool has no tolerance beside a number, got {kinds}")
        named = (dtypes.BY_NAME[next(NUMBERS[kind] for kind in NUMBERS if isinstance(n, kind))] for n in (first, other))
        tolerance = _tolerance(rules, *named, place=place)
        return lambda: _compare_numbers(first, other, tolerance, rules, place)
    tensors = _tensors(actual, expected, rules)
    if tensors is None:
        kinds = f"{type(actual)} and {type(expected)}"
        raise Mismatch(TypeError, f"No comparison pair was able to handle inputs of type {kinds}.", place)
    a, b = tensors
    tolerance = _tolerance(rules, a.dtype, b.dtype, place=place)
    return lambda: _compare_tensors(a, b, tolerance, rules, place)


def _plain(value: object) -> object:
    """Of a number of NumPy's, that of Python."""
    item = getattr(value, "item", None)
    is_one = type(value).__module__ == "numpy" and callable(item) and not hasattr(value, "__len__")
    return item() if item is not None and is_one else value


def _same(actual: object, expected: object, text: str, place: Place) -> None:
    if actual is not expected:
        raise Mismatch(AssertionError, text, place)


def _tolerance(rules: Rules, *compared: DType, place: Place) -> Tolerance:
    if (rules.rtol is None) != (rules.atol is None):
        missing = "rtol" if rules.rtol is None else "atol"
        text = f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}."
        raise Mismatch(ValueError, text, place)
    if rules.rtol is not None and rules.atol is not None:
        return Tolerance(rules.rtol, rules.atol)
    return Tolerance(*default_tolerances(*compared))


def _compare_numbers(actual: Number, expected: Number, tolerance: Tolerance, rules: Rules, place: Place) -> None:
    if rules.check_dtype and type(actual) is not type(expected):
        text = f"The (d)types do not match: {type(actual)} != {type(expected)}."
        raise Mismatch(AssertionError, text, place)
    if actual == expected or (rules.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
        return
    difference = abs(actual - expected)
    if not (cmath.isfinite(difference) and difference <= tolerance.atol + tolerance.rtol * abs(expected)):
        raise Mismatch(AssertionError, mismatch.of_numbers(actual, expected, tolerance), place)


def _tensors(actual: object, expected: object, rules: Rules) -> tuple[Tensor, Tensor] | None:
    """Both as tensors; None where they are not of related types, or no tensor can be made of them."""
    if not (isinstance(actual, type(expected)) or isinstance(expected, type(actual))):
        return None
    if not rules.allow_subclasses and type(actual) is not type(expected):
        return None
    try:
        first, other = (x if isinstance(x, Tensor) else create.as_tensor(x) for x in (actual, expected))
    except Exception:  # Whatever an object answers when it is asked for its elements.
        return None
    return first, other


def _compare_tensors(actual: Tensor, expected: Tensor, tolerance: Tolerance, rules: Rules, place: Place) -> None:
    actual, expected = actual.detach(), expected.detach()
    strided = actual.layout is expected.layout is closed_types.strided
    checks: list[tuple[str, bool, object, object]] = [
        ("shape", True, actual.shape, expected.shape),
        ("layout", rules.check_layout, actual.layout, expected.layout),
        ("device", rules.check_device, actual.device, expected.device),
        ("dtype", rules.check_dtype, actual.dtype, expected.dtype),
    ]
    if strided:
        checks.insert(2, ("stride()", rules.check_stride, actual.stride(), expected.stride()))
    for name, is_checked, first, other in checks:
        if is_checked and first != other:
            text = f"The values for attribute '{name}' do not match: {first} != {other}."
            raise Mismatch(AssertionError, text, place)
    if actual.is_meta or expected.is_meta or "null" in (actual.device.type, expected.device.type):
        return
    for first, other, exact, subject in _members(*_alike(actual, expected), place):
        _compare_values(first, other, Tolerance(0, 0) if exact else tolerance, rules, subject, place)


def _alike(actual: Tensor, expected: Tensor) -> tuple[Tensor, Tensor]:
    """Both on one device, of one dtype and layout."""
    if actual.device != expected.device:
        actual, expected = actual.cpu(), expected.cpu()
    if actual.dtype != expected.dtype:
        wide = [dtypes.int64 if x.dtype.name.startswith("uint") and x.dtype.itemsize > 1 else x.dtype
                for x in (actual, expected)]  # fmt: skip
        common = functions.promote_types(*wide)
        actual, expected = actual.to(common), expected.to(common)
    if actual.layout != expected.layout:
        actual, expected = (x if x.layout is closed_types.strided else x.to_dense() for x in (actual, expected))
    return actual, expected


def _members(actual: Tensor, expected: Tensor, place: Place) -> Iterator[tuple[Tensor, Tensor, bool, str]]:
    """The strided tensors that two alike consist of; whether each has to be equal, and its name."""
    if actual.layout is closed_types.sparse_coo:
        first, other = cast("SparseTensor", actual), cast("SparseTensor", expected)
        _same_count("sparse dimensions in sparse COO tensors", first.sparse_dim(), other.sparse_dim(), place)
        _same_count("specified values in sparse COO tensors", first._nnz(), other._nnz(), place)
        yield first._indices(), other._indices(), True, "Sparse COO indices"
        yield first._values(), other._values(), False, "Sparse COO values"
    elif actual.layout is not closed_types.strided:
        a, b = cast("SparseCompressed", actual), cast("SparseCompressed", expected)
        name, kind = str(a.layout).rpartition("_")[2].upper(), a.kind
        _same_count(f"specified values in sparse {name} tensors", a._nnz(), b._nnz(), place)
        yield a.compressed, b.compressed, True, f"Sparse {name} {kind.compressed}"
        yield a.plain, b.plain, True, f"Sparse {name} {kind.plain}"
        yield a.values(), b.values(), False, f"Sparse {name} values"
    else:
        yield actual, expected, False, ""


def _same_count(what: str, actual: int, expected: int, place: Place) -> None:
    if actual != expected:
        raise Mismatch(AssertionError, f"The number of {what} does not match: {actual} != {expected}", place)


def _compare_values(
    actual: Tensor, expected: Tensor, tolerance: Tolerance, rules: Rules, subject: str, place: Place
) -> None:
    matches = actual.isclose(expected, rtol=tolerance.rtol, atol=tolerance.atol, equal_nan=rules.equal_nan)
    if matches.all().item():
        return
    if actual.dim():
        text = mismatch.of_tensors(actual, expected, matches, tolerance, subject or "Tensor-likes")
    else:
        text = mismatch.of_numbers(actual.item(), expected.item(), tolerance, subject or "Scalars")
    raise Mismatch(AssertionError, text, place)
