"""Short programs against PyTorch: what they say, in which order, and what they raise."""

import math
import warnings
from typing import Any

import pytest
import torch

import pywebgpu
from tests.cases import (
    programs_of_arguments,
    programs_of_functions,
    programs_of_gradients,
    programs_of_graphs,
    programs_of_memory,
    programs_of_operators,
    programs_of_overrides,
    programs_of_refusals,
    programs_of_results,
    programs_of_saved_values,
    programs_of_strides,
    programs_of_values,
    programs_of_writes,
)
from tests.cases.programs import PROGRAMS, Program

# Importing them puts theirs into PROGRAMS.
TABLES = (
    programs_of_arguments,
    programs_of_functions,
    programs_of_gradients,
    programs_of_graphs,
    programs_of_memory,
    programs_of_operators,
    programs_of_overrides,
    programs_of_refusals,
    programs_of_results,
    programs_of_saved_values,
    programs_of_strides,
    programs_of_values,
    programs_of_writes,
)


def said(library: Any, run: Program, device: str) -> list[Any]:
    """What a program says in a library, as Python's numbers."""
    found: list[Any] = []

    def say(*values: object) -> None:
        found.append(plain(library, values))

    def numbers(*shape: int) -> Any:
        return (library.arange(1.0, 1.0 + math.prod(shape)) / 7).reshape(shape)

    with warnings.catch_warnings(), library.device(device):
        warnings.simplefilter("ignore")
        try:
            run(library, numbers, say)
        except Exception as error:
            found.append(error)
    return found


def plain(library: Any, value: Any) -> Any:
    if isinstance(value, library.Tensor):
        return [str(value.dtype), value.detach().cpu().tolist()]
    if isinstance(value, library.dtype):
        return str(value)
    return [plain(library, one) for one in value] if isinstance(value, tuple | list) else value


def same(mine: Any, theirs: Any) -> bool:
    """Errors are the same when one can be caught as the other."""
    if isinstance(theirs, NotImplementedError):  # It has no kernel for a dtype: one of its RuntimeErrors.
        return isinstance(mine, RuntimeError)
    if isinstance(theirs, Exception):
        return isinstance(mine, type(theirs))
    if isinstance(theirs, list):
        return isinstance(mine, list) and len(mine) == len(theirs) and all(map(same, mine, theirs))
    if isinstance(theirs, float):
        return isinstance(mine, float) and (mine == pytest.approx(theirs, rel=1e-4, abs=1e-6, nan_ok=True))
    if isinstance(theirs, complex):
        return isinstance(mine, complex) and same([mine.real, mine.imag], [theirs.real, theirs.imag])
    return bool(mine == theirs)


@pytest.mark.one_in(webgpu=6)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_says_what_it_says_in_pytorch(name: str, device: str) -> None:
    mine, theirs = said(pywebgpu, PROGRAMS[name], device), said(torch, PROGRAMS[name], "cpu")
    assert same(mine, theirs), f"{mine}\n{theirs}"
