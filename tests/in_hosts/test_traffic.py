"""What crosses between the host and the device is counted, alike on every host, and is no more than was asked for."""

import pytest

import pywebgpu as torch
from pywebgpu import devices

MIB = 1 << 20


class Traffic:
    """What was counted since it was made, or asked last: bytes up, bytes down, writes."""

    def __init__(self) -> None:
        self.before = self.now()

    @staticmethod
    def now() -> list[int]:
        found = torch.memory.stats("webgpu")
        return [found[name] for name in ("uploaded_bytes", "downloaded_bytes", "writes")]

    def since(self) -> list[int]:
        before, self.before = self.before, self.now()
        return [now - then for now, then in zip(self.before, before, strict=True)]


def test_a_transfer_moves_its_bytes() -> None:
    data = bytearray(range(256)) * (MIB // 256)
    traffic = Traffic()
    x = torch.frombuffer(data, dtype=torch.int32).to("webgpu")
    torch.webgpu.synchronize("webgpu")
    assert traffic.since() == [MIB, 0, 1]
    assert x.tobytes() == data
    assert traffic.since() == [0, MIB, 0]
    assert x.to("webgpu") is x
    y = x.to(torch.float16)  # stays where it is
    torch.webgpu.synchronize("webgpu")
    assert traffic.since() == [0, 0, 0]
    assert y.shape == x.shape


@pytest.mark.pywebgpu_host("native")
def test_between_devices_a_value_goes_through_the_host() -> None:
    there = devices._open.setdefault("webgpu:6", devices._backend("webgpu").open_device(6))
    x = torch.ones(1000, device="webgpu")
    torch.webgpu.synchronize("webgpu")
    here, arrived = Traffic(), there.counters["uploaded_bytes"]
    assert x.to("webgpu:6").sum().item() == 1000
    assert here.since()[:2] == [0, 4000]
    assert there.counters["uploaded_bytes"] - arrived == 4000


def test_only_what_is_read_comes_back_in_the_order_asked_for() -> None:
    x = torch.arange(1000, dtype=torch.float32, device="webgpu")
    outputs = [x + 1, (x * 2)[:10], x[:3] - 5]
    torch.webgpu.synchronize("webgpu")
    traffic = Traffic()
    assert outputs[2].tolist() == [-5, -4, -3]
    assert traffic.since()[:2] == [0, 12]
    assert outputs[1].sum().item() == 90
    assert traffic.since()[:2] == [0, 4]


def test_a_replayed_step_writes_what_changed() -> None:
    model = torch.nn.Linear(4, 4).to("webgpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @torch.compile
    def step(x: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    x = torch.ones(2, 4, device="webgpu")
    for _ in range(20):
        step(x).item()
    traffic = Traffic()
    step(x).item()
    assert traffic.since() == [0, 4, 0], "weights, inputs and numbers are there already"
    optimizer.param_groups[0]["lr"] = 0.05
    step(x).item()
    assert traffic.since() == [0, 4, 1]
    for _ in range(3):  # The first two are captured with the batch from elsewhere.
        step(torch.frombuffer(bytearray(32), dtype=torch.float32).to("webgpu").reshape(2, 4)).item()
        found = traffic.since()
    assert found == [32, 4, 1]
