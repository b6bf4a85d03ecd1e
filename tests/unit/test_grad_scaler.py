"""GradScaler against PyTorch's: scales, skipped steps, step counts; no read of the host; captured and replayed."""

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
import torch as peer

import pywebgpu as torch
from tests.unit.replays import audited, plain, same
from tests.unit.test_optimizer import RULES

pytestmark = pytest.mark.usefixtures("default_device")

FACTORS = (1.0, math.inf, 1.0, 1.0, math.nan, math.inf, 1.0, 1.0, 1.0)


def setting(library: Any, rule: str, **made: Any) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    params = [
        library.tensor(rng.normal(size=shape).astype("float32"), requires_grad=True, **made) for shape in ((3, 2), (5,))
    ]
    name, options = RULES[rule]
    return params, getattr(library.optim, name)(params, **options)


def trained(library: Any, rule: str, **made: Any) -> tuple[list[float], Any, Any]:
    """The scales of some steps, of which some overflow; the parameters, and the step count, at the end."""
    params, optimizer = setting(library, rule, **made)
    scaler = library.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    scales = []
    for factor in FACTORS:
        optimizer.zero_grad()
        loss = sum((p * p).sum() for p in params) * library.tensor(factor, **made)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    state = optimizer.state_dict()["state"]
    return (
        scales,
        [p.detach().tolist() for p in params],
        float(state[0]["step"]) if "step" in state.get(0, {}) else None,
    )


@pytest.mark.one_in(webgpu=3)
@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "dampened"])  # Torch dampens all but the first.
def test_every_rule_skips_as_torchs(rule: str, device: str) -> None:
    if device == "null":
        pytest.skip("device null computes no values")
    scales, params, count = trained(torch, rule)
    wanted_scales, wanted, wanted_count = trained(peer, rule)
    assert scales == wanted_scales
    assert count == wanted_count
    for one, other in zip(params, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


def test_parameters_that_share_a_count_part_ways() -> None:
    params, optimizer = setting(torch, "adam", device="cpu")
    theirs, other = setting(peer, "adam")
    for library, ps, rule in ((torch, params, optimizer), (peer, theirs, other)):
        scaler = library.amp.GradScaler("cpu", init_scale=4.0)
        for step in range(4):
            rule.zero_grad()
            used = ps if step != 1 else ps[:1]
            scaler.scale(sum((p * p).sum() for p in used)).backward()
            scaler.step(rule)
            scaler.update()
        rule.step()
    for one, wanted in zip(params, theirs, strict=True):
        np.testing.assert_allclose(one.detach().tolist(), wanted.detach().tolist(), rtol=1e-5)
    states = [rule.state_dict()["state"] for rule in (optimizer, other)]
    assert [float(states[0][at]["step"]) for at in (0, 1)] == [float(states[1][at]["step"]) for at in (0, 1)] == [5, 4]


def test_a_state_dict_goes_on_elsewhere() -> None:
    params, optimizer = setting(torch, "adam", device="cpu")
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(sum((p * p).sum() for p in params)).backward()
    scaler.step(optimizer)
    scaler.update()
    _, other = setting(torch, "adam", device="cpu")
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert other.state_dict()["state"][0]["step"] == 1
    again = torch.amp.GradScaler("cpu")
    again.load_state_dict(scaler.state_dict())
    assert again.state_dict() == scaler.state_dict() == pickle.loads(pickle.dumps(scaler)).state_dict()
    assert again.state_dict()["_growth_tracker"] == 1


def test_nothing_waits_for_the_device(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    params, optimizer = setting(torch, "adamw")
    scaler = torch.amp.GradScaler()
    from pywebgpu.runtime import executor

    def refuse(*_: Any) -> None:
        raise AssertionError("a value was read")

    monkeypatch.setattr(executor, "read", refuse)
    for _ in range(3):
        optimizer.zero_grad()
        scaler.scale(sum((p * p).sum() for p in params)).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        scaler.step(optimizer)
        scaler.update()


def test_an_optimizer_of_the_programs_own_is_called_or_is_not() -> None:
    class Own(torch.optim.Optimizer):
        calls = 0

        def step(self) -> None:
            self.calls += 1

    x = torch.ones(2, device="cpu", requires_grad=True)
    own, scaler = Own([x], {}), torch.amp.GradScaler("cpu")
    for factor in (1.0, math.inf):
        own.zero_grad()
        scaler.scale((x * factor).sum()).backward()
        scaler.step(own)
        scaler.update()
    assert own.calls == 1


def test_unscaled_gradients_are_what_they_would_have_been() -> None:
    params, optimizer = setting(torch, "sgd", device="cpu")
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale(sum((p * p).sum() for p in params)).backward()
    scaler.unscale_(optimizer)
    for p in params:
        np.testing.assert_allclose(p.grad.tolist(), (2 * p.detach()).tolist())
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="being called after step"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="step\\(\\) has already been called"):
        scaler.step(optimizer)
    scaler.update(new_scale=3.0)
    assert scaler.get_scale() == 3.0


def test_what_cannot_be_scaled_is_refused() -> None:
    _, optimizer = setting(torch, "sgd", device="cpu")
    scaler = torch.amp.GradScaler("cpu")
    with pytest.raises(AssertionError, match="_scale is None"):
        scaler.step(optimizer)
    half = torch.ones(2, device="cpu", dtype=torch.float16, requires_grad=True)
    scaler.scale(half.sum()).backward()
    with pytest.raises(ValueError, match="FP16 gradients"):
        scaler.unscale_(torch.optim.SGD([half], lr=0.1))
    with pytest.raises(RuntimeError, match="Closure use"):
        scaler.step(optimizer, closure=lambda: 1.0)
    with pytest.raises(ValueError, match="Tensor or an iterable"):
        scaler.scale(3)
    with pytest.raises(AssertionError, match="growth factor"):
        torch.amp.GradScaler(growth_factor=1.0)


def test_one_that_is_off_passes_everything_on() -> None:
    params, optimizer = setting(torch, "sgd", device="cpu")
    scaler = torch.amp.GradScaler(enabled=False)
    before = params[0].tolist()
    loss = sum((p * p).sum() for p in params)
    assert scaler.scale(loss) is loss
    loss.backward()
    scaler.step(optimizer)
    scaler.update()
    assert params[0].tolist() != before
    assert scaler.state_dict() == {}
    assert scaler.get_scale() == 1.0


# Captured steps


def scaled_steps(wrap: Any, make: Any) -> list[Any]:
    model = torch.nn.Linear(2, 2).to(make([0.0]).device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(init_scale=8.0, growth_interval=2)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        with torch.autocast(x.device.type, dtype=torch.float16):
            loss = model(x).float().square().sum()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss

    compiled = wrap(step)
    found = [compiled(make([[factor, 2.0]])) for factor in FACTORS if not math.isnan(factor)]
    return [*found, plain(list(model.parameters())), scaler.get_scale(), scaler.state_dict()["_growth_tracker"]]


def test_a_captured_step_skips_and_counts_in_each_replay(device: str) -> None:
    if device == "null":
        pytest.skip("device null computes no values")
    with audited("0"):
        step = same(scaled_steps, device)
    assert step.counters["replays"] >= 6
    assert not step.reasons
