"""Pictures on another grid by filters: rows of weights that are made on the host, and products with them."""

from collections.abc import Callable as _Callable
from collections.abc import Sequence as _Sequence
from math import floor as _floor

from pywebgpu.tensor import create as _create
from pywebgpu.tensor import memory_format as _memory_format
from pywebgpu.tensor import tensor as _tensor

_T = _tensor.Tensor
_Rows = list[list[float]]


def filtered(
    input: _T, sizes: _Sequence[int], scales: _Sequence[float], mode: str, *, corners: bool, antialias: bool
) -> _T:
    """A picture on another grid, by mode "bilinear" or "bicubic".

    antialias: where the grid is coarser, the filter is as much wider, so that each element of the input counts.
    Against torch: the same, of bytes too, which it rounds after each axis.
    """
    is_bytes = input.dtype.name == "uint8"
    image: _T = input.float() if input.dtype.itemsize <= 2 else input
    for axis in (1, 0):
        n, n_out, scale = input.shape[2 + axis], sizes[axis], scales[axis]
        if n_out == n and (corners or scale == 1):
            continue
        step = ((n - 1) / (n_out - 1) if n_out > 1 else 0.0) if corners else scale
        if antialias:
            rows = _wide_rows(n, n_out, step, mode)
        else:
            rows = _cubic_rows(n, n_out, step, 0.0 if corners else 0.5 * step - 0.5)
        bits = _whole(rows) if is_bytes else 0
        weights = _create.tensor(rows, dtype=image.dtype, device=input.device)
        image = weights @ image if axis == 0 else image @ weights.t()
        if is_bytes:
            image = (image * 0.5**bits + 0.5).floor().clamp(0, 255)
    order = _memory_format.suggested(input)
    filtered_image: _T = image.to(input.dtype)
    return (
        filtered_image
        if order is None
        else _memory_format.laid_out(filtered_image, _memory_format.of_order(filtered_image.shape, order))
    )


def _cubic(a: float) -> _Callable[[float], float]:
    """Keys' filter: two cubics, which meet 1 from the middle."""

    def weight(x: float) -> float:
        x = abs(x)
        if x <= 1:
            return ((a + 2) * x - (a + 3)) * x * x + 1
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a if x < 2 else 0.0

    return weight


_sharp = _cubic(-0.75)  # torch's, and most pictures' programs'
_FILTERS: dict[str, tuple[float, _Callable[[float], float]]] = {
    "bilinear": (1.0, lambda x: max(1 - abs(x), 0.0)),
    "bicubic": (2.0, _cubic(-0.5)),
}


def _cubic_rows(n: int, n_out: int, step: float, first: float) -> _Rows:
    """Four weights a row; what lies outside counts as the edge."""
    rows = []
    for index in range(n_out):
        low = _floor(first + index * step)
        t, row = first + index * step - low, [0.0] * n
        for tap, away in enumerate((1 + t, t, 1 - t, 2 - t)):
            row[min(max(low - 1 + tap, 0), n - 1)] += _sharp(away)
        rows.append(row)
    return rows


def _wide_rows(n: int, n_out: int, step: float, mode: str) -> _Rows:
    """Weights of all elements under a filter that is stretched by the step; their sum is 1."""
    reach, weight = _FILTERS[mode]
    stretch = max(step, 1.0)
    rows = []
    for index in range(n_out):
        center, row = step * (index + 0.5), [0.0] * n
        start = max(int(center - reach * stretch + 0.5), 0)
        end = min(int(center + reach * stretch + 0.5), n)
        weights = [weight((place - center + 0.5) / stretch) for place in range(start, end)]
        total = sum(weights)
        row[start:end] = [tap / total for tap in weights] if total else weights
        rows.append(row)
    return rows


def _whole(rows: _Rows) -> int:
    """Makes weights whole numbers of as many bits as 15 bits hold, and says how many."""
    largest = max(max(row) for row in rows)
    bits = next(bits for bits in range(23) if bits == 22 or int(0.5 + largest * 2 ** (bits + 1)) >= 1 << 15)
    for row in rows:
        row[:] = [float(int(w * 2**bits + (0.5 if w >= 0 else -0.5))) for w in row]
    return bits
