"""The tables of this folder by area, which is the name of their file: a file with `CASES` is one more."""

import importlib
from pathlib import Path

from tests.cases.case import Case

RAISING = ("errors", "misuse", "refused")  # areas whose cases must raise


def _found() -> dict[str, list[Case]]:
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in ("__init__", "tables"))
    modules = {name: importlib.import_module(f"tests.cases.{name}") for name in names}
    return {name: module.CASES for name, module in modules.items() if hasattr(module, "CASES")}


TABLES = _found()
AREAS = sorted(TABLES)
