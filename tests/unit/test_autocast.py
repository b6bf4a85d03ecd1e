"""autocast: the dtypes of what comes out, PyTorch's on the CPU's lists; where it is on, and what it leaves as it is."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as peer

import pywebgpu as torch
from pywebgpu.amp import autocast_mode
from tests.cases import autocast as cases
from tests.cases.autocast import AutocastCase
from tests.unit.replays import audited, same

pytestmark = pytest.mark.usefixtures("default_device")
HALVES = ("bfloat16", "float16")


@pytest.fixture(autouse=True)
def _off_afterwards() -> Iterator[None]:
    yield
    assert not torch.is_autocast_enabled("cpu")
    assert not torch.is_autocast_enabled("webgpu")


def called(library: Any, case: AutocastCase, device_type: str, half: str, **made: Any) -> Any:
    rng = np.random.default_rng(len(case.function))
    args = [library.tensor(rng.uniform(0.25, 1.0, shape).astype("float32"), **made) for shape in case.shapes]
    args[0] = args[0].to(getattr(library, half))
    where, _, name = case.function.rpartition(".")
    function = getattr(library.nn.functional if where else library, name)
    with library.autocast(device_type, dtype=getattr(library, half)):
        return function(*args, *case.extra, **dict(case.kwargs))


def named(wanted: str, half: str) -> str:
    return "float32" if wanted == cases.FLOAT32 else half


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("case", [case for case in cases.CALLS if case.cpu], ids=lambda case: case.name)
def test_the_cpus_lists_are_torchs(case: AutocastCase, half: str) -> None:
    wanted = called(peer, case, "cpu", half)
    found = called(torch, case, "cpu", half, device="cpu")
    assert str(found.dtype) == str(wanted.dtype) == f"torch.{named(case.cpu, half)}"
    unit = 2.0**-7 if half == "bfloat16" else 2.0**-10
    wanted_values = wanted.float().numpy()
    np.testing.assert_allclose(found.float().numpy(), wanted_values, rtol=4 * unit, atol=4 * unit)


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("case", cases.CALLS, ids=lambda case: case.name)
def test_a_gpus_lists_are_cudas(case: AutocastCase, half: str) -> None:
    assert str(called(torch, case, "cuda", half).dtype) == f"torch.{named(case.gpu, half)}"


def test_what_would_overflow_is_refused_with_the_way_out() -> None:
    with torch.autocast("cuda"), pytest.raises(RuntimeError, match="unsafe to autocast"):
        torch.nn.functional.binary_cross_entropy(torch.rand(3), torch.rand(3))


def test_a_block_inside_a_block_ends_where_it_began() -> None:
    x = torch.ones(2, 2)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert torch.get_autocast_dtype("cuda") is torch.bfloat16
        with torch.autocast("cuda", enabled=False):
            assert (x @ x).dtype is torch.float32
            with torch.autocast("cuda", dtype=torch.float16):
                assert (x @ x).dtype is torch.float16
        assert (x @ x).dtype is torch.bfloat16
    assert (x @ x).dtype is torch.float32


def test_switched_off_products_are_those_of_float32(device: str) -> None:
    x = torch.rand(17, 33, device=device)
    plain = (x @ x.T).tolist()
    with torch.autocast(device, dtype=torch.bfloat16), torch.autocast(device, enabled=False):
        assert (x @ x.T).tolist() == plain


def test_a_block_may_be_entered_again_and_a_function_decorated() -> None:
    cast = torch.autocast("cuda")

    @cast
    def product(x: Any, depth: int = 1) -> Any:
        return product(x, 0) if depth else x @ x

    assert product(torch.ones(2, 2)).dtype is torch.float16
    assert not torch.is_autocast_enabled("cuda")


def test_an_error_inside_ends_the_block() -> None:
    with pytest.raises(ZeroDivisionError), torch.autocast("cuda"):
        raise ZeroDivisionError


def test_other_devices_and_other_threads_are_left_alone(device: str) -> None:
    x, found = torch.ones(2, 2), []
    other = "cpu" if device != "cpu" else "null"
    with torch.autocast(other):
        assert (x @ x).dtype is torch.float32
    with torch.autocast(device):
        thread = threading.Thread(target=lambda: found.append((x @ x).dtype))
        thread.start()
        thread.join()
    assert found == [torch.float32]


def test_float64_and_whole_numbers_are_left_alone() -> None:
    x = torch.ones(2, 2, device="cpu", dtype=torch.float64)
    with torch.autocast("cpu"):
        assert (x @ x).dtype is torch.float64
        assert torch.ones(3, device="cpu", dtype=torch.int64).sum().dtype is torch.int64


def test_what_no_device_or_dtype_has_is_refused() -> None:
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'abacus'"):
        torch.autocast("abacus")
    with pytest.warns(UserWarning, match="target dtype is not supported"), torch.autocast("cpu", dtype=torch.int32):
        assert not torch.is_autocast_enabled("cpu")


def test_a_weights_gradient_is_float32_and_flows_through_the_cast() -> None:
    w = torch.full((2, 2), 0.1, requires_grad=True)
    with torch.autocast("cuda"):
        (torch.ones(2, 2) @ w).sum().backward()
    assert w.grad is not None
    assert w.grad.dtype is torch.float32
    assert w.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_switches_are_read_back() -> None:
    assert torch.get_autocast_dtype("cpu") is torch.bfloat16
    with torch.autocast("cuda", dtype=torch.bfloat16, cache_enabled=False):
        assert torch.get_autocast_dtype("cuda") is torch.bfloat16
        assert not torch.is_autocast_cache_enabled()
        torch.set_autocast_dtype("cuda", torch.float16)
        assert (torch.ones(1, 1) @ torch.ones(1, 1)).dtype is torch.float16
    assert torch.is_autocast_cache_enabled()
    assert autocast_mode.is_autocast_available("webgpu")


def test_older_names_are_the_same_switches() -> None:
    assert torch.get_autocast_cpu_dtype() is torch.bfloat16
    assert torch.get_autocast_gpu_dtype() is torch.float16
    torch.set_autocast_cpu_enabled(True)
    try:
        assert torch.is_autocast_cpu_enabled()
        assert (torch.ones(1, 1, device="cpu") @ torch.ones(1, 1, device="cpu")).dtype is torch.bfloat16
    finally:
        torch.set_autocast_cpu_enabled(False)


SCRIPT = """
import torch
from torch.cuda.amp import GradScaler, autocast
model = torch.nn.Linear(4, 4).to("cuda")
x = torch.ones(2, 4, device="cuda")
with autocast():
    assert model(x).dtype is torch.float16
with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
    assert model(x).dtype is torch.bfloat16
    assert model.to("cpu")(x.to("cpu")).dtype is torch.float32
"""


def test_a_program_for_cuda_casts_on_the_device_that_has_the_name(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "pywebgpu", "run", "--device", "cpu", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_checkpoints_are_computed_again_as_they_were() -> None:
    w = torch.full((2, 2), 0.1, requires_grad=True)
    x = torch.full((2, 2), 1.0 + 2**-9, requires_grad=True)
    seen = []

    def part(x: Any) -> Any:
        found = x @ w
        seen.append(found.dtype)
        return found

    with torch.autocast("cuda", dtype=torch.bfloat16):
        out = torch.utils.checkpoint.checkpoint(part, x, use_reentrant=False)
    out.sum().backward()
    assert seen == [torch.bfloat16] * 2


def test_a_function_with_its_own_gradient_runs_as_its_forward_did() -> None:
    seen: list[Any] = []

    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda")
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            seen.append((x @ x).dtype)
            return x * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(ctx: Any, grad: Any) -> Any:
            seen.append((ctx.saved_tensors[0] @ grad).dtype)
            return grad * 2

    class Wide(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
        def forward(ctx: Any, x: Any) -> Any:
            seen.append((x @ x).dtype)
            return x * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(ctx: Any, grad: Any) -> Any:
            seen.append((grad @ grad).dtype)
            return grad * 2

    x = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        first = Product.apply(x)
        second = Wide.apply(x.to(torch.float16))
    (first.sum() + second.sum()).backward()
    assert seen == [torch.bfloat16, torch.float32, torch.float32, torch.bfloat16]


# Captured steps


def autocast_inside(wrap: Any, make: Any) -> list[Any]:
    w = make([[0.1, 0.2], [0.3, 0.4]], requires_grad=True)
    kind = w.device.type

    def step(x: Any) -> Any:
        with torch.autocast(kind, dtype=torch.bfloat16):
            loss = (x @ w).exp().sum()
        loss.backward()
        return loss, w.grad

    compiled = wrap(step)
    return [compiled(make([[0.5 * n, 1.0], [0.0, n]])) for n in range(3)]


def autocast_around(wrap: Any, make: Any) -> list[Any]:
    w = make([[0.1, 0.2], [0.3, 0.4]])
    compiled, found = wrap(lambda x: (x @ w).float()), []
    for n in range(6):
        with torch.autocast(w.device.type, dtype=torch.bfloat16 if n % 2 else torch.float16, enabled=n < 4):
            found.append(compiled(make([[0.5 * n, 1.0], [0.0, n]])))
    return found


@pytest.mark.parametrize("program", [autocast_inside, autocast_around], ids=lambda program: program.__name__)
def test_a_captured_step_casts_as_the_call_did(program: Any, device: str) -> None:
    if device == "null":
        pytest.skip("device null computes no values")
    with audited("0"):
        assert same(program, device).counters["replays"] > 0


def test_casts_bias_and_residual_belong_to_the_product() -> None:
    x, residual = (torch.rand(16, 32, device="null") for _ in range(2))
    layer = torch.nn.Linear(32, 32, device="null")
    torch.webgpu.synchronize("null")
    with torch.autocast("null", dtype=torch.float16):
        out = layer(x) + residual
    (kernel,) = torch.explain(out).kernels
    assert kernel.op == "matmul"
    assert {"matmul", "add", "cast"} <= set(kernel.work)
    assert {line.spec.dtype.name for line in kernel.lines if line.op == "matmul"} == {"float16"}
