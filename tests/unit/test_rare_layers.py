"""Layers that few programs name, against PyTorch's: lazy ones, adaptive softmax, encoders that leave out padding."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import pywebgpu
from pywebgpu.io import state

pytestmark = pytest.mark.usefixtures("default_device")


def fill(library: Any, model: Any) -> Any:
    with library.no_grad():
        for n, parameter in enumerate(model.parameters()):
            drawn = np.random.default_rng(n).standard_normal(tuple(parameter.shape)).astype("float32")
            parameter.copy_(library.tensor(drawn))
    return model


def drawn(library: Any, *shape: int) -> Any:
    return library.tensor(np.random.default_rng(3).standard_normal(shape).astype("float32"))


Make = Callable[[Any], Any]
LAZY: dict[str, tuple[Make, tuple[int, ...]]] = {
    "linear": (lambda nn: nn.LazyLinear(3), (2, 5)),
    "no bias": (lambda nn: nn.LazyLinear(3, bias=False), (4, 2, 5)),
    "conv1d": (lambda nn: nn.LazyConv1d(4, 2), (2, 3, 6)),
    "conv2d in groups": (lambda nn: nn.LazyConv2d(4, 3, padding=1, groups=2), (2, 6, 5, 5)),
    "conv3d": (lambda nn: nn.LazyConv3d(2, 2), (3, 4, 4, 4)),
    "transposed": (lambda nn: nn.LazyConvTranspose2d(4, 2, 2, 0, 0, 2), (1, 6, 3, 3)),
    "transposed 1d": (lambda nn: nn.LazyConvTranspose1d(4, 2), (1, 6, 3)),
    "transposed 3d": (lambda nn: nn.LazyConvTranspose3d(1, 2), (1, 2, 3, 3, 3)),
    "batch norm": (lambda nn: nn.LazyBatchNorm1d(eps=1e-3), (6, 4)),
    "batch norm 2d": (lambda nn: nn.LazyBatchNorm2d(), (2, 4, 3, 3)),
    "batch norm without statistics": (lambda nn: nn.LazyBatchNorm3d(track_running_stats=False), (2, 4, 2, 2, 2)),
    "instance norm": (lambda nn: nn.LazyInstanceNorm2d(affine=True, track_running_stats=True), (2, 4, 3, 3)),
    "instance norm 1d": (lambda nn: nn.LazyInstanceNorm1d(), (2, 4, 3)),
}


@pytest.mark.parametrize("name", LAZY)
def test_a_lazy_layer_becomes_what_torchs_becomes(name: str) -> None:
    make, shape = LAZY[name]
    found = []
    for library in (pywebgpu, torch):
        layer = make(library.nn)
        text = repr(layer)
        assert layer.has_uninitialized_params() == any(
            "Uninit" in repr(p) for p in [*layer.parameters(), *layer.buffers()]
        )
        layer(drawn(library, *shape))
        fill(library, layer.eval())
        values = {key: (tuple(value.shape), str(value.dtype)) for key, value in layer.state_dict().items()}
        found.append([text, type(layer).__name__, repr(layer), values])
        found[-1].append(np.round(layer(drawn(library, *shape)).detach().numpy(), 3).tolist())
    assert found[0][:4] == found[1][:4]
    np.testing.assert_allclose(found[0][4], found[1][4], atol=2e-3)


def test_a_lazy_model_takes_shapes_from_a_state_dict(tmp_path: Any) -> None:
    nn = pywebgpu.nn
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    twin = copy.deepcopy(model)
    with pytest.raises(RuntimeError, match="shape of an uninitialized"):
        _ = model[0].weight.shape
    x = drawn(pywebgpu, 2, 3, 5, 5)
    model(x)
    state.save(model.state_dict(), tmp_path / "x.pt")
    twin.load_state_dict(state.load(tmp_path / "x.pt"))
    np.testing.assert_allclose(model.eval()(x).detach().numpy(), twin.eval()(x).detach().numpy(), rtol=1e-5)
    assert type(twin[0]) is nn.Conv2d
    with pytest.raises(RuntimeError, match="Expected 3D"):
        nn.LazyConv2d(4, 3)(drawn(pywebgpu, 2, 3))
    with pytest.raises(ValueError, match="divisible by groups"):
        nn.LazyConv2d(4, 3, groups=2)(drawn(pywebgpu, 1, 3, 5, 5))


def test_adaptive_softmax_is_torchs() -> None:
    found = []
    for library in (pywebgpu, torch):
        layer = fill(library, library.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 9, 15], div_value=2.0, head_bias=True))
        x = drawn(library, 6, 8).requires_grad_()
        out = layer(x, library.tensor([0, 3, 5, 19, 14, 4]))
        out.loss.backward()
        one = layer(x[0], library.tensor(9))
        parts = [out.output, out.loss, one.output, one.loss, layer.log_prob(x), x.grad]
        parts += [parameter.grad for parameter in layer.parameters() if parameter.grad is not None]
        found.append([part.detach().numpy() for part in parts])
        assert layer.predict(x).tolist() == layer.log_prob(x).argmax(1).tolist()
        with pytest.raises(RuntimeError, match="Target values should be in"):
            layer(x, library.tensor([0, 1, 2, 3, 4, 20]))
        with pytest.raises(RuntimeError, match="multi-target"):
            layer(x, library.zeros(6, 1, dtype=library.int64))
        for cutoffs in ([], [5, 5], [9, 4], [0, 3], [20]):
            with pytest.raises(ValueError, match="cutoffs"):
                library.nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs)
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("mask_check", [True, False])
@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_an_encoder_leaves_out_padding_where_torchs_does(training: bool, at_end: bool, mask_check: bool) -> None:
    if not at_end and not mask_check:
        return  # PyTorch counts the padding of a row as if it were at its end.
    found = []
    for library in (pywebgpu, torch):
        layer = library.nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
        model = library.nn.TransformerEncoder(layer, 2, mask_check=mask_check)
        fill(library, model).train(training)
        mask = library.tensor([[False, False, True], [at_end, False, at_end]])
        mask[1, 0] = not at_end
        with library.no_grad():
            found.append(model(drawn(library, 2, 3, 8), src_key_padding_mask=mask).numpy())
    np.testing.assert_allclose(*found, rtol=1e-3, atol=1e-4)


def test_norms_become_synchronized_ones() -> None:
    for library in (pywebgpu, torch):
        model = library.nn.Sequential(library.nn.Conv1d(2, 3, 1), library.nn.BatchNorm1d(3, eps=1e-3))
        weight = model[1].weight
        made = library.nn.SyncBatchNorm.convert_sync_batchnorm(model)
        assert type(made[1]).__name__ == "SyncBatchNorm"
        assert made[1].weight is weight
        assert made[1].eps == 1e-3


SMALL: dict[str, tuple[Make, Callable[[Any], Any]]] = {
    "triplet": (
        lambda nn: nn.TripletMarginWithDistanceLoss(swap=True, margin=2.0),
        lambda t: [drawn(t, 4, 3), drawn(t, 4, 3) * 2, drawn(t, 4, 3) - 1],
    ),
    "triplet of a distance": (
        lambda nn: nn.TripletMarginWithDistanceLoss(
            distance_function=lambda a, b: (a - b).abs().sum(1), reduction="sum"
        ),
        lambda t: [drawn(t, 4, 3), drawn(t, 4, 3) * 2, drawn(t, 4, 3) - 1],
    ),
    "unpool": (
        lambda nn: lambda x: nn.MaxUnpool2d(2)(*nn.MaxPool2d(2, return_indices=True)(x)),
        lambda t: [drawn(t, 1, 2, 4, 6)],
    ),
    "LRN": (lambda nn: nn.CrossMapLRN2d(3, k=2), lambda t: [drawn(t, 1, 5, 2, 2)]),
    "bag": (lambda nn: fill_of(nn, nn.EmbeddingBag(5, 3, mode="max")), lambda t: [t.tensor([[0, 4], [2, 2]])]),
    "bag from rows": (
        lambda nn: nn.EmbeddingBag.from_pretrained(drawn(library_of(nn), 5, 3), mode="sum", padding_idx=1),
        lambda t: [t.tensor([0, 4, 1, 2]), t.tensor([0, 2])],
    ),
}


def library_of(nn: Any) -> Any:
    return torch if nn is torch.nn else pywebgpu


def fill_of(nn: Any, model: Any) -> Any:
    return fill(library_of(nn), model)


@pytest.mark.parametrize("name", SMALL)
def test_small_layers_are_torchs(name: str) -> None:
    make, inputs = SMALL[name]
    found, wanted = (make(library.nn)(*inputs(library)).detach().numpy() for library in (pywebgpu, torch))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


REFUSED: dict[str, Callable[[Any], Any]] = {
    "eps of 0": lambda t: t.nn.BatchNorm1d(3, eps=0.0)(t.ones(2, 3)),
    "eps below 0": lambda t: t.nn.BatchNorm1d(3, eps=-1.0).eval()(t.ones(2, 3)),
    "targets of other batches": lambda t: t.nn.functional.cross_entropy(t.ones(2, 3), t.ones(5, 3)),
    "an ignored class of probabilities": lambda t: t.nn.functional.cross_entropy(
        t.ones(2, 3), t.ones(2, 3), ignore_index=1
    ),
    "weights of another dtype": lambda t: t.nn.functional.nll_loss(t.ones(1, 3), t.tensor([1]), t.ones(3).half()),
    "margins of other batches": lambda t: t.nn.functional.multi_margin_loss(t.ones(5, 3), t.tensor([0, 1, 2])),
    "a complex delta": lambda t: t.nn.HuberLoss(delta=1j),
    "a ring of another rank": lambda t: t.nn.CircularPad1d(1)(t.ones(2, 2, 3, 4)),
    "a flag that is none": lambda t: t.nn.LSTM(2, 3, bias=1.0),
    "layers below 1": lambda t: t.nn.GRU(2, 3, num_layers=-1),
    "projections of a GRU": lambda t: t.nn.GRU(2, 3, proj_size=1),
    "an input of another dtype": lambda t: t.nn.RNN(2, 3)(t.ones(2, 2, 2).half()),
    "a state of another rank": lambda t: t.nn.GRUCell(2, 3)(t.ones(1, 2), t.ones(1, 1, 1, 3)),
    "neither size nor ratio": lambda t: t.nn.FractionalMaxPool2d(2),
    "both size and ratio": lambda t: t.nn.FractionalMaxPool2d(2, 3, 0.5),
    "variances below 0": lambda t: t.nn.functional.gaussian_nll_loss(t.ones(2), t.ones(2), -1.0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_arguments_raise_what_torch_raises(name: str) -> None:
    with pytest.raises((TypeError, ValueError, RuntimeError)) as wanted:
        REFUSED[name](torch)
    with pytest.raises(type(wanted.value)):
        REFUSED[name](pywebgpu)
