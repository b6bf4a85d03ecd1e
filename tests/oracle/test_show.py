"""repr of tensors, character by character."""

import itertools
from collections.abc import Callable, Iterator
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


NAMED: dict[str, Callable[[Any, Any], object]] = {
    "max": lambda torch, x: x.max(0),
    "sort": lambda torch, x: x.sort(descending=True),
    "topk": lambda torch, x: torch.topk(x, 2),
    "median": lambda torch, x: x.median(1),
    "nanmedian": lambda torch, x: x.nanmedian(1),
    "aminmax": lambda torch, x: x.aminmax(),
    "cummin": lambda torch, x: x.cummin(0),
    "frexp": lambda torch, x: torch.frexp(x),
    "histogram": lambda torch, x: (torch.histogram(x, 3), torch.histogram(x)),
    "slogdet": lambda torch, x: torch.linalg.slogdet(x[:, :2]),
    "pdist": lambda torch, x: torch.nn.functional.pdist(x.t()),
    "is one": lambda torch, x: isinstance(x.max(0), torch.return_types.max),
}


@pytest.mark.parametrize("fn", NAMED.values(), ids=NAMED)
def test_results_with_names_print_as_torch_prints_them(fn: Callable[[Any, Any], object]) -> None:
    mine, theirs = (
        repr(fn(library, library.tensor([[1.0, 4.0, 2.0], [3.0, 0.0, 5.0]], device="cpu")))
        for library in (pywebgpu, torch)
    )
    assert mine == theirs


@pytest.mark.filterwarnings("ignore:Sparse invariant")
@pytest.mark.parametrize("count", [0, 2, 40])
def test_sparse_tensors_print_as_torch_prints_them(count: int) -> None:
    for dtype in ("float32", "float64", "int64"):
        mine, theirs = (
            repr(library.sparse_coo_tensor(rows.repeat(2, 1), rows.to(getattr(library, dtype)), (50, 50)))
            for library in (pywebgpu, torch)
            for rows in [library.arange(count, device="cpu")]
        )
        assert mine == theirs


def test_history_prints_as_torch_prints_it() -> None:
    for fn in (lambda x: x, lambda x: x + 1, lambda x: x * 2, lambda x: x.sin(), lambda x: x.detach()):
        mine, theirs = (repr(fn(library.ones(3, requires_grad=True, device="cpu"))) for library in (pywebgpu, torch))
        assert mine == theirs
    for library in (pywebgpu, torch):
        assert f"{library.tensor(1.5, device='cpu'):.3f}" == "1.500"
