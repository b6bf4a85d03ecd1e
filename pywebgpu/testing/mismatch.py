"""What assert_close says of two values that differ: PyTorch's words."""

from __future__ import annotations

from dataclasses import dataclass

from pywebgpu import dtypes
from pywebgpu.dtypes import Kind
from pywebgpu.tensor.tensor import Tensor

Number = bool | int | float | complex


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far two numbers may be apart: atol + rtol * |expected|."""

    rtol: float
    atol: float

    @property
    def is_exact(self) -> bool:
        return self.rtol == 0 and self.atol == 0

    def allowed(self, bound: float) -> str:
        return "" if self.is_exact else f" (up to {bound} allowed)"


def of_numbers(actual: Number, expected: Number, tolerance: Tolerance, subject: str = "Scalars") -> str:
    """Of two numbers that are not close."""
    absolute = abs(actual - expected)
    relative = float("inf") if expected == 0 else absolute / abs(expected)
    return (
        f"{_head(subject, tolerance)}Expected {expected} but got {actual}.\n"
        f"Absolute difference: {absolute}{tolerance.allowed(tolerance.atol)}\n"
        f"Relative difference: {relative}{tolerance.allowed(tolerance.rtol)}"
    )


def of_tensors(
    actual: Tensor, expected: Tensor, matches: Tensor, tolerance: Tolerance, subject: str = "Tensor-likes"
) -> str:
    """Of two tensors of one shape that are not close everywhere; matches: where they are."""
    total = matches.numel()
    wrong = total - int(matches.sum().item())
    if actual.dtype.kind in (Kind.INT, Kind.BOOL):
        actual, expected = (part.to("cpu", dtypes.int64) for part in (actual, expected))  # Differences take 33 bits.
        matches = matches.cpu()
    absolute = (actual - expected).abs().masked_fill(matches, 0)
    relative = (absolute / expected.abs()).masked_fill(matches, 0)
    return (
        f"{_head(subject, tolerance)}Mismatched elements: {wrong} / {total} ({wrong / total:.1%})\n"
        f"{_greatest('absolute', absolute)}{tolerance.allowed(tolerance.atol)}\n"
        f"{_greatest('relative', relative)}{tolerance.allowed(tolerance.rtol)}"
    )


def _head(subject: str, tolerance: Tolerance) -> str:
    return f"{subject} are not {'equal' if tolerance.is_exact else 'close'}!\n\n"


def _greatest(kind: str, differences: Tensor) -> str:
    """Which is the largest, and its index."""
    largest, position = differences.flatten().max(0)
    rest, index = int(position.item()), []
    for size in reversed(differences.shape):
        rest, remainder = divmod(rest, size)
        index.append(remainder)
    return f"Greatest {kind} difference: {largest.item()} at index {tuple(reversed(index))}"
