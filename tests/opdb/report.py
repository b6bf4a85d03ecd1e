"""docs/conformance.json, which the command fills, and docs/conformance.md, which is made of it."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tests.opdb.verdict import ABSENT, KINDS, PASSED, REFUSED, WRONG
from tests.upstream import report as upstream

DOCS = Path(__file__).parent.parent.parent / "docs"
FAMILIES = ("operators", "modules", "optimizers")
HEAD = """# What of PyTorch's own tests pywebgpu passes

Written by `python -m tests opdb`, never by hand. PyTorch 2.13 brings samples of its operators, modules and optimizers
(op_db, module_db and the optimizers' database of `torch.testing`). Here they run through pywebgpu and are held against
what PyTorch computes of them: values, gradients, and what is written in place.

A sample has **passed**, or is **wrong** (another value, shape or dtype), or was **refused** by an error, or asks for
what is **absent**. An entry passes when all of its samples do. Tolerances are those of `tests/cases/tolerance.py`.
Samples that ask for float64 or complex128, which WebGPU has not, are counted apart: an entry of such alone is refused.
"""


def write(host: str, dtype: str, section: dict[str, Any], *, whole: bool = True) -> None:
    """Puts a section in its place. whole: False keeps what is known of other entries."""
    file = DOCS / "conformance.json"
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    before = known.get(f"{host}/{dtype}", {})
    if not whole:
        section = {family: before.get(family, {}) | entries for family, entries in section.items()}
    known[f"{host}/{dtype}"] = before | section
    ordered = {key: known[key] for key in sorted(known)}
    lines = ["{"]
    for at, (key, families) in enumerate(ordered.items()):
        lines.append(f"{json.dumps(key)}: {{")
        for number, (family, entries) in enumerate(families.items()):
            rows = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in sorted(entries.items())]
            end = "}" + "," * (number < len(families) - 1)
            lines += [f"{json.dumps(family)}: {{", ",\n".join(rows), end]
        lines.append("}" + "," * (at < len(ordered) - 1))
    file.write_text("\n".join([*lines, "}"]) + "\n", encoding="utf-8")
    write_page()


def write_page() -> None:
    known = json.loads((DOCS / "conformance.json").read_text(encoding="utf-8"))
    (DOCS / "conformance.md").write_text(page(known), encoding="utf-8")


def state(entry: dict[str, Any]) -> str:
    """What an entry is as a whole: the worst of its samples."""
    return next((kind for kind in (WRONG, ABSENT, REFUSED) if entry[kind]), PASSED if entry[PASSED] else REFUSED)


def summary(section: dict[str, Any]) -> str:
    parts = []
    for family, entries in section.items():
        if family == "errors":
            totals = {key: sum(entry[key] for entry in entries.values()) for key in ("right", "other", "silent")}
            parts.append("errors: " + ", ".join(f"{number} {key}" for key, number in totals.items()))
            continue
        states = Counter(state(entry) for entry in entries.values())
        samples = {kind: sum(entry.get(kind, 0) for entry in entries.values()) for kind in KINDS}
        parts.append(
            f"{family}: {states[PASSED]} of {len(entries)} entries pass; samples "
            + ", ".join(f"{number} {kind}" for kind, number in samples.items())
        )
    return "\n".join(parts)


def page(known: dict[str, Any]) -> str:
    lines = [
        HEAD,
        "## Entries that pass",
        "",
        "| host and dtype | " + " | ".join(FAMILIES) + " | refused as by PyTorch |",
    ]
    lines.append("|---" * (len(FAMILIES) + 2) + "|")
    for key, families in known.items():
        row = [_share(families.get(family, {})) for family in FAMILIES]
        lines.append(f"| {key} | {' | '.join(row)} | {_refused(families.get('errors', {}))} |")
    lines += ["", "## Samples", "", "| host and dtype | " + " | ".join(KINDS) + " |", "|---" * (len(KINDS) + 1) + "|"]
    for key, families in known.items():
        entries = [entry for family in FAMILIES for entry in families.get(family, {}).values()]
        lines.append(
            f"| {key} | " + " | ".join(str(sum(entry.get(kind, 0) for entry in entries)) for kind in KINDS) + " |"
        )
    for kind, title in ((WRONG, "Wrong"), (REFUSED, "Refused"), (ABSENT, "Absent")):
        lines += ["", f"## {title}", ""]
        for key, families in known.items():
            names = [
                f"`{name}`"
                for family in FAMILIES
                for name, entry in sorted(families.get(family, {}).items())
                if state(entry) == kind
            ]
            if names:
                lines.append(f"{key} ({len(names)}): {', '.join(names)}\n")
    return "\n".join(lines).rstrip() + f"\n\n{upstream.section()}"


def _share(entries: dict[str, Any]) -> str:
    return f"{sum(state(entry) == PASSED for entry in entries.values())} of {len(entries)}" if entries else ""


def _refused(entries: dict[str, Any]) -> str:
    if not entries:
        return ""
    totals = {key: sum(entry[key] for entry in entries.values()) for key in ("right", "other", "silent")}
    return f"{totals['right']} of {sum(totals.values())}, {totals['silent']} silent"
