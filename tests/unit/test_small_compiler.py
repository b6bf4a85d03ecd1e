"""docs/inside/compiler.py, a library in 300 lines, does what its page says: on NumPy and on a GPU."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

FILE = Path(__file__).parents[2] / "docs" / "inside" / "compiler.py"


@pytest.fixture(scope="module")
def small() -> ModuleType:
    spec = importlib.util.spec_from_file_location("small_compiler", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Its dataclasses ask for it.
    spec.loader.exec_module(module)
    return module


def opened(small: ModuleType, device: str) -> Any:
    return small.Gpu() if device == "webgpu" else small.Host()


def test_it_has_300_lines() -> None:
    assert len(FILE.read_text(encoding="utf-8").splitlines()) <= 300


def test_it_learns(small: ModuleType, device: str) -> None:
    losses = small.train(opened(small, device), steps=60)
    assert losses[0] == pytest.approx(1.3436, abs=1e-3)
    assert losses[-1] == pytest.approx(0.2569, abs=5e-3)


def test_gradients_are_differences(small: ModuleType) -> None:
    host, values = small.Host(), np.array([[0.3, 1.2], [0.7, 0.4]])

    def loss(array: Any) -> tuple[Any, Any]:
        x = small.leaf(host, array)
        y = small.matmul(small.permute(x, (1, 0)), small.pointwise("log", x))
        whole = small.total(small.total(small.pointwise("recip", small.add(y, small.constant(3.0))), 0), 0)
        return whole, small.gradients(whole, [x])[0]

    whole, gradient = loss(values)
    host.run(small.compile_graph([whole, gradient]))
    for at in np.ndindex(2, 2):
        step = np.zeros((2, 2))
        step[at] = 1e-2
        above, below = loss(values + step)[0], loss(values - step)[0]
        host.run(small.compile_graph([above, below]))
        assert float(gradient.value[at]) == pytest.approx(float(above.value - below.value) / 2e-2, rel=2e-2, abs=1e-3)


def test_what_lies_between_sums_takes_no_kernel(small: ModuleType) -> None:
    host = small.Host()
    a, b = small.leaf(host, np.ones((3, 4))), small.leaf(host, np.ones((4, 5)))
    kernels = small.compile_graph([small.pointwise("tanh", small.add(small.matmul(a, b), small.constant(1.0)))])
    assert [kernel.output.op for kernel in kernels] == ["sum", "tanh"]
    assert kernels[0].inputs == [a, b]
