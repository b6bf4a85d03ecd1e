"""Cases of the tables where nearly every value is larger than a binding: windows of eight elements."""

from dataclasses import replace
from typing import Any

import pytest

from pywebgpu import devices
from pywebgpu.errors import CompileError
from tests.cases.case import Case
from tests.cases.tables import AREAS, RAISING, TABLES
from tests.oracle import oracle

EVERY = 15  # one case in so many
BYTES = 32  # of a binding


@pytest.fixture
def small_bindings(monkeypatch: pytest.MonkeyPatch, device: str) -> Any:
    opened: Any = devices.open_device(device)
    if device == "cpu":
        pytest.skip("device cpu binds nothing")
    found = opened._gpu.limits
    alignment, bindings = found["min-storage-buffer-offset-alignment"], found["max-storage-buffers-per-shader-stage"]
    if alignment > BYTES:
        pytest.skip(f"{opened.adapter} lets bindings start at multiples of {alignment} bytes")
    limits = replace(opened.target.limits, binding_bytes=BYTES, offset_alignment=alignment, bindings=bindings)
    monkeypatch.setattr(opened, "target", replace(opened.target, limits=limits))
    return opened


@pytest.mark.one_in(webgpu=12)
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"{area}-{case.name}")
        for area in AREAS
        if area not in RAISING
        for case in TABLES[area][::EVERY]
    ],
)
def test_outputs_and_gradients_match_torch_in_windows(case: Case, device: str, small_bindings: Any) -> None:
    try:
        oracle.agree(case, device)
    except CompileError as error:
        assert "takes more bindings of 32 bytes" in str(error)  # noqa: PT017
