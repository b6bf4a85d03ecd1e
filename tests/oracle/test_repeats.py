"""The same call twice gives the same bits: nothing depends on the order in which threads finish."""

import pytest

from tests.cases import contraction, functional, indexing, losses, reduction, run
from tests.cases.case import Case
from tests.oracle import oracle

NAMES = {
    "sum_all_1000", "sum_rows_of_1000", "sum_columns_of_1000", "var_rows_of_1000", "softmax_rows_of_1000",
    "norm_default", "cumsum_rows_of_1000", "cumsum_of_long_rows_40003", "logsumexp_rows_of_1000", "several_folds",
    "mm_33_300_17", "mm_128_3_130", "bmm_65_63_66",
    "scatter_add_many", "index_add_many", "get_repeated_gradient", "embedding_rows", "sort_1000",
    "embedding_many_repeats", "embedding_tied", "index_add_repeated_rows", "index_add_sorted_in_parts",
    "conv2d_wide", "layer_norm_rows", "attention_long", "cross_entropy_many_classes",
}  # fmt: skip
TABLES = (reduction, contraction, indexing, functional, losses)
REPEATED = [case for table in TABLES for case in table.CASES if case.name in NAMES]


def test_names_are_found() -> None:
    assert {case.name for case in REPEATED} == NAMES


@pytest.mark.one_in(webgpu=2)
@oracle.parametrize(REPEATED)
def test_two_runs_give_the_same_bits(case: Case, device: str) -> None:
    oracle.skip_without_meaning(case, device)
    first, second = (run.run(case, oracle.library(), device) for _ in range(2))
    for one, other in zip((*first.outputs, *first.gradients), (*second.outputs, *second.gradients), strict=True):
        same = one.array.tobytes() == other.array.tobytes() if isinstance(one, run.Value) else one == other
        if not same:
            pytest.fail(f"{case.name}: {one} and then {other}")
