"""Which runs of tests the default run takes: those that stand for the others. `make test-all` takes all."""

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

import hypothesis
import pytest

from tests import devices

EXAMPLES, FEWER = 80, 25  # random ones of a test of Hypothesis, and those of a sample where a CPU plays the GPU
Case = TypeVar("Case")


def add_option(parser: pytest.Parser) -> None:
    parser.addoption("--sample", action="store_true", help="what the default run takes: see the marks one_in and long")


def take_sample(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves in `items` what `--sample` takes; all of them without it, or where -k picks tests by name."""
    if is_sample(config):
        kept = sampled(items)
        config.hook.pytest_deselected(items=list(set(items) - set(kept)))
        items[:] = kept


def is_sample(config: pytest.Config) -> bool:
    """Whether this run takes what stands for the rest: not where -k picks tests by name."""
    return bool(config.getoption("--sample") and not config.getoption("keyword"))


def part(config: pytest.Config, cases: Sequence[Case], n: int, start: int = 0) -> list[Case]:
    """What a test takes of cases that share one process: in a sample one in n, from `start` on; else all.

    Another `start` on each host gives each of them cases of its own.
    """
    return list(cases[start::n] if is_sample(config) else cases)


def set_examples(config: pytest.Config, names: Sequence[str]) -> None:
    """How many examples tests/fuzz/steps.py draws. names: the devices of this run."""
    is_slow = is_sample(config) and "webgpu" in names and devices.is_software()
    hypothesis.settings.register_profile("pywebgpu", max_examples=FEWER if is_slow else EXAMPLES)
    hypothesis.settings.load_profile("pywebgpu")


def sampled(items: list[pytest.Item]) -> list[pytest.Item]:
    """The runs that stand for the others: none of a test with the mark `long`, and of one with `one_in` one run in n.

    `one_in(n)` counts on every device, `one_in(webgpu=n)` where a CPU plays the GPU: there, most runs compile kernels
    of their own. With `words=True` the first run of each first word of its name stays too.
    """
    seen: Counter[str] = Counter()
    words: set[tuple[str, str]] = set()
    kept = []
    for item in items:
        if item.get_closest_marker("long"):
            continue
        mark = item.get_closest_marker("one_in")
        test, _, name = item.nodeid.partition("[")
        word = test, name.split("_")[0]
        is_new_word = mark is not None and mark.kwargs.get("words", False) and word not in words
        if mark is None or is_new_word or seen[test] % share(mark, device_of(item)) == 0:
            kept.append(item)
        words.add(word)
        seen[test] += 1
    return kept


def share(mark: pytest.Mark, device: str | None) -> int:
    """Of how many runs one is taken."""
    n: int = mark.args[0] if mark.args else 1
    is_slow = device == "webgpu" and "webgpu" in mark.kwargs and devices.is_software()
    return n * mark.kwargs["webgpu"] if is_slow else n


def device_of(item: pytest.Item) -> str | None:
    callspec = getattr(item, "callspec", None)
    device: str | None = callspec.params.get("device") if callspec else None
    return device
