"""Values of which several share a word of memory on webgpu: what reads, moves and writes them, in many sizes."""

from collections.abc import Callable, Sequence
from typing import Any

from tests.cases.case import Case

SIZES = range(18)
FEW = (0, 1, 2, 3, 4, 5, 7, 8, 17)
DTYPES = {"float16": SIZES, "bool": SIZES, "bfloat16": FEW, "int16": FEW, "int8": FEW, "uint8": FEW}


def drawn(library: Any, dtype: str, count: int, seed: int = 0) -> Any:
    """Small whole numbers, which every format holds."""
    found = library.tensor([float((7 * at + 3 * seed) % 11 - 5) for at in range(count)])
    return (found.abs() if dtype == "uint8" else found).to(getattr(library, dtype))


def _written(x: Any, at: slice, value: Any) -> Any:
    y = x.clone()
    y[at] = value
    return y


def _in_steps(x: Any) -> Any:
    """Written in place, through views, and once more after it was computed."""
    y = x.clone()
    y.tolist()
    y[1:4] = x[:3].flip(0)[: y[1:4].numel()]
    y[::2] = y.flip(0)[::2].clone()
    y.tolist()
    y.view(-1)[-3:].fill_(1)
    return y


def _put(library: Any, x: Any) -> Any:
    half = x.numel() // 2
    return x.clone().index_copy_(0, library.arange(half), x[x.numel() - half :])


# What is done to n elements of any dtype.
MOVES: dict[str, Callable[[Any, Any], Any]] = {
    "clone": lambda library, x: x.clone(),
    "flip": lambda library, x: x.flip(0),
    "tail": lambda library, x: x[1:].clone(),
    "every_third": lambda library, x: x[2::3].clone(),
    "cat": lambda library, x: library.cat([x[3:], x, x[:2]]),
    "roll": lambda library, x: x.roll(1, 0),
    "columns": lambda library, x: x.repeat(3).view(3, x.numel()).t().contiguous(),
    "broadcast": lambda library, x: x[:, None].expand(-1, 3).clone(),
    "padded": lambda library, x: library.nn.functional.pad(x, (1, 2)),
    "slice_written": lambda library, x: _written(x, slice(1, 4), x[:3].flip(0)[: x[1:4].numel()]),
    "every_second_written": lambda library, x: _written(x, slice(None, None, 2), x[::2] == x[::2]),
    "written_in_place": lambda library, x: _in_steps(x),
    "rows": lambda library, x: x[library.arange(x.numel()) // 2],
    "where": lambda library, x: library.where(x > 0, x, x.flip(0)),
    "mask": lambda library, x: [x > 1, x.float() + 1],
    "sorted": lambda library, x: x.sort(0)[0],
    "put": _put,
    "largest": lambda library, x: x.repeat(3).view(3, -1).amax(1) if x.numel() else x,
    "any": lambda library, x: (x > 4).repeat(2).view(2, x.numel()).any(1),
}


def _rows(library: Any, x: Any) -> list[Any]:
    rows = x.repeat(3).view(3, -1) / 4
    return [rows.softmax(1), library.nn.functional.layer_norm(rows, rows.shape[1:]), rows.sum(1), rows.mean(0)]


def _products(library: Any, x: Any) -> list[Any]:
    rows = x.repeat(3).view(3, -1) / 4
    down, across = rows @ rows.t(), rows.t() @ rows
    return [down, across, library.relu(across + across[0]), (rows[None] @ rows.t()[None]).sum(2), across * 2 - 1]


def case(name: str, dtype: str, sizes: Sequence[int], function: Callable[[Any, Any], Any], tolerance: str) -> Case:
    def run(library: Any) -> list[Any]:
        return [function(library, drawn(library, dtype, n)) for n in sizes]

    return Case(f"{name}_{dtype}", run, grad=False, tolerance=tolerance)


CASES = [
    case(name, dtype, sizes, function, "pointwise")
    for dtype, sizes in DTYPES.items()
    for name, function in MOVES.items()
]
CASES += [
    case(name, dtype, (1, 2, 3, 4, 5, 8, 17, 64, 65), function, kind)
    for dtype in ("float16", "bfloat16")
    for name, function, kind in (("row_kernels", _rows, "reduction"), ("products", _products, "contraction"))
]
