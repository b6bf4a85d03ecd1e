"""Every module in float16, in bfloat16 and under autocast: dtypes and values of all that can be seen are PyTorch's."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch as peer

from tests.cases import modules, run
from tests.cases.case import Case, arrays
from tests.oracle import oracle

WAYS = ("float16", "bfloat16", "autocast")
ROUGH = {"float16": 0.01, "bfloat16": 0.05, "autocast": 0.05}  # of the largest element: some units of rounding
UNLIKE = {
    "MultiheadAttention_added_mask": "PyTorch refuses a mask of float32 beside halves",
    "convolutional": "the variance of a few halves that are nearly equal is noise in both",
}
SLOW = 9  # a software adapter has one case in so many


@pytest.fixture
def _in_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    """`fill` is where a case has made its module."""
    fill = modules.fill

    def filled(torch: Any, module: Any, name: str) -> None:
        fill(torch, module, name)
        dtype = getattr(torch, "chosen_half", None)
        if dtype is not None:
            module.to(dtype)

    monkeypatch.setattr(modules, "fill", filled)


def seen(library: Any, case: Case, way: str, device: str) -> Any:
    """What a case gives in halves."""
    given = [library.from_numpy(array).to(device) for array in arrays(case)]
    if way == "autocast":
        with library.autocast("cpu" if library is peer else device, dtype=library.bfloat16):
            return case.fn(library, *given)
    half = getattr(library, way)
    given = [x.to(half) if x.is_floating_point() else x for x in given]
    library.chosen_half = half
    try:
        return case.fn(library, *given)
    finally:
        del library.chosen_half


def tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for name in sorted(value):
            yield from tensors(value[name])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors(item)
    elif value is None or hasattr(value, "requires_grad"):
        yield value


@pytest.mark.usefixtures("_in_halves")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.one_in(webgpu=5)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", modules.CASES, ids=lambda case: case.name)
def test_a_module_in_halves_is_torchs(case: Case, way: str, device: str) -> None:
    if device == "null":
        pytest.skip("device null computes no values")
    reason = next((why for name, why in UNLIKE.items() if case.name.startswith(name)), "")
    if reason:
        pytest.skip(reason)
    if device == "webgpu" and modules.CASES.index(case) % SLOW:
        pytest.skip("a software adapter takes long: it has some of them")
    if device == "webgpu" and way == "autocast":
        pytest.skip("PyTorch's lists for the CPU are not those of a GPU")
    library = oracle.library()
    wanted = list(tensors(seen(peer, case, way, "cpu")))
    with run.default_device(library, device) if device != "cpu" else contextlib.nullcontext():
        found = list(tensors(seen(library, case, way, device)))
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert (one is None) == (other is None)
        if other is None:
            continue
        assert str(one.dtype) == str(other.dtype)
        values, right = (np.array(x.detach().cpu().float().tolist()) for x in (one, other))
        size = np.abs(right).max(initial=0.0)
        np.testing.assert_allclose(values, right, rtol=0, atol=ROUGH[way] * size + 1e-6)
