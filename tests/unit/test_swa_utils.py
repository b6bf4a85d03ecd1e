"""Averages of parameters against PyTorch's: of equal weight and forgetting, with buffers, and batch statistics."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import pywebgpu
from pywebgpu.io import state

pytestmark = pytest.mark.usefixtures("default_device")

AVERAGES: dict[str, Callable[[Any], dict[str, Any]]] = {
    "mean": lambda swa: {},
    "mean by function": lambda swa: {"avg_fn": swa.get_swa_avg_fn()},
    "mean of many": lambda swa: {"multi_avg_fn": swa.get_swa_multi_avg_fn()},
    "forgetting": lambda swa: {"avg_fn": swa.get_ema_avg_fn(0.7)},
    "forgetting with buffers": lambda swa: {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.7), "use_buffers": True},
    "a program's own": lambda swa: {"avg_fn": lambda average, value, n: average * 0.5 + value * 0.5},
}


def model_of(library: Any) -> Any:
    model = library.nn.Sequential(library.nn.Linear(3, 4), library.nn.BatchNorm1d(4), library.nn.Linear(4, 2))
    with library.no_grad():
        for n, parameter in enumerate(model.parameters()):
            parameter.copy_(library.linspace(-0.5, 0.4 + n, parameter.numel()).reshape(parameter.shape))
    return model


def averaged(library: Any, name: str) -> Any:
    """What is averaged over four steps of training, after one pass of batches for its statistics."""
    swa = library.optim.swa_utils
    model = model_of(library)
    average = swa.AveragedModel(model, **AVERAGES[name](swa))
    optimizer = library.optim.SGD(model.parameters(), lr=0.001)
    batches = [library.tensor(np.random.default_rng(n).standard_normal((5, 3)).astype("float32")) for n in range(4)]
    for batch in batches:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        average.update_parameters(model)
    values = {key: value.tolist() for key, value in average.state_dict().items()}
    swa.update_bn([(batch, None) for batch in batches], average)
    assert average.module[1].momentum == 0.1
    return values, {key: value.tolist() for key, value in average.state_dict().items()}, average(batches[0]).tolist()


@pytest.mark.parametrize("name", AVERAGES)
def test_averages_are_torchs(name: str) -> None:
    for found, wanted in zip(averaged(pywebgpu, name), averaged(torch, name), strict=True):
        pairs = [(found[key], wanted[key]) for key in wanted] if isinstance(wanted, dict) else [(found, wanted)]
        assert not isinstance(wanted, dict) or list(found) == list(wanted)
        for one, other in pairs:
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_an_average_is_saved_and_goes_on(tmp_path: Any) -> None:
    swa = pywebgpu.optim.swa_utils
    model = model_of(pywebgpu)
    average = swa.AveragedModel(model)
    average.update_parameters(model)
    state.save(average.state_dict(), tmp_path / "average.pt")
    again = swa.AveragedModel(copy.deepcopy(model))
    again.load_state_dict(state.load(tmp_path / "average.pt"))
    assert int(again.n_averaged) == 1


def test_wrong_arguments_raise_what_torch_raises() -> None:
    for library in (pywebgpu, torch):
        swa, model = library.optim.swa_utils, library.nn.Linear(1, 1)
        with pytest.raises(ValueError, match="Invalid decay value"):
            swa.get_ema_avg_fn(1.5)
        with pytest.raises(AssertionError, match="Only one of"):
            swa.AveragedModel(model, avg_fn=swa.get_swa_avg_fn(), multi_avg_fn=swa.get_swa_multi_avg_fn())
        with pytest.raises(ValueError, match="anneal_strategy"):
            swa.SWALR(library.optim.SGD(model.parameters()), 0.1, anneal_strategy="steps")


def test_a_whole_average_goes_to_pytorch_and_back(tmp_path: Path) -> None:
    for writer, reader in ((pywebgpu, torch), (torch, pywebgpu)):
        average = writer.optim.swa_utils.AveragedModel(writer.nn.Linear(2, 1))
        writer.save(average, tmp_path / "average.pt")
        found = reader.load(tmp_path / "average.pt", weights_only=False, map_location="cpu")
        assert type(found) is reader.optim.swa_utils.AveragedModel
        assert found.module.weight.tolist() == average.module.weight.tolist()
