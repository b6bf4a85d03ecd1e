"""The gradient of every op that has one, against differences of its values in float64."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu import ops
from pywebgpu.ir.graph import Movement, Node, Pointwise, Reduction, Structural
from pywebgpu.ops import contraction, indexing, packing, pointwise
from pywebgpu.tensor.apply import apply

# Their gradient is not that of their value: what a write leaves behind, and steps whose gradient is 0 by definition.
HISTORY = {"graft", "overwrite"}
WITHOUT_A_GRADIENT_IN_TORCH = {"floor_divide"}

MOVEMENTS: dict[str, list[dict[str, Any]]] = {
    "reshape": [{"shape": (3, 2)}],
    "permute": [{"order": (1, 0)}],
    "expand": [{"shape": (2, 3)}],
    "slice": [{"starts": (0, 1), "sizes": (2, 1), "steps": (1, 2)}],
    "flip": [{"axes": (1,)}, {"axes": (0, 1)}],
    "pad": [{"shape": (4, 8), "starts": (1, 0), "steps": (2, 3), "value": 5.0}],
    "window": [{"axis": 1, "size": 2, "step": 1, "dilation": 1}, {"axis": 1, "size": 2, "step": 2, "dilation": 2}],
    "unwindow": [{"axis": 0, "length": 5, "step": 2, "dilation": 1}],
    "barrier": [{"token": 1}],
    "alias": [{}],
    "piece": [{"start": 64, "shape": (2, 3)}, {"start": 0, "shape": ()}],
}


ROWS = np.array([2, 0, 2])


def rows() -> Any:
    return torch.from_numpy(ROWS).to("cpu")


def scatter(mode: str) -> Callable[[Any, Any], Any]:
    return lambda base, source: apply(lambda b, i, s: indexing.scatter(b, i, s, mode=mode), base, rows(), source)


STRUCTURALS: dict[str, list[tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]]] = {
    "part": [(lambda x: apply(lambda n: packing.part(n, start=64, shape=(2, 3)), x), ((128,),))],
    "matmul": [(lambda a, b: apply(contraction.matmul, a, b), ((2, 3, 4), (2, 4, 2)))],
    "take": [(lambda x: apply(indexing.take, x, rows()), ((3, 2),))],
    "scatter": [(scatter(mode), ((4, 2), (3, 2))) for mode in ("add", "prod", "max", "min")],
    "cat": [(lambda a, b: apply(lambda m, n: indexing.cat(m, n, axis=1), a, b), ((2, 1), (2, 3)))],
    "write_slice": [
        (
            lambda a, b: apply(lambda m, n: indexing.write_slice(m, n, starts=(1, 0), steps=(1, 2)), a, b),
            ((3, 4), (2, 2)),
        )
    ],
    "pack": [
        (
            lambda a, b, clean=clean: apply(lambda *n: packing.pack(*n, starts=(0, 64), size=128, clean=clean), a, b),
            ((3, 4), (2,)),
        )
        for clean in (False, True)
    ],
    "scan": [
        (lambda x, mode=mode: apply(lambda n: indexing.scan(n, mode=mode), x), ((2, 4),))
        for mode in ("add", "prod", "logaddexp")
    ],
}
# No gradient flows, or the lowering alone makes them, after gradients were taken.
NOT_DIFFERENTIATED = {
    "argsort", "sort_block", "sort_merge", "scatter_sorted", "scatter_blocks", "scatter_carried", "offset_slice",
    "partial_matmul", "sum_rows", "scatter_few", "scan_blocks", "fold_sorted",
}  # fmt: skip


def leaf(*shape: int, low: float = -2.0, high: float = 2.0, seed: int = 0) -> Any:
    values = np.random.default_rng(seed).uniform(low, high, shape)
    return torch.from_numpy(values).to("cpu").requires_grad_()


def of_kind(kind: type) -> list[Any]:
    return [pytest.param(op, id=op.name) for op in ops.ALL if isinstance(op, kind)]


def assert_gradient(function: Callable[..., Any], *leaves: Any) -> None:
    assert torch.autograd.gradcheck(function, leaves)


@pytest.mark.parametrize("op", of_kind(Pointwise))
def test_pointwise_gradients_are_slopes(op: Pointwise) -> None:
    if op.name in HISTORY | WITHOUT_A_GRADIENT_IN_TORCH or not any(op.vjp):
        assert op.name in HISTORY | WITHOUT_A_GRADIENT_IN_TORCH or all(rule is None for rule in op.vjp)
        return
    low, high = op.domain
    count = len(op.vjp)
    leaves = [leaf(2, 3, low=low, high=high, seed=i) for i in range(count)]
    if op is pointwise.where:
        condition = torch.from_numpy(np.array([[True, False, True], [False, True, True]])).to("cpu")
        assert_gradient(lambda a, b: apply(op, condition, a, b), *leaves[1:])
    elif op is pointwise.cast:
        assert_gradient(lambda a: apply(lambda n: op(n, dtype=torch.float64), a), *leaves)
    else:
        assert_gradient(lambda *given: apply(op, *given), *leaves)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("op", of_kind(Reduction))
def test_reduction_gradients_are_slopes(op: Reduction, axes: tuple[int, ...]) -> None:
    x = leaf(2, 3, 2)
    if op.vjp is None:
        assert not apply(lambda n: op(n, axes=axes), x).requires_grad
    else:
        assert_gradient(lambda given: apply(lambda n: op(n, axes=axes), given), x)


@pytest.mark.parametrize("op", of_kind(Movement))
def test_movement_gradients_are_slopes(op: Movement) -> None:
    shapes = {"expand": (1, 3), "piece": (128,)}
    for attrs in MOVEMENTS[op.name]:
        x = leaf(*shapes.get(op.name, (2, 3)))

        def move(node: Node, attrs: dict[str, Any] = attrs) -> Node:
            return op(node, **attrs)

        assert_gradient(lambda given, move=move: apply(move, given), x)


@pytest.mark.parametrize("op", of_kind(Structural))
def test_structural_gradients_are_slopes(op: Structural) -> None:
    if op.name in NOT_DIFFERENTIATED:
        assert not isinstance(op.vjp, tuple) or not any(op.vjp)
        return
    for function, shapes in STRUCTURALS[op.name]:
        assert_gradient(function, *(leaf(*shape, low=0.5, seed=i) for i, shape in enumerate(shapes)))


def test_the_tables_name_every_op_with_arguments() -> None:
    assert set(MOVEMENTS) == {op.name for op in ops.ALL if isinstance(op, Movement)}
