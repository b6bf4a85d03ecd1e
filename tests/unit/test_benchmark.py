"""torch.utils.benchmark: tables of given times, letter by letter as PyTorch's, and statements that are computed."""

import re
from typing import Any

import pytest
import torch.utils.benchmark as theirs

import pywebgpu
import pywebgpu.utils.benchmark as ours
from pywebgpu.runtime import executor

TIMES = {("a", "[1, 64]", 1): [2e-5, 2.2e-5, 2.1e-5, 4e-5], ("b", "[1, 64]", 1): [3.1e-6] * 4,
         ("a", "[64, 64]", 1): [1.9e-5] * 5, ("b", "[64, 64]", 4): [3e-4, 3.1e-4]}  # fmt: skip


def measured(library: Any, env: str | None = None) -> list[Any]:
    return [
        library.Measurement(2, [time * 2 for time in times],
                            library.TaskSpec("f(x)", "pass", "", "Dot", row, column, env, threads))
        for (column, row, threads), times in TIMES.items()
    ]  # fmt: skip


@pytest.mark.parametrize("change", [None, "trim_significant_figures", "highlight_warnings", "colorize"])
def test_tables_are_torchs(change: str | None) -> None:
    texts = []
    for library in (theirs, ours):
        table = library.Compare(measured(library, "new") + measured(library, "old"))  # type: ignore[attr-defined]
        if change:
            getattr(table, change)()
        texts.append(str(table))
    assert texts[1] == texts[0]


def test_measurements_are_torchs() -> None:
    for one, other in zip(measured(ours), measured(theirs), strict=True):
        assert repr(one).partition("\n")[2] == repr(other).partition("\n")[2]
        for name in ("median", "mean", "iqr", "significant_figures", "has_warnings", "title", "as_row_name"):
            assert getattr(one, name) == pytest.approx(getattr(other, name)), name


def test_what_a_statement_makes_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    run = executor._run
    monkeypatch.setattr(executor, "_run", lambda *args, **options: runs.append(1) or run(*args, **options))
    timer = ours.Timer("x + n", setup="n = 2", globals={"x": pywebgpu.ones(3)})
    found = timer.timeit(5)
    assert len(runs) >= 5
    assert re.search(r"x \+ n\nsetup: n = 2\n  [\d.]+ [mu]?s\n  1 measurement, 5 runs , 1 thread", repr(found))
