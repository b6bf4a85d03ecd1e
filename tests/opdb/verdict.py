"""What became of a sample: passed, wrong, refused, absent, or not for a device; how values are held against PyTorch."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from pywebgpu.errors import PywebgpuError
from tests.cases.tolerance import tolerance
from tests.opdb.gradients import is_tensor, leaves
from tests.opdb.translate import AbsentError

PASSED, WRONG, REFUSED, ABSENT, LACKING = "passed", "wrong", "refused", "absent", "float64"
KINDS = (PASSED, WRONG, REFUSED, ABSENT, LACKING)
NO_DOUBLES = "WebGPU has no float64", "WebGPU has no complex128"  # what a sample is told that asks for them there
SECONDS = 120  # of processor time, for one sample
WAITED = 600  # by the clock, where nothing runs


@dataclass(frozen=True)
class Verdict:
    kind: str
    why: str = ""


class Difference(AssertionError):
    """What pywebgpu gives is not what PyTorch gives."""


def judged(run: Callable[[], None]) -> Verdict:
    """The verdict on one sample, by what its run raises."""
    try:
        with limited(SECONDS):
            run()
    except AbsentError as error:
        return Verdict(ABSENT, str(error))
    except Difference as error:
        return Verdict(WRONG, str(error))
    except (PywebgpuError, NotImplementedError) as error:
        return Verdict(LACKING if any(told in str(error) for told in NO_DOUBLES) else REFUSED, text(error))
    except AttributeError as error:
        return Verdict(ABSENT if "has no attribute" in str(error) else WRONG, text(error))
    except TypeError as error:
        unknown = "unexpected keyword" in str(error) or "positional argument" in str(error)
        return Verdict(ABSENT if unknown else REFUSED, text(error))
    except (RuntimeError, ValueError, IndexError) as error:
        return Verdict(REFUSED, text(error))
    except Exception as error:
        return Verdict(WRONG, text(error))
    return Verdict(PASSED)


def text(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:200]


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Ends what computes for longer, or waits for much longer, by a TimeoutError: a busy machine changes no verdict."""
    computed, begun = time.process_time(), time.monotonic()

    def stop(*_: object) -> None:
        if time.process_time() - computed >= seconds or time.monotonic() - begun >= WAITED:
            raise TimeoutError(f"not done after {seconds} s")
        signal.alarm(1)

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# Comparing


def array(tensor: Any) -> np.ndarray:
    plain = tensor.detach()
    plain = plain.to_dense() if "sparse" in str(plain.layout) else plain
    if isinstance(plain, torch.Tensor) and plain._is_zerotensor():
        plain = torch.zeros(plain.shape, dtype=plain.dtype)
    plain = plain.float() if str(plain.dtype) == "torch.bfloat16" else plain
    plain = plain.cfloat() if str(plain.dtype) == "torch.complex32" else plain
    return np.array(plain.resolve_conj().resolve_neg().numpy() if isinstance(plain, torch.Tensor) else plain.numpy())


def same(
    what: str, found: Any, expected: Any, *, values: bool = True, kind: str = "reduction", subject: str = ""
) -> None:
    """Both nests hold the same. Raises Difference. values: False compares shapes and dtypes alone."""
    ours, theirs = leaves(found), leaves(expected)
    if len(ours) != len(theirs):
        raise Difference(f"{what}: {len(ours)} values for {len(theirs)}")
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        place = what if len(theirs) == 1 else f"{what} {number}"
        kinds = {torch.sparse_coo: "is_sparse", torch.sparse_csr: "is_sparse_csr"}
        if isinstance(other, torch.Tensor) and getattr(one, kinds.get(other.layout, ""), False):
            one, other = one.to_dense(), other.to_dense()
        if isinstance(other, torch.Tensor) and other.layout is not torch.strided:
            raise AbsentError(f"tensors of {other.layout}")
        if is_tensor(other) != is_tensor(one):
            raise Difference(f"{place}: a {type(one).__name__} for a {type(other).__name__}")
        if is_tensor(other):
            _same_tensor(place, one, other, values=values, kind=kind, subject=subject)
        elif values and not _same_number(one, other):
            raise Difference(f"{place}: {one!r:.60} for {other!r:.60}")


def same_strides(found: Any, expected: Any) -> None:
    """Both nests hold tensors of the same strides, but for axes of one element. Raises Difference."""
    for ours, theirs in zip(leaves(found), leaves(expected), strict=True):
        if not isinstance(theirs, torch.Tensor) or theirs.layout is not torch.strided or not theirs.numel():
            continue
        own, other = ([step for step, n in zip(x.stride(), theirs.shape, strict=True) if n > 1] for x in (ours, theirs))
        if own != other:
            raise Difference(f"strides {tuple(ours.stride())} for {tuple(theirs.stride())} of {tuple(theirs.shape)}")


def _same_number(one: Any, other: Any) -> bool:
    if isinstance(other, float):
        return isinstance(one, float | int) and bool(np.isclose(one, other, rtol=1e-5, atol=1e-6, equal_nan=True))
    return str(one) == str(other) or bool(one == other)


def _same_tensor(place: str, found: Any, expected: torch.Tensor, *, values: bool, kind: str, subject: str) -> None:
    narrower = expected.dtype is torch.float64 and str(found.dtype) == "torch.float32" and found.device.type == "webgpu"
    if str(found.dtype) != str(expected.dtype) and not narrower:
        raise Difference(f"{place}: dtype {found.dtype} for {expected.dtype}")
    if tuple(found.shape) != tuple(expected.shape):
        raise Difference(f"{place}: shape {tuple(found.shape)} for {tuple(expected.shape)}")
    ours = array(found)  # Also where values do not count: computing them may fail.
    if values:
        close(place, ours, array(expected), str(found.dtype).removeprefix("torch."), kind, subject)
    if narrower:
        raise NotImplementedError(f"{place}: float32 for float64: {NO_DOUBLES[0]}")


def close(place: str, found: np.ndarray, expected: np.ndarray, dtype: str, kind: str, subject: str) -> None:
    if expected.dtype.kind == "c":  # Both parts as numbers of their own.
        found, expected = (np.stack([values.real, values.imag], -1) for values in (found, expected))
        dtype = str(expected.dtype)
    bound = tolerance(subject, kind, dtype, "").bound(expected) if expected.dtype.kind == "f" else np.zeros(())
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(found.astype("float64") - expected.astype("float64"))
        fine = (apart <= bound) | (found == expected) | ((found != found) & (expected != expected))
    if not fine.all():
        at = tuple(int(n) for n in np.argwhere(~fine)[0])
        share = f"{int((~fine).sum())} of {fine.size}"
        raise Difference(f"{place}: {found[at]!r} for {expected[at]!r} at {list(at)}, {share} differ")
