"""The two sides of every oracle test: PyTorch on CPU, and the library under test on one engine."""

import functools
import importlib
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from tests.cases import run
from tests.cases.case import Case

# Attention asserts what it is given, in PyTorch and here.
REFUSALS = (RuntimeError, IndexError, ValueError, TypeError, AssertionError)
torch.set_num_threads(1)  # The tests already use a process a core.


@functools.cache
def library() -> ModuleType:
    """pywebgpu; LIBRARY_UNDER_TEST=torch holds the tables against the oracle itself."""
    return importlib.import_module(os.environ.get("LIBRARY_UNDER_TEST", "pywebgpu"))


def engine(device: str) -> str:
    """What executes kernels, by the names of tests/cases/tolerance.py."""
    driver = os.environ.get("VK_DRIVER_FILES", "") + os.environ.get("VK_ICD_FILENAMES", "")
    if device == "cpu":
        return "numpy"
    if "lvp" in driver:
        return "lavapipe"
    return "swiftshader" if "swiftshader" in driver else "gpu"


def parametrize(*tables: list[Case]) -> Any:
    """One test a case, named after it; needs the arguments `case` and `device`."""
    cases = [case for table in tables for case in table]
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def agree(case: Case, device: str, order: int = 1) -> None:
    """The library and PyTorch give the same outputs and the same gradients, up to derivatives of `order`."""
    skip_without_meaning(case, device)
    # The only attention of PyTorch's that can be differentiated twice.
    with quiet(), sdpa_kernel(SDPBackend.MATH):
        expected = run.run(case, torch, "cpu", order=order)
        found = run.run(case, library(), device, order=order)
    run.check(case, found, expected, engine(device), order=order)


def agree_to_fail(case: Case, device: str) -> None:
    """Both raise, and what the library raises is caught by who expects PyTorch's exception."""
    skip_without_meaning(case, device)
    with quiet():
        expected = run.failure(case, torch, "cpu")
        found = run.failure(case, library(), device)
    assert expected is not None, f"{case.name}: PyTorch raises nothing"
    # PyTorch raises NotImplementedError where it has no kernel for a dtype: one of its RuntimeErrors.
    wanted = RuntimeError if isinstance(expected, NotImplementedError) else type(expected)
    kinds = {kind.__name__ for kind in type(found).__mro__}  # By name: some classes are PyTorch's own.
    assert wanted.__name__ in kinds, f"{case.name}: {found!r}, where PyTorch raises {expected!r}"
    assert str(found), f"{case.name}: the error says nothing"


def agree_or_fail(case: Case, device: str) -> None:
    """For calls that nobody knows to be right or wrong: what PyTorch refuses must be refused."""
    skip_without_meaning(case, device)
    with quiet():
        try:
            expected = run.run(case, torch, "cpu")
        except REFUSALS as error:
            refusal: Exception | None = error
        else:
            refusal = None
        if refusal is not None:
            with pytest.raises(REFUSALS):
                run.run(case, library(), device)
            return
        found = run.run(case, library(), device)
    run.check(case, found, expected, engine(device))


@contextmanager
def quiet() -> Iterator[None]:
    """Advice to the user is no failure; warnings of NumPy or of Python still are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def skip_without_meaning(case: Case, device: str) -> None:
    if device == "null":
        pytest.skip("device null computes no values")
    if device not in case.devices:
        pytest.skip(f"has no meaning on device {device}")
