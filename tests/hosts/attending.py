"""Computes calls of tests/cases/attention.py by kernels, with gradients: `attending.py DEVICE RESULTS CALL...`."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from pywebgpu.kernels.templates import attention
from tests.cases.attention import CALLS, outcome

NAMES = (
    "causal", "bool_mask", "added_mask", "nan", "groups_causal_dropout", "dropout_by_fours", "odd_widths", "half",
    "half_odd", "window_causal_groups_dropout", "window_lower_right", "window_hides_first_rows",
)  # fmt: skip


def main(name: str, results: str, *calls: str) -> None:
    attention.STORED = 0  # Adapters that are a CPU have kernels for it, too.
    found = {
        call: [one.float().reshape(-1).tolist() for one in outcome(CALLS[call], name, fused=True)] for call in calls
    }
    Path(results).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
