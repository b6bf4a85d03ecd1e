"""docs/torch_tests.json, which the command fills, and the part of docs/conformance.md that is made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.upstream.verdict import KINDS

EXCLUDED = Path(__file__).with_name("excluded.txt")
FILE = Path(__file__).parents[2] / "docs" / "torch_tests.json"
Table = dict[str, dict[str, dict[str, int]]]  # device -> file -> counts
HEAD = """## PyTorch's own unit tests

Written by `python -m tests torch`. The files are those of PyTorch 2.6's folder `test/`, unmodified, with the helpers of
that version; of large ones a sample. Counted are the tests that PyTorch 2.13 itself passes with them, less those that
ask for what lies inside of libtorch or is declared absent (`tests/upstream/excluded.txt` says why of each). A test
that a file marks as an expected failure counts as unittest counts it: passed where it fails, and failed where it
succeeds. A failure is one of a **wrong value**, a **wrong use accepted** (no error where one must come), a
**refusal**, a name that **needs libtorch**, or any **other error**.
"""


def known() -> Table:
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}  # type: ignore[no-any-return]


def write(device: str, counts: dict[str, dict[str, int]]) -> None:
    """Puts the counts of files of a device in their places."""
    table = known()
    table[device] = table.get(device, {}) | counts
    lines = ["{"]
    for number, (name, files) in enumerate(sorted(table.items())):
        rows = [f"{json.dumps(file)}: {json.dumps(entry)}" for file, entry in sorted(files.items())]
        lines += [f"{json.dumps(name)}: {{", ",\n".join(rows), "}" + "," * (number < len(table) - 1)]
    FILE.write_text("\n".join([*lines, "}"]) + "\n", encoding="utf-8")


def section() -> str:
    """The part of the page."""
    columns = ("passed", "failed", "skipped", *KINDS, "excluded")
    lines = [HEAD, f"| file | device | {' | '.join(columns)} |", "|---" * (len(columns) + 2) + "|"]
    for device, files in sorted(known().items()):
        for file, entry in [*sorted(files.items()), ("**all**", total(files))]:
            lines.append(f"| {file} | {device} | {' | '.join(str(entry.get(column, 0)) for column in columns)} |")
    lines += ["", "Left out, as they ask about libtorch's insides or for what is declared absent:", ""]
    lines += [f"- `{pattern}`: {reason}" for pattern, reason in exclusions().items()]
    return "\n".join(lines) + "\n"


def exclusions() -> dict[str, str]:
    """Patterns of `file::Class.test`, each with its reason."""
    lines = [line for line in EXCLUDED.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    pairs = (line.partition("#") for line in lines)
    return {pattern.strip(): reason.strip() for pattern, _, reason in pairs}


def total(files: dict[str, dict[str, int]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for entry in files.values():
        for column, number in entry.items():
            sums[column] = sums.get(column, 0) + number
    return sums


def summary(counts: dict[str, dict[str, Any]]) -> str:
    lines = []
    for file, entry in [*sorted(counts.items()), ("all", total(counts))]:
        ran = entry["passed"] + entry["failed"]
        kinds = ", ".join(f"{entry[kind]} {kind}" for kind in KINDS if entry.get(kind))
        share = f"{entry['passed'] / ran:6.1%}" if ran else "     -"
        lines.append(f"{share}  {file}: {entry['passed']} passed, {entry['failed']} failed, "
                     f"{entry['skipped']} skipped{f' ({kinds})' if kinds else ''}")  # fmt: skip
    return "\n".join(lines)
