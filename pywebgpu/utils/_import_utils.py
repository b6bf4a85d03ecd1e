"""torch.utils._import_utils: which packages there are."""

import functools
import importlib
import importlib.util
from types import ModuleType


def _check_module_exists(name: str) -> bool:
    """Whether a module of this name could be imported; it is not."""
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


@functools.cache
def dill_available() -> bool:
    return _check_module_exists("dill")


@functools.cache
def import_dill() -> ModuleType | None:
    """The package dill, which then leaves the pickler of other modules as it was; None where it is not installed."""
    if not dill_available():
        return None
    dill = importlib.import_module("dill")
    dill.extend(use_dill=False)
    return dill
