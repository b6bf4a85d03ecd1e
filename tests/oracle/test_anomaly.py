"""detect_anomaly raises, and warns, as PyTorch's does."""

import re
import warnings
from typing import Any

import pytest
import torch

import pywebgpu
from tests.cases.anomaly import FAULTS


def outcome(library: Any, name: str, device: str, *, check_nan: bool) -> tuple[Any, ...]:
    """The first sentence of the error, and of each warning; of a traceback the innermost line of the program."""
    raised: Any = None
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            with library.autograd.detect_anomaly(check_nan=check_nan):
                assert (library.is_anomaly_enabled(), library.is_anomaly_check_nan_enabled()) == (True, check_nan)
                FAULTS[name](library, device)
        except (RuntimeError, ValueError) as error:
            raised = isinstance(error, RuntimeError), str(error).split(".")[0]
    assert not library.is_anomaly_enabled()
    texts = [str(one.message) for one in warned]
    lines = [re.findall(r'File ".*cases.anomaly\.py", line (\d+)', text)[-1:] for text in texts]
    return raised, [text.split(".")[0] for text in texts], lines


@pytest.mark.parametrize("check_nan", [True, False])
@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_told_as_torch_tells_them(name: str, check_nan: bool, device: str) -> None:
    found = outcome(pywebgpu, name, device, check_nan=check_nan)
    assert found == outcome(torch, name, "cpu", check_nan=check_nan)


def test_switches_are_torchs(device: str) -> None:
    found = []
    for library in (pywebgpu, torch):
        seen = []

        def look(library: Any = library, seen: list[Any] = seen) -> None:
            seen.append((library.is_anomaly_enabled(), library.is_anomaly_check_nan_enabled()))

        with library.autograd.set_detect_anomaly(True, check_nan=False):
            look()
            with library.autograd.set_detect_anomaly(False):
                look()
            look()
        look()
        library.set_anomaly_enabled(True)
        look()
        library.set_anomaly_enabled(False)
        look()
        found.append(seen)
    assert found[0] == found[1]
