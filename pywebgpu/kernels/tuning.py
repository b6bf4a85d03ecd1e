"""Which launches were measured to be the fastest: tables by case (see launch.py), as text.

Tables for adapters that were measured come with the package, by family and translator; `pywebgpu tune` adds those of
the adapter that is there. A table changes how fast kernels are, and no value but for the order of sums.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pywebgpu.kernels.launch import Case, Launch, Tuning
from pywebgpu.kernels.target import Features
from pywebgpu.settings import settings

VERSION = 1
FOLDER = Path(__file__).with_name("tunings")


def of(features: Features, own: str = "") -> Tuning:
    """What is known of an adapter: the package's table for its family, and over that the adapter's own as text.

    Both may be empty: then templates have rules for devices that nobody has measured.
    """
    return {**shipped(features), **from_text(own)} if settings.tuning else {}


def shipped(features: Features) -> Tuning:
    """The package's table for a family under a translator, else for a kind of adapter."""
    names = f"{features.family}-{features.translator}", features.kind
    files = [FOLDER / f"{name}.json" for name in names]
    table = next((file for file in files if file.is_file()), None)
    return {} if table is None else from_text(table.read_text(encoding="utf-8"))


def own_text(features: Features, tuning: Tuning) -> str:
    """What a table says that the package's does not: to be kept beside that, which the next version may have better."""
    known = shipped(features)
    return to_text({case: launch for case, launch in tuning.items() if known.get(case) != launch})


def to_text(tuning: Tuning) -> str:
    """A line a case."""
    cases = [json.dumps([*case, [*launch]]) for case, launch in sorted(tuning.items())]
    body = ",\n".join(cases)
    return f'{{"version": {VERSION}, "launches": [\n{body}\n]}}\n'


def from_text(text: str) -> Tuning:
    """The opposite of `to_text`; nothing of what is no table, or one of another version. Speed is no reason to fail."""
    try:
        data = json.loads(text) if text else {}
        if data.get("version") != VERSION:
            return {}
        return dict(_entry(*entry) for entry in data["launches"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}


def merged(tunings: list[Mapping[Case, Launch]]) -> Tuning:
    """All of them; the last one that knows a case has it."""
    return {case: launch for tuning in tunings for case, launch in tuning.items()}


def _entry(template: Any, sizes: Any, formats: Any, layout: Any, launch: Any) -> tuple[Case, Launch]:
    variant, threads, tile, each, split, vector = launch
    case = Case(str(template), _numbers(sizes), tuple([str(format_) for format_ in formats]), str(layout))
    return case, Launch(str(variant), int(threads), _numbers(tile), _numbers(each), int(split), int(vector))


def _numbers(numbers: Any) -> tuple[int, ...]:
    return tuple([int(number) for number in numbers])
