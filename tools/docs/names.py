"""The map of names: of each public name of PyTorch's, whether it is here, and if not, why."""

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pywebgpu
from tools.docs import surface

LEAD = """# PyTorch's names

Every public name of PyTorch 2.13, module by module: those that work, and those that do not, with the reason. Using one
of the latter raises NotImplementedError with the same words. The program that builds this site makes the page of
PyTorch's list (`docs/names.json`) and of the library itself; `python -m tests names` counts both.

What works, but differs, is in [Where pywebgpu is not PyTorch](../torch.md).
"""


def write(made: Path) -> None:
    """Writes made/names.md."""
    sections = []
    total = [0, 0]
    for path, listed in surface.theirs().items():
        here, refused = sorted_out(path, listed)
        total[0] += len(here)
        total[1] += sum(map(len, refused.values()))
        sections.append(section(path, here, refused))
    count = f"\n{total[0]:,} names work, {total[1]:,} are refused with a reason.\n"
    text = "\n".join([LEAD, count, *sections])
    target = made / "names.md"
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        target.write_text(text, encoding="utf-8")


def sorted_out(path: str, listed: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    """The names that work, and by their reasons those that do not."""
    place: Any = pywebgpu.ones(1, 1, device="cpu") if path == "Tensor" else surface.holder(path)
    here, refused = [], defaultdict(list)
    for name in listed:
        try:
            value = getattr(place, name)
        except (RuntimeError, NotImplementedError):
            value = None  # It is there, and refuses this very tensor.
        if surface.is_refusal(value):
            refused[re.sub(r"^.*? is not here: ", "", value.__doc__ or "")].append(name)
        else:
            here.append(name)
    return here, refused


def section(path: str, here: list[str], refused: dict[str, list[str]]) -> str:
    title = f"torch.{path}".rstrip(".")
    lines = [f"## {title}", ""]
    if here:
        lines += [f"{len(here)} work: " + ", ".join(f"`{name}`" for name in here) + ".", ""]
    for reason, names in refused.items():
        lines += [f"- Not here ({reason}): " + ", ".join(f"`{name}`" for name in names) + "."]
    return "\n".join([*lines, ""])
