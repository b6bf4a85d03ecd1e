"""Damaged files are loaded or refused: a short run of `python -m tests fuzz-files`, and that the run would tell."""

import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import files, mutations

COUNT = 3000
SEED = 20  # No other run has it, so that more files are tried in all.


def test_damaged_files_are_loaded_or_refused() -> None:
    report = files.run(COUNT, SEED)
    assert not report.failures, str(report)
    assert sum((report.loaded + report.refused).values()) == COUNT
    for name in files.FORMATS:  # Damage that is always found, or never, tests little.
        assert report.loaded[name] > 5, str(report)
        assert report.refused[name] > 50, str(report)


@pytest.fixture(scope="module")
def whole() -> files.Files:
    return files.whole_files()


def test_whole_files_are_loaded(whole: files.Files, tmp_path: Path) -> None:
    for name, (load, _) in files.FORMATS.items():
        for data in [tuple(whole[name])] if name == "export" else whole[name]:
            load(data, tmp_path)


def test_a_number_is_always_the_same_file(whole: files.Files) -> None:
    for name in files.FORMATS:
        assert files.damaged(name, whole, random.Random(7)) == files.damaged(name, whole, random.Random(7))


def hang(data: Any, folder: Path) -> None:
    while True:
        time.sleep(0) if not data else sum(range(1000))


def fill_memory(data: Any, folder: Path) -> None:
    bytearray(2 * files.MAX_BYTES)


def raise_something(data: Any, folder: Path) -> None:
    raise KeyError("undocumented")


@pytest.mark.parametrize(
    ("load", "says"),
    [(hang, "TooSlow"), (fill_memory, "MemoryError"), (raise_something, "KeyError")],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_what_may_not_happen_is_told(load: files.Loader, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of its own, since memory is limited for good."""
    context = files.multiprocessing.get_context("spawn")
    results, current = context.Queue(), context.Value("q", 0)
    process = context.Process(target=broken_work, args=(load, results, current))
    process.start()
    report = results.get(timeout=60)
    process.join()
    assert [failure.split(": ")[1] for failure in report.failures] == [says]


def broken_work(load: files.Loader, results: Any, current: Any) -> None:
    files.FORMATS["cache"] = (load, ())
    number = list(files.FORMATS).index("cache")
    files._work(range(number, number + 1), {"cache": [b"[1, 2]"]}, 0, results, current)


def test_opcodes_are_whole() -> None:
    """Each that is put in is one opcode with its argument, so that those behind it keep their meaning."""
    import pickletools

    for opcode in mutations.OPCODES:
        parsed = []
        try:
            for found, _, _ in pickletools.genops(opcode + b"."):
                parsed.append(found.name)
        except ValueError:
            continue  # Its length reaches beyond the file.
        assert len(parsed) == 2 or opcode == b".", opcode
