"""`python -m tests.opdb.calls`: writes docs/calls.json, for the reference: calls of PyTorch's own samples, by name.

Only of operators and modules whose samples all pass here (docs/conformance.json): shapes and dtypes are then ours.
"""

import json
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import torch

from tests.opdb import modules, operators, report
from tools.docs import samples

WRITTEN = report.DOCS / "calls.json"
MOST, LOOKED_AT = 2, 12  # calls of a name; samples among which they are chosen


def main() -> int:
    passed = json.loads((report.DOCS / "conformance.json").read_text(encoding="utf-8"))["cpu/float32"]
    found: dict[str, list[str]] = {}
    for full, op in operators.entries().items():
        if not op.name.startswith("_") and _holds(passed["operators"].get(full)):
            found.setdefault(op.name, []).extend(_chosen(of_operator(op)))
    for name, info in modules.modules().items():
        if _holds(passed["modules"].get(name)):
            found[name] = _chosen(of_module(name, info))
    rows = [f"{json.dumps(name)}: {json.dumps(lines[:MOST])}" for name, lines in sorted(found.items()) if lines]
    WRITTEN.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
    print(f"{len(rows)} names in {WRITTEN}")
    return 0


def _holds(counts: dict[str, Any] | None) -> bool:
    return bool(counts and counts["passed"]) and not any(counts[bad] for bad in ("wrong", "refused", "absent"))


def of_operator(op: Any) -> Iterator[str]:
    for sample in operators.samples(op, torch.float32, LOOKED_AT, requires_grad=False):
        args = (sample.input, *sample.args)
        given = samples.called(args, sample.kwargs)  # Before: some write into their input.
        yield f"{op.name}{given} -> {samples.described(op.op(*args, **sample.kwargs))}"


def of_module(name: str, info: Any) -> Iterator[str]:
    given = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=True)
    for sample in given[:LOOKED_AT]:
        made, forward = sample.constructor_input, sample.forward_input
        if forward is not None:
            out = info.module_cls(*made.args, **made.kwargs)(*forward.args, **forward.kwargs)
            text = f"{name}{samples.called(made.args, made.kwargs)}{samples.called(forward.args, forward.kwargs)}"
            yield f"{text} -> {samples.described(out)}"


def _chosen(lines: Iterator[str]) -> list[str]:
    """The shortest lines, which are the simplest calls; of samples that PyTorch itself refuses, none."""
    found: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for line in lines:
                if len(line) <= samples.WIDTH and line not in found:
                    found.append(line)
        except (RuntimeError, TypeError, ValueError):
            return found
    return found[:1] + sorted(found[1:], key=len)[: MOST - 1]


if __name__ == "__main__":
    sys.exit(main())
