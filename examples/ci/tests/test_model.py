"""What the model has to do, on every host."""

import pytest
from model import Classifier, spirals, train

import pywebgpu as torch


@pytest.fixture(scope="module")
def trained():
    torch.manual_seed(0)
    model = Classifier()
    return model, train(model, 60)


def test_it_learns(trained):
    _, losses = trained
    print("losses", losses[0], losses[-1])
    assert losses[-1] < 0.5 * losses[0]


def test_it_tells_the_spirals_apart(trained):
    model, _ = trained
    points, classes = spirals(64)
    assert (model(points).argmax(1) == classes).float().mean().item() > 0.85


def test_it_comes_back_from_a_file(trained, tmp_path):
    model, _ = trained
    torch.save(model.state_dict(), tmp_path / "model.safetensors")
    again = Classifier()
    again.load_state_dict(torch.load(tmp_path / "model.safetensors"))
    points, _ = spirals(8)
    assert torch.equal(again(points), model(points))


async def test_values_can_be_awaited(trained, pywebgpu_device):
    model, _ = trained
    assert model.layers[0].weight.device.type == pywebgpu_device
    assert len(await model(spirals(2)[0]).tolist_async()) == 4
