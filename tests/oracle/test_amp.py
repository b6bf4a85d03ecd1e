"""Training in mixed precision: the GPT learns as in float32, and its gradients are those of PyTorch's autocast."""

from typing import Any

import numpy as np
import pytest
import torch as peer

from tests.oracle import oracle
from tests.oracle.test_gpt_losses import batch, make, reference

N_STEPS = {"cpu": 200, "webgpu": 40}
UNITS = {"bfloat16": 2.0**-8, "float16": 2.0**-11}


def model_of(library: Any, device: str) -> Any:
    model = make(library.__name__).to(device)
    model.load_state_dict({name: library.tensor(value) for name, value in reference()[0].items()})
    return model


def losses(device: str, half: str | None, steps: int) -> list[float]:
    """A compiled training with what mixed precision brings; in float32 where `half` is None."""
    library = oracle.library()
    model = model_of(library, device)
    optimizer = library.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.99), weight_decay=0.1)
    scaler = library.amp.GradScaler(device, init_scale=2.0**12, enabled=half is not None)
    dtype = library.float32 if half is None else getattr(library, half)

    def step(inputs: Any, targets: Any) -> Any:
        optimizer.zero_grad()
        with library.autocast(device, dtype=dtype, enabled=half is not None):
            loss = model.loss(inputs, targets)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        library.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    compiled = library.compile(step)
    found = []
    for at in range(steps):
        found.append(compiled(*(library.tensor(part, device=device) for part in batch(at))).item())
    assert compiled.counters["replays"] >= steps - 20, compiled.reasons
    return found


@pytest.mark.one_in(2)
@pytest.mark.parametrize("half", UNITS)
def test_the_curve_of_losses_is_float32s(half: str, device: str) -> None:
    if device == "null":
        pytest.skip("device null computes no values")
    steps = N_STEPS[device]
    assert losses(device, half, steps) == pytest.approx(losses("cpu", None, steps), rel=1e-2)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("half", UNITS)
def test_gradients_are_as_near_to_float32s_as_torchs(half: str, device: str) -> None:
    """Held to what rounding does: our distance from float32's gradients is no more than twice PyTorch's, and a unit."""
    if device == "null":
        pytest.skip("device null computes no values")
    found = {}
    library = oracle.library()
    for name, module, place, is_on in (
        ("ours", library, device, True), ("theirs", peer, "cpu", True), ("wanted", peer, "cpu", False)
    ):  # fmt: skip
        model = model_of(module, place)
        with module.autocast(place, dtype=getattr(module, half), enabled=is_on):
            loss = model.loss(*(module.tensor(part, device=place) for part in batch(0)))
        loss.backward()
        found[name] = {key: np.array(value.grad.tolist()) for key, value in model.named_parameters()}
    for key, wanted in found["wanted"].items():
        size = np.abs(wanted).max()
        ours, theirs = (np.abs(found[who][key] - wanted).max() for who in ("ours", "theirs"))
        assert ours <= 2 * theirs + 2 * UNITS[half] * size, (key, ours, theirs, size)
