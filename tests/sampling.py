"""Which runs of tests the default run takes: those that stand for the others. `make test-all` takes all."""

from collections import Counter

import pytest

from tests import devices


def add_option(parser: pytest.Parser) -> None:
    parser.addoption("--sample", action="store_true", help="what the default run takes: see the marks one_in and long")


def take_sample(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves in `items` what `--sample` takes; all of them without it, or where -k picks tests by name."""
    if config.getoption("--sample") and not config.getoption("keyword"):
        kept = sampled(items)
        config.hook.pytest_deselected(items=list(set(items) - set(kept)))
        items[:] = kept


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
