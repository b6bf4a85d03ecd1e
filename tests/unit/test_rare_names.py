"""Names that few programs use, in their modules: the same answers as PyTorch's, or what holds of one device."""

import subprocess
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import pywebgpu

Ask = Callable[[Any], object]


@pytest.fixture(autouse=True)
def _on_the_host() -> Iterator[None]:
    with pywebgpu.device("cpu"):
        yield


def answer(ask: Ask, library: Any) -> object:
    """What it gives, or the error that it raises, and what is warned of."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = ask(library)
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
    return found, [f"{one.category.__name__}: {one.message}" for one in said]


def swapped(library: Any) -> object:
    layer = library.nn.Linear(2, 2, bias=False)
    weight = layer.weight
    library.utils.swap_tensors(layer.weight, library.nn.Parameter(library.ones(3, 2)))
    out = layer(library.ones(1, 2))
    out.sum().backward()
    one, other = library.ones(2), library.nn.Parameter(library.zeros(3))
    one.mark, other.grad = 3, library.ones(3)
    library.utils.swap_tensors(one, other)
    kinds = type(one).__name__, type(other).__name__, one.requires_grad, other.requires_grad
    return out.tolist(), weight is layer.weight, weight.grad.tolist(), kinds, other.mark, one.grad.tolist()


def swapped_under_a_weak_reference(library: Any) -> None:
    one = library.ones(2)
    reference = weakref.ref(one)
    library.utils.swap_tensors(one, library.ones(3))
    assert reference() is one


def moved(library: Any) -> str:
    kind = type("Kind", (), {})
    library.utils.set_module(kind, "a.b")
    return kind.__module__


def streams(library: Any) -> list[bool]:
    cpu = library.cpu
    mine, before = cpu.Stream(), cpu.current_stream()
    seen = []
    with cpu.stream(mine), cpu.StreamContext(None):
        seen.append(cpu.current_stream() is mine)
        mine.wait_stream(before)
    return [*seen, cpu.current_stream() is before, cpu.Event().query()]


ASKED: dict[str, Ask] = {
    "eye": lambda t: t.nn.init.eye(t.zeros(2, 2)).tolist(),
    "dirac": lambda t: t.nn.init.dirac(t.zeros(2, 2, 3), 2).tolist(),
    "sparse": lambda t: t.nn.init.sparse(t.ones(3, 2), 1.0).tolist(),
    "constant": lambda t: t.nn.init.constant(t.zeros(2), 3.0).tolist(),
    "xavier_normal": lambda t: t.nn.init.xavier_normal(t.zeros(2), 3.0),
    "is_lazy": lambda t: [t.nn.parameter.is_lazy(one) for one in (t.nn.LazyLinear(2).weight, t.ones(2))],
    "uninitialized": lambda t: len(t.nn.parameter.UninitializedParameter().shape),
    "factory_kwargs": lambda t: t.nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"dtype": 3}}),
    "factory_kwargs_of_none": lambda t: t.nn.factory_kwargs(None),
    "factory_kwargs_unknown": lambda t: t.nn.factory_kwargs({"size": 2}),
    "factory_kwargs_twice": lambda t: t.nn.factory_kwargs({"dtype": 1, "factory_kwargs": {"dtype": 3}}),
    "swap_tensors": swapped,
    "swap_tensors_refused": swapped_under_a_weak_reference,
    "set_module": moved,
    "set_module_wrong": lambda t: t.utils.set_module(int, 3),
    "detach_variable_of_a_list": lambda t: t.utils.checkpoint.detach_variable([3]),
    "check_backward_validity": lambda t: t.utils.checkpoint.check_backward_validity([t.ones(2)]),
    "device_type": lambda t: (
        t.utils.checkpoint.DefaultDeviceType.set_device_type("cpu"),
        t.utils.checkpoint.DefaultDeviceType.get_device_type(),
    ),
    "cpu": lambda t: (t.cpu.is_available(), t.cpu.is_initialized(), t.cpu.device_count(), t.cpu.current_device()),
    "cpu_set": lambda t: (t.cpu.set_device(0), t.cpu.synchronize()),
    "cpu_streams": streams,
    "cpu_architecture": lambda t: t.cpu.get_capabilities()["architecture"],
    "mps": lambda t: (t.mps.is_available(), t.mps.device_count(), t.mps.manual_seed(3)),
    "cuda_lists": lambda t: (t.cuda.get_arch_list(), t.cuda.get_gencode_flags(), t.cuda.is_tf32_supported()),
    "cuda_blocks": lambda t: [t.cuda.device_of(t.ones(2)).__enter__(), t.cuda.StreamContext(None).__enter__()],
    "cuda_memory": lambda t: [dict(t.cuda.host_memory_stats()), t.cuda.memory_stats_as_nested_dict()],
    "cuda_errors": lambda t: [issubclass(t.cuda.CudaError, RuntimeError), t.cuda.DeferredCudaCallError.__bases__],
    "sharing": lambda t: (t.multiprocessing.get_sharing_strategy(), t.multiprocessing.get_all_sharing_strategies()),
    "is_distributed": lambda t: (t.is_distributed(t.ones(1)), t.ones(1).is_distributed()),
    "number": lambda t: [isinstance(one, t.types.Number) for one in (1, 1.0, True, "1", None)],
    "modes": lambda t: (
        t.nn.functional.GRID_SAMPLE_INTERPOLATION_MODES,
        t.nn.functional.GRID_SAMPLE_PADDING_MODES,
        t.nn.functional.has_torch_function((t.ones(1),)),
    ),
    "threads": lambda t: t.autograd.set_multithreading_enabled(False).__enter__(),
    "tbc_of_a_matrix": lambda t: t.conv_tbc(t.ones(2, 2), t.ones(2, 2, 2), t.ones(2)) is None,
}
KINDS = {"cuda_errors", "uninitialized", "tbc_of_a_matrix"}  # Of these PyTorch's own words and classes are others.


@pytest.mark.parametrize("name", ASKED)
def test_answers_are_torchs(name: str) -> None:
    found, expected = (answer(ASKED[name], library) for library in (pywebgpu, torch))
    if name in KINDS:
        found, expected = (str(one[0]).partition(":")[0] for one in (found, expected))
    assert found == expected


def test_one_device_is_scattered_and_gathered() -> None:
    parallel, x = pywebgpu.nn.parallel, pywebgpu.ones(2, 3)
    assert parallel.scatter(x, [0])[0] is x
    assert parallel.scatter((x, {"a": x}), [0]) == [(x, {"a": x})]
    with pytest.raises(NotImplementedError, match="one device"):
        parallel.scatter(x, [0, 1])
    layer = pywebgpu.nn.Linear(3, 2)
    assert parallel.replicate(layer, [0]) == [layer]
    outs = parallel.parallel_apply([layer, layer], [x, (x,)], [{}, {}])
    joined = parallel.gather([{"y": out, "n": [out.sum()]} for out in outs], 0)
    assert (tuple(joined["y"].shape), tuple(joined["n"][0].shape)) == ((4, 2), (2,))
    assert parallel.gather([None, None], 0) is None
    with pytest.raises(ValueError, match="keys"):
        parallel.gather([{"a": x}, {}], 0)
    with pytest.raises(AssertionError, match="modules 1"):
        parallel.parallel_apply([layer], [x, x])


def test_the_accelerator_tells_of_the_default_device() -> None:
    accelerator, x = pywebgpu.accelerator, pywebgpu.ones(1000) + 1
    x.sum().item()
    found = accelerator.memory_stats()
    assert found["allocated_bytes.all.current"] == accelerator.memory_allocated() > 0
    assert found["reserved_bytes.all.current"] == accelerator.memory_reserved() >= accelerator.memory_allocated()
    assert accelerator.max_memory_reserved() >= accelerator.memory_reserved()
    assert pywebgpu.float32 in accelerator.get_device_capability()["supported_dtypes"]
    assert pywebgpu.float64 not in accelerator.get_device_capability("null")["supported_dtypes"]
    accelerator.reset_peak_memory_stats()
    with accelerator.device_index(0), accelerator.device_index(None):
        assert accelerator.current_device_index() == 0
    for call in (accelerator.current_device_idx, lambda: accelerator.set_device_idx(0)):
        with pytest.warns(FutureWarning, match="Use `"):
            call()
    with pytest.raises(RuntimeError, match="no accelerator 3"):
        accelerator.device_index(3).__enter__()
    with pytest.raises(RuntimeError, match="when none is available"):
        accelerator.current_stream()


PROGRAM = """
import torch
x = torch.ones(1000, device="mps") + 1
x.sum().item()
assert not torch.mps.is_available()
torch.mps.synchronize(), torch.mps.empty_cache(), torch.mps.manual_seed(1)
assert torch.mps.driver_allocated_memory() >= torch.mps.current_allocated_memory() > 0
assert torch.mps.recommended_max_memory() > 0
stats = torch.cuda.memory_stats_as_nested_dict()
assert stats["allocated_bytes"]["all"]["current"] == torch.cuda.memory_allocated()
assert torch.cuda.get_sync_debug_mode() == 0 and not torch.cuda.is_current_stream_capturing()
torch.cuda.set_sync_debug_mode("default"), torch.cuda.set_stream(torch.cuda.Stream())
try:
    torch.cuda.set_sync_debug_mode("warn")
except NotImplementedError as error:
    print(error)
from torch.cpu.amp import autocast
from torch.utils.data.distributed import DistributedSampler
print(torch.accelerator.current_stream(), torch.accelerator.set_stream(None))
"""


def test_programs_of_pytorch_ask_their_devices() -> None:
    command = [sys.executable, "-c", "import pywebgpu.as_torch\n" + PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "torch.profiler" in done.stdout


def test_metal_is_refused_where_no_device_has_its_name() -> None:
    with pytest.raises(RuntimeError, match="without MPS backend"):
        pywebgpu.mps.synchronize()
    with pytest.raises(NotImplementedError, match="Metal's own"):
        pywebgpu.mps.compile_shader("kernel")
