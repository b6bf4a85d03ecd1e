"""Weights that are computed from others, against PyTorch's: norms, orthogonal matrices, pruning, fused layers."""

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.utils.prune  # not imported by torch itself

import pywebgpu
from pywebgpu.io import state

pytestmark = pytest.mark.usefixtures("default_device")


def fill(library: Any, model: Any) -> Any:
    """The same numbers in every parameter and buffer of both libraries."""
    with library.no_grad():
        for n, (name, value) in enumerate([*model.named_parameters(), *model.named_buffers()]):
            if "mask" not in name and "num_batches" not in name:
                drawn = np.random.default_rng(n).standard_normal(tuple(value.shape)).astype("float32")
                value.copy_(library.tensor(np.abs(drawn) + 0.1 if "var" in name else drawn))
    return model


def layer(library: Any, kind: str) -> Any:
    nn = library.nn
    made = {"Linear": lambda: nn.Linear(4, 6), "Square": lambda: nn.Linear(5, 5), "Wide": lambda: nn.Linear(6, 3)}
    made |= {"Conv1d": lambda: nn.Conv1d(3, 4, 2), "ConvTranspose2d": lambda: nn.ConvTranspose2d(3, 2, 3)}
    return fill(library, made[kind]())


INPUTS = {"Linear": (2, 4), "Square": (2, 5), "Wide": (2, 6), "Conv1d": (2, 3, 5), "ConvTranspose2d": (1, 3, 4, 4)}

Change = Callable[[Any, Any], Any]  # (torch.nn.utils, a layer) -> the layer
CHANGES: dict[str, tuple[str, Change]] = {
    "weight_norm": ("Linear", lambda u, m: u.parametrizations.weight_norm(m)),
    "weight_norm of all": ("Conv1d", lambda u, m: u.parametrizations.weight_norm(m, dim=None)),
    "weight_norm of columns": ("Conv1d", lambda u, m: u.parametrizations.weight_norm(m, dim=1)),
    "weight_norm, older": ("Conv1d", lambda u, m: u.weight_norm(m)),
    "weight_norm, older, of all": ("Linear", lambda u, m: u.weight_norm(m, dim=None)),
    "spectral_norm": ("Linear", lambda u, m: u.parametrizations.spectral_norm(m, n_power_iterations=2)),
    "spectral_norm, transposed": ("ConvTranspose2d", lambda u, m: u.parametrizations.spectral_norm(m)),
    "spectral_norm of a bias": ("Linear", lambda u, m: u.parametrizations.spectral_norm(m, "bias")),
    "spectral_norm, older": ("Linear", lambda u, m: u.spectral_norm(m)),
    "spectral_norm, older, transposed": ("ConvTranspose2d", lambda u, m: u.spectral_norm(m, n_power_iterations=3)),
    "l1": ("Linear", lambda u, m: u.prune.l1_unstructured(m, "weight", 0.3)),
    "l1 twice": ("Linear", lambda u, m: u.prune.l1_unstructured(u.prune.l1_unstructured(m, "weight", 5), "weight", 7)),
    "channels": ("Conv1d", lambda u, m: u.prune.ln_structured(m, "weight", 0.5, n=2, dim=0)),
    "channels, then elements": (
        "Linear",
        lambda u, m: u.prune.l1_unstructured(u.prune.ln_structured(m, "weight", 2, n=1, dim=1), "weight", 3),
    ),
    "elements, then channels": (
        "Linear",
        lambda u, m: u.prune.ln_structured(u.prune.l1_unstructured(m, "weight", 3), "weight", 1, n=2, dim=0),
    ),
    "nothing": ("Linear", lambda u, m: u.prune.identity(m, "bias")),
}


def library_of(utils: Any) -> Any:
    return torch if utils is torch.nn.utils else pywebgpu


def trained(library: Any, name: str) -> Any:
    """Outputs, gradients and state of a changed layer over three steps, and its weight made plain."""
    kind, change = CHANGES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        model = fill(library, change(library.nn.utils, layer(library, kind)))
    optimizer = library.optim.SGD(model.parameters(), lr=0.05)
    found = []
    for step in range(3):
        x = library.tensor(np.random.default_rng(step).standard_normal(INPUTS[kind]).astype("float32"))
        optimizer.zero_grad()
        out = model(x)
        out.square().mean().backward()
        optimizer.step()
        found += [out, *(p.grad for p in model.parameters())]
    model.eval()
    found += [model(x), model(x), model.weight, model.bias]
    return model, [np.asarray(one.detach().cpu().numpy()) for one in [*found, *model.state_dict().values()]]


@pytest.mark.one_in(webgpu=3)
@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_layer_trains_as_torchs(name: str) -> None:
    (ours, found), (theirs, wanted) = trained(pywebgpu, name), trained(torch, name)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert type(ours).__name__ == type(theirs).__name__
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", CHANGES)
def test_copies_are_apart_and_states_load(name: str, tmp_path: Any) -> None:
    model, _ = trained(pywebgpu, name)
    twin = copy.deepcopy(model)
    state.save(model.state_dict(), tmp_path / "x.pt")
    with pywebgpu.no_grad():
        for parameter in twin.parameters():
            parameter.zero_()
    assert not np.allclose(model.weight.detach().cpu().numpy(), twin.weight.detach().cpu().numpy()) or "nothing" in name
    twin.load_state_dict(state.load(tmp_path / "x.pt"))
    np.testing.assert_array_equal(model.weight.detach().cpu().numpy(), twin.weight.detach().cpu().numpy())


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_removed_leaves_a_plain_layer(name: str) -> None:
    model, _ = trained(pywebgpu, name)
    utils, tensor = pywebgpu.nn.utils, "bias" if "bias" in name or name == "nothing" else "weight"
    wanted = getattr(model, tensor).detach().cpu().numpy()
    if utils.parametrize.is_parametrized(model):
        utils.parametrize.remove_parametrizations(model, tensor)
    elif utils.prune.is_pruned(model):
        utils.prune.remove(model, tensor)
    else:
        (utils.remove_weight_norm if "weight_norm" in name else utils.remove_spectral_norm)(model)
    assert sorted(name for name, _ in model.named_parameters()) == ["bias", "weight"]
    assert list(model.named_buffers()) == []
    assert type(model) is type(layer(pywebgpu, CHANGES[name][0]))
    np.testing.assert_array_equal(getattr(model, tensor).detach().cpu().numpy(), wanted)


def test_a_compiled_step_with_weight_norm_is_replayed() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        models = [pywebgpu.nn.utils.weight_norm(layer(pywebgpu, "Linear")) for _ in range(2)]
    x = pywebgpu.ones(2, 4)
    losses = []
    for model, compiled in zip(models, (True, False), strict=True):
        optimizer = pywebgpu.optim.SGD(model.parameters(), lr=0.1)

        def step(model: Any = model, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        call = pywebgpu.compile(step) if compiled else step
        losses.append([call().item() for _ in range(6)])
        if compiled:
            assert call.counters["replays"] >= 2, call.reasons
    assert losses[0] == losses[1]


# Orthogonal


def orthogonal(library: Any, kind: str, orthogonal_map: str | None, trivial: bool) -> Any:
    model = layer(library, kind)
    model = library.nn.utils.parametrizations.orthogonal(model, "weight", orthogonal_map, use_trivialization=trivial)
    chain = model.parametrizations.weight
    with library.no_grad():
        values = np.random.default_rng(5).standard_normal(tuple(chain.original.shape)).astype("float32") * 0.3
        chain.original.copy_(library.tensor(values + np.eye(*values.shape, dtype="float32") * 1.5))
        if trivial:
            chain[0].base.copy_(library.tensor(np.eye(chain[0].base.shape[0], dtype="float32")))
    (model.weight * library.arange(float(model.weight.numel())).reshape(model.weight.shape)).sum().backward()
    return [one.detach().cpu().numpy() for one in (model.weight, chain.original.grad)]


@pytest.mark.one_in(webgpu=4)
@pytest.mark.parametrize("trivial", [True, False])
@pytest.mark.parametrize("orthogonal_map", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("kind", ["Linear", "Square", "Wide"])
def test_orthogonal_weights_are_torchs(kind: str, orthogonal_map: str | None, trivial: bool) -> None:
    if not trivial and (orthogonal_map in ("matrix_exp", "cayley") or (orthogonal_map is None and kind == "Square")):
        return  # Nothing can be assigned there.
    for one, other in zip(
        orthogonal(pywebgpu, kind, orthogonal_map, trivial),
        orthogonal(torch, kind, orthogonal_map, trivial),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("trivial", [True, False])
@pytest.mark.parametrize("kind", ["Linear", "Square", "Wide"])
def test_an_orthogonal_matrix_can_be_assigned(kind: str, trivial: bool) -> None:
    model = layer(pywebgpu, kind)
    rows, columns = model.weight.shape
    pywebgpu.nn.utils.parametrizations.orthogonal(model, "weight", "householder", use_trivialization=trivial)
    tall = np.linalg.qr(np.random.default_rng(1).standard_normal((max(rows, columns), min(rows, columns))))[0]
    wanted = (tall if rows >= columns else tall.T).astype("float32")
    model.weight = pywebgpu.tensor(wanted)
    np.testing.assert_allclose(model.weight.detach().cpu().numpy(), wanted, atol=1e-5)


# Parametrizations of a program's own


def parametrized(library: Any) -> Any:
    class Symmetric(library.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.triu() + x.triu(1).t()

        def right_inverse(self, a: Any) -> Any:
            return a.triu()

    class Doubled(library.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2

    return Symmetric(), Doubled()


def test_parametrizations_are_chained_cached_and_assigned() -> None:
    found = []
    for library in (pywebgpu, torch):
        parametrize = library.nn.utils.parametrize
        model = layer(library, "Square")
        symmetric, doubled = parametrized(library)
        parametrize.register_parametrization(model, "weight", symmetric)
        model.weight = library.arange(25.0).reshape(5, 5)
        parametrize.register_parametrization(model, "weight", doubled)
        with parametrize.cached():
            assert model.weight is model.weight
        assert model.weight is not model.weight
        assert parametrize.is_parametrized(model, "weight")
        assert not parametrize.is_parametrized(model, "bias")
        assert parametrize.type_before_parametrizations(model) is library.nn.Linear
        other = parametrize.transfer_parametrizations_and_params(model, layer(library, "Square"))
        found.append([model.weight.tolist(), repr(model), other.weight.tolist(), sorted(model.state_dict())])
        with pytest.raises(RuntimeError, match="does not implement right_inverse"):
            model.weight = library.ones(5, 5)
        with pytest.raises(RuntimeError, match="only supported through state_dict"):
            library.save(model, "/dev/null")
        with pytest.raises(ValueError, match="does not have a parameter"):
            parametrize.register_parametrization(model, "other", doubled)
        with pytest.raises(ValueError, match="may not change the shape"):
            parametrize.register_parametrization(model, "bias", library.nn.Unflatten(0, (5, 1)))
        parametrize.remove_parametrizations(model, "weight", leave_parametrized=False)
        found[-1].append(model.weight.tolist())
    assert found[0] == found[1]


# Pruning


def test_all_weights_are_pruned_as_one() -> None:
    found = []
    for library in (pywebgpu, torch):
        model = library.nn.Sequential(layer(library, "Linear"), layer(library, "Wide"))
        prune = library.nn.utils.prune
        prune.random_structured(model[0], "weight", 1, dim=0)
        prune.custom_from_mask(model[1], "bias", library.tensor([1.0, 0.0, 1.0]))
        assert (model[0].weight_mask.sum(1) == 0).sum().item() == 1
        prune.remove(model[0], "weight")
        model = library.nn.Sequential(layer(library, "Linear"), layer(library, "Wide"))
        prune.global_unstructured([(model[0], "weight"), (model[1], "weight")], prune.L1Unstructured, amount=0.4)
        found.append([model[0].weight.tolist(), model[1].weight_mask.tolist()])
        assert prune.is_pruned(model)
        assert prune.RandomUnstructured(3).prune(library.ones(4, 2)).sum().item() == 5.0
    assert found[0] == found[1]


@pytest.mark.parametrize("amount", ["a", 1.5, -1, 100])
def test_amounts_out_of_range_are_refused(amount: Any) -> None:
    for library in (pywebgpu, torch):
        with pytest.raises((TypeError, ValueError)):
            library.nn.utils.prune.l1_unstructured(layer(library, "Linear"), "weight", amount)


# Fusion


@pytest.mark.parametrize("kind", ["Linear", "Conv1d", "ConvTranspose2d"])
def test_a_layer_takes_in_the_norm_after_it(kind: str) -> None:
    found = []
    for library in (pywebgpu, torch):
        nn, utils = library.nn, library.nn.utils
        one = layer(library, kind).eval()
        norm = fill(library, {"Linear": nn.BatchNorm1d(6), "Conv1d": nn.BatchNorm1d(4)}.get(kind, nn.BatchNorm2d(2)))
        x = library.ones(*INPUTS[kind])
        options = (True,) if kind == "ConvTranspose2d" else ()
        fuse = utils.fuse_linear_bn_eval if kind == "Linear" else utils.fuse_conv_bn_eval
        fused = fuse(one, norm.eval(), *options)
        np.testing.assert_allclose(fused(x).detach().numpy(), norm(one(x)).detach().numpy(), rtol=1e-3, atol=1e-4)
        found.append(fused.weight.detach().numpy())
        with pytest.raises(AssertionError):
            fuse(one.train(), norm, *options)
    np.testing.assert_allclose(*found, rtol=1e-5)


def test_a_module_without_initial_values_is_one() -> None:
    made = pywebgpu.nn.utils.skip_init(pywebgpu.nn.Linear, 3, 2, device="cpu")
    assert tuple(made.weight.shape) == (2, 3)
    assert pywebgpu.nn.utils.convert_conv2d_weight_memory_format(made, pywebgpu.channels_last) is made
