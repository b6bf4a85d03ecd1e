"""Gradients of gradients, for every case whose function is smooth enough to have some."""

from dataclasses import replace

import pytest

from tests.cases import contraction, functional, indexing, losses, movement, pointwise, reduction
from tests.cases.case import FLOATING, Case
from tests.oracle import oracle

TABLES = (pointwise, reduction, movement, indexing, contraction, functional, losses)
# No oracle: torch has no second derivative of some, among them linear_cross_entropy, and NaN where the others have a
# kink (0 times infinity).
UNKNOWN_TO_TORCH = {
    "functional_hardsigmoid",
    "indexing_scatter_reduce_prod_zeros_False",
    "indexing_scatter_reduce_prod_zeros_True",
    "pointwise_logit_eps",
    "reduction_norm_p_0.5",
    "reduction_norm_of_zeros",
}
LARGEST = 200  # elements an input: more of them show nothing new


def second_order() -> list[Case]:
    found = []
    for table in TABLES:
        area = table.__name__.rsplit(".", 1)[-1]
        for case in table.CASES:
            sizes = [size(item.shape) for item in case.inputs]
            smooth = case.grad and any(item.needs_grad and item.dtype in FLOATING for item in case.inputs)
            float32 = all(item.dtype not in ("float16", "bfloat16") for item in case.inputs)
            at_edges = "_edges" in case.name  # Kinks and infinities, where torch's own are not those of its first ones.
            if smooth and float32 and not at_edges and max(sizes) <= LARGEST:
                found.append(replace(case, name=f"{area}_{case.name}", tolerance="model"))
    return [case for case in found if case.name not in UNKNOWN_TO_TORCH and "linear_cross_entropy" not in case.name]


def size(shape: tuple[int, ...]) -> int:
    product = 1
    for n in shape:
        product *= n
    return product


@pytest.mark.one_in(2, webgpu=8)
@oracle.parametrize(second_order())
def test_second_derivatives_match_torch(case: Case, device: str) -> None:
    oracle.agree(case, device, order=2)
