"""Values larger than one binding: right on both translators, under limits made small and at their real size."""

import json
from dataclasses import replace
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.errors import CompileError, DeviceError
from pywebgpu.kernels.kernel import Limits
from pywebgpu.nn import functional
from tests import sampling
from tests.devices import why_no_webgpu
from tests.hosts import windows
from tests.hosts.host import HOSTS

Outcomes = dict[str, dict[str, list[list[float]] | str]]


def outcomes(host: str, cases: list[str]) -> Outcomes:
    found = HOSTS[host]
    if found.missing():
        pytest.skip(found.missing())
    text = found.results("windows.py", found.device, "results", *cases, result="results")
    values: Outcomes = json.loads(text)
    return values


@pytest.fixture(scope="module")
def reference() -> Outcomes:
    """Device cpu's, which has no bindings."""
    return outcomes("cpu", [*windows.CASES])


@pytest.mark.parametrize(("host", "start"), [("native", 0), ("node", 2)])
def test_values_of_several_windows_are_right(
    host: str, start: int, reference: Outcomes, pytestconfig: pytest.Config
) -> None:
    names = sampling.part(pytestconfig, [*windows.CASES], 4, start)
    found = outcomes(host, names)
    for limits in reference:
        computed = 0
        for name in names:
            expected = reference[limits][name]
            got = found[limits][name]
            if isinstance(got, str):  # It would take more windows than the bindings that there are.
                assert limits != "two_of_eight", (name, got)
                assert "more bindings" in got, (limits, name, got)
                continue
            computed += 1
            for ours, theirs in zip(got, expected, strict=True):
                assert ours == pytest.approx(theirs, rel=1e-4, abs=1e-5), (limits, name)
        assert computed >= len(names) // 3, limits


@pytest.fixture
def least(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The GPU with what WebGPU promises everywhere: 8 bindings of 128 MiB."""
    if why_no_webgpu():
        pytest.skip(why_no_webgpu())
    device: Any = devices.open_device("webgpu")
    monkeypatch.setattr(device, "target", replace(device.target, limits=Limits(emulated=device.target.limits.emulated)))
    return device


VOCABULARY, WIDTH = 50_257, 768  # of GPT-2: 154 MB


def test_the_vocabulary_of_gpt2_is_trained(least: Any) -> None:
    """Embedding, tied head, gradient and AdamW: against what one step does to the rows that occur and to one other."""
    ids, targets = [3001 * i % VOCABULARY for i in range(8)], [7919 * i % VOCABULARY for i in range(1, 9)]
    finals = []
    for device in ("cpu", "webgpu"):
        torch.manual_seed(0)
        table = torch.nn.Parameter((torch.randn(VOCABULARY, WIDTH, device="cpu") * 0.02).to(device))
        optimizer = torch.optim.AdamW([table], lr=1e-3)
        given, wanted = (torch.tensor(values, device=device) for values in (ids, targets))
        loss = functional.cross_entropy(table[given] @ table.t(), wanted)
        loss.backward()
        optimizer.step()
        rows = torch.tensor([*ids, *targets, VOCABULARY - 1], device=device)
        finals.append([loss.item(), *table.detach()[rows].reshape(-1).cpu().tolist()])
    assert finals[1] == pytest.approx(finals[0], rel=1e-4, abs=1e-5)


@pytest.mark.long("moves hundreds of megabytes, as the vocabulary does")
def test_scores_of_one_head_over_6000_tokens(least: Any) -> None:
    """144 MB of scores, and their gradient."""
    finals = []
    for device in ("cpu", "webgpu"):
        q, k, v = (windows.numbers(6000, 8, seed=seed).to(device).requires_grad_() for seed in (1, 2, 3))
        out = (q @ k.t()).softmax(-1) @ v
        (out * out).sum().backward()
        parts = [tensor.detach()[::997].reshape(-1).cpu().tolist() for tensor in (out, q.grad, k.grad, v.grad)]
        finals.append([number for part in parts for number in part])
    assert finals[1] == pytest.approx(finals[0], rel=1e-3, abs=1e-4)


def test_a_value_larger_than_a_buffer_names_itself_and_the_limit(least: Any) -> None:
    text = r"a value of float32\[70000, 1024\] takes 286720000 bytes, more than the 268435456 of this device's largest"
    column, row = torch.zeros(70_000, 1, device="webgpu"), torch.zeros(1, 1024, device="webgpu")
    large = column + row
    with pytest.raises(CompileError, match=f"add: {text}"):
        large.cpu()
    with pytest.raises(DeviceError, match=f"webgpu: {text}"):
        torch.zeros(70_000, 1024, device="webgpu")
    with pytest.raises(DeviceError, match=f"webgpu: {text}"):
        torch.zeros(70_000, 1024, device="cpu").to("webgpu")
