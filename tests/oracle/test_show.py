"""repr of tensors, character by character."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import pywebgpu
from tests.cases.case import generator

SHAPES = (
    (),
    (1,),
    (7,),
    (0,),
    (2, 0),
    (0, 3),
    (100,),
    (1001,),
    (3, 4),
    (30, 40),
    (2, 3, 4),
    (10, 11, 12),
    (2, 600),
    (8, 8, 8, 8),
)
SCALES = (1.0, 1e-3, 1e-6, 1e3, 1e5, 1e9)
ODD = (
    [float("nan"), 1.0, 2.0], [float("inf"), 1.0], [float("nan")], [float("-inf"), 1.5], [0.0, 0.0], [-0.0, 1e-10],
    [1e10, 1.0], [float("nan"), float("inf"), 0.0], [1e20, 1e-20],
)  # fmt: skip
OPTIONS = (
    {"precision": 2}, {"threshold": 5}, {"edgeitems": 1, "threshold": 5}, {"linewidth": 40}, {"sci_mode": True},
    {"sci_mode": False}, {"profile": "short"}, {"profile": "full"},
)  # fmt: skip


def both(values: Any, **options: str) -> Iterator[str]:
    for library in (pywebgpu, torch):
        dtypes = {name: getattr(library, value) for name, value in options.items()}
        yield repr(library.tensor(values, device="cpu", **dtypes))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_tensors_print_as_torch_prints_them(shape: tuple[int, ...]) -> None:
    random = generator(f"show {shape}")
    for scale, dtype in itertools.product(SCALES, ("float32", "float64", "float16", "bfloat16")):
        mine, theirs = both(random.standard_normal(shape) * scale, dtype=dtype)
        assert mine == theirs
        mine, theirs = both(np.round(random.standard_normal(shape) * scale), dtype=dtype)
        assert mine == theirs
    for dtype in ("int64", "int32", "uint8", "bool"):
        mine, theirs = both(random.integers(0, 200, shape), dtype=dtype)
        assert mine == theirs


@pytest.mark.parametrize("values", ODD, ids=str)
def test_odd_numbers_print_as_torch_prints_them(values: list[float]) -> None:
    for nest in (values, [values, values]):
        mine, theirs = both(nest)
        assert mine == theirs


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_print_options_do_what_torchs_do(options: dict[str, Any]) -> None:
    random = generator(f"show {options}")
    before = torch._tensor_str.get_printoptions()
    try:
        torch.set_printoptions(**options)
        with pywebgpu.printoptions(**options):
            for shape in ((7,), (20,), (30, 40)):
                mine, theirs = both(random.standard_normal(shape) * 1e3)
                assert mine == theirs
    finally:
        torch.set_printoptions(**before)


def test_history_prints_as_torch_prints_it() -> None:
    for fn in (lambda x: x, lambda x: x + 1, lambda x: x * 2, lambda x: x.sin(), lambda x: x.detach()):
        mine, theirs = (repr(fn(library.ones(3, requires_grad=True, device="cpu"))) for library in (pywebgpu, torch))
        assert mine == theirs
    for library in (pywebgpu, torch):
        assert f"{library.tensor(1.5, device='cpu'):.3f}" == "1.500"
