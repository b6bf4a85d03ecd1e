"""Where NumPy is not installed, device cpu computes on the GPU: programs that make what they need on the host run."""

from importlib.util import find_spec

import pytest

import pywebgpu as torch
from pywebgpu import nn
from pywebgpu.nn import functional as F

pytestmark = [
    pytest.mark.pywebgpu_host("node", "chromium"),
    pytest.mark.skipif(find_spec("numpy") is not None, reason="NumPy computes where it is installed"),
    pytest.mark.filterwarnings("ignore:device cpu computes on the GPU"),
]


def losses(device: str) -> list[float]:
    """A bigram model, made and fed on the host, and trained on a device."""
    torch.manual_seed(1)
    text = "the quick brown fox jumps over the lazy dog, and the dog sleeps on"
    letters = sorted(set(text))
    data = torch.tensor([letters.index(letter) for letter in text], dtype=torch.long, device="cpu")
    with torch.device("cpu"):
        model = nn.Embedding(len(letters), len(letters))
        nn.init.normal_(model.weight)
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    seen = []
    for step in range(4):
        starts = torch.tensor([step, 9 * step, 30], device="cpu")
        x = torch.stack([data[i : i + 8] for i in starts.tolist()])
        y = torch.stack([data[i + 1 : i + 9] for i in starts.tolist()])
        logits = model(x.to(device))
        loss = F.cross_entropy(logits.flatten(0, 1), y.to(device).flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
    return seen


def test_a_model_that_is_made_on_the_host_trains_on_the_device() -> None:
    on_device = losses("webgpu")
    assert on_device[-1] < on_device[0]
    assert losses("cpu") == pytest.approx(on_device, rel=1e-6)


def test_values_go_to_and_from_it() -> None:
    x = torch.arange(6, device="cpu").reshape(2, 3) * 2
    assert str(x.device) == "cpu"
    assert x.to("webgpu").add(1).cpu().tolist() == [[1, 3, 5], [7, 9, 11]]
    x[0] = 7
    x += torch.tensor([1, 0, 0], device="cpu")
    assert x.tolist() == [[8, 7, 7], [7, 8, 10]]
    assert (x > 7).nonzero().tolist() == [[0, 0], [1, 1], [1, 2]]


def test_float64_is_held_and_not_computed_with() -> None:
    x = torch.tensor([0.1], dtype=torch.float64, device="cpu")
    assert x.tolist() == [0.1]
    with pytest.raises(RuntimeError, match="float64"):
        (x + 1).tolist()


def test_it_is_said() -> None:
    with pytest.warns(UserWarning, match="NumPy is not installed"):
        assert torch.full((3,), 7.5, device="cpu").cumsum(0).tolist() == [7.5, 15, 22.5]
