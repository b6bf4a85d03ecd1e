"""Samples that run in a host without PyTorch: they go there as bytes, and what comes back is compared here.

Only operators that have a name in torch can go; those that PyTorch's tests wrap in functions of their own stay.
"""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.hosts import packing
from tests.hosts.host import HOSTS
from tests.opdb import gradients, operators, verdict
from tests.opdb.translate import paths
from tests.opdb.verdict import Difference, Verdict

INSIDE = Path(__file__).with_name("inside.py")
EACH = 400  # samples a run of the host: what a page or Node computes in a minute


class StayError(ValueError):
    """A value that has no plain form."""


def judge(host: str, names: list[str], most: int) -> dict[str, list[Verdict]]:
    """The verdicts of a host on the first samples of operators, in float32."""
    found: dict[str, list[Verdict]] = {}
    waiting: list[tuple[str, dict[str, Any], Any]] = []
    table = operators.entries()
    for name in names:
        for job, expected in _jobs(table[name], most):
            waiting.append((name, job, expected))
    for start in range(0, len(waiting), EACH):
        part = waiting[start : start + EACH]
        job = packing.packed({"device": HOSTS[host].device, "samples": [sample for _, sample, _ in part]})
        status, data = HOSTS[host].run([str(INSIDE), "job", "results"], {"job": job}, "results")
        assert status == 0, f"inside.py ended with status {status} in {host}"
        results = packing.unpacked(data, lambda dtype, shape, raw: np.frombuffer(raw, dtype).reshape(shape))
        for (name, _, expected), result in zip(part, results, strict=True):
            found.setdefault(name, []).append(_verdict(name, result, expected))
    return found


def _jobs(op: Any, most: int) -> Iterator[tuple[dict[str, Any], Any]]:
    path = paths().get(id(op.op))
    if path is None or op.name in operators.UNWRITTEN | operators.TIES | operators.SIGNS | operators.MISTAKEN:
        return
    if not op.supports_dtype(torch.float32, "cpu"):
        return
    smooth = bool(op.supports_autograd and torch.float32 in op.supported_backward_dtypes("cpu"))
    for sample in operators.samples(op, torch.float32, most, requires_grad=smooth):
        given = [(sample.input, *sample.args), sample.kwargs]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                job = {"path": path, "given": plain(given)}
                out = op.op(*given[0], **given[1])
                again = operators.repeats(operators.plain(out), operators.plain(op.op(*given[0], **given[1])))
                wanted = gradients.gradients(torch, given, out) if smooth else []
            except Exception:
                continue  # PyTorch refuses it, or it cannot go.
        if again:
            yield job, (gradients.leaves(out), wanted)


def plain(value: Any) -> Any:
    """A value as JSON and arrays. Raises StayError."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or value.is_complex() or value.dtype in (torch.bfloat16, torch.float64):
            raise StayError(value.dtype)
        return {"tensor": verdict.array(value), "requires_grad": value.requires_grad}
    if isinstance(value, torch.dtype | torch.memory_format | torch.layout):
        return {"name": str(value).removeprefix("torch.")}
    if isinstance(value, list | tuple):
        return {"list" if isinstance(value, list) else "tuple": [plain(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": {key: plain(item) for key, item in value.items()}}
    if value is None or isinstance(value, bool | int | float | str):
        return {"plain": value}
    raise StayError(type(value))


def _verdict(name: str, result: dict[str, Any], expected: tuple[list[Any], list[Any]]) -> Verdict:
    if "error" in result:
        return Verdict(verdict.REFUSED, f"{result['error']}: {result['text']}"[:200])
    try:
        found = result["outputs"], result["gradients"]
        for what, kind, ours, theirs in zip(
            ("value", "gradient"), ("reduction", "model"), found, expected, strict=True
        ):
            if len(ours) != len(theirs):
                raise Difference(f"{what}: {len(ours)} values for {len(theirs)}")
            for one, other in zip(ours, theirs, strict=True):
                _same(what, one, other, kind, name.partition("|")[0])
    except Difference as error:
        return Verdict(verdict.WRONG, str(error))
    return Verdict(verdict.PASSED)


def _same(what: str, found: Any, expected: Any, kind: str, name: str) -> None:
    if not isinstance(expected, torch.Tensor):
        return
    if found is None:
        if verdict.array(expected).any():
            raise Difference(f"{what}: none")
        return
    dtype, array = found["dtype"], found["values"]
    if dtype != str(expected.dtype).removeprefix("torch.") or array.shape != tuple(expected.shape):
        raise Difference(f"{what}: {dtype} of {array.shape} for {expected.dtype} of {tuple(expected.shape)}")
    verdict.close(what, array, verdict.array(expected), dtype, kind, name)
