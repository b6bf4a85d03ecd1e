"""Memory that tensors of device cpu share with NumPy and other libraries, as PyTorch's share it; addresses."""

import copy
import ctypes
import gc
import mmap
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as peer

import pywebgpu as torch
from pywebgpu.runtime import fixed_memory

SIZES = (4, fixed_memory.SMALL)  # elements: held twice, and once


@pytest.fixture(autouse=True)
def on_the_host() -> Iterator[None]:
    with torch.device("cpu"):
        yield


def array(n: int) -> np.ndarray:
    return np.arange(n, dtype="float32")


# Programs that write on either side, and say what they see there.


def written_by_numpy(library: Any, n: int) -> list[Any]:
    a = array(n)
    t = library.from_numpy(a)
    before, alias = t * 2, t[1:]
    a[:2] = 5
    return [before[:3], t[:3], (t + 1)[:3], alias[0], alias.sum()]


def written_by_the_tensor(library: Any, n: int) -> list[Any]:
    a = array(n)
    t = library.from_numpy(a)
    seen = []
    t.add_(1)
    seen.append(a[:4].tolist())
    t[1:3].mul_(3)
    seen.append(a[:4].tolist())
    t.view(2, -1).t()[0] = -1
    seen.append(a[:4].tolist())
    t.copy_(library.ones(n))
    t.zero_()[0] = 7
    return [*seen, a[:4].tolist(), a.sum().item()]


def exported(library: Any, n: int) -> list[Any]:
    t = library.ones(n)
    a = t.numpy()
    b = np.asarray(t[1:3])
    a[1] = 8
    t += 1
    b[1] = -4
    return [a[:4].tolist(), b.tolist(), t[:4], t.sum()]


def a_view_exported(library: Any, n: int) -> list[Any]:
    t = library.arange(n).reshape(2, -1).t()
    a = t.numpy()
    a[0, 1] = 77
    t[1, 0] = -3
    column = t[:, 1].numpy()
    column[1] = 5
    return [list(a.shape), a[:2].tolist(), t[:2], t[:, None].expand(-1, 3, -1).numpy()[0].tolist()]


def temporary_arrays(library: Any, n: int) -> list[Any]:
    t = library.zeros(n)
    for at in range(3):
        t.numpy()[at] = at + 1
    return [t[:4], (t + t)[:4]]


def gradients_of_what_was_there(library: Any, n: int) -> list[Any]:
    a = array(n)
    w = library.ones(n, requires_grad=True)
    x = library.from_numpy(a)
    (w * x).sum().backward()
    (extra,) = library.autograd.grad((w * w * x).sum(), w)
    a[:] = 99
    return [w.grad[:3], extra[:3]]


def several_results(library: Any, n: int) -> list[Any]:
    a = array(n)
    x = library.from_numpy(a).view(2, -1)
    values, indices = x.max(1)
    parts = library.aminmax(x)
    spread, centre = library.std_mean(x[:, :2], 1)
    a[:] = 0
    return [values, indices, *parts, spread, centre]


def strides_of_arrays(library: Any, n: int) -> list[Any]:
    a = np.asfortranarray(array(n).reshape(2, -1))
    b = array(n)[::2]
    t, u = library.from_numpy(a), library.from_numpy(b)
    a[1, 1], b[1] = 50, 60
    t[0, 0], u[0] = -1, -2
    rows = library.from_numpy(np.broadcast_to(np.float32([[1], [2]]).copy(), (2, 2)).copy())
    return [t.stride(), u.stride(), t[:, :2], u[:2], a[:, :2].tolist(), b[:2].tolist(), rows]


def made_by_other_functions(library: Any, n: int) -> list[Any]:
    a, b, c, d = (array(n) for _ in range(4))
    made = [
        library.as_tensor(a),
        library.asarray(b),
        library.from_dlpack(c),
        library.frombuffer(d, dtype=library.float32),
    ]
    copies = [library.tensor(a), library.asarray(b, copy=True), library.as_tensor(c, dtype=library.float64)]
    for each in (a, b, c, d):
        each[0] = 9
    return [x[:2] for x in (*made, *copies)]


def of_bytes(library: Any, n: int) -> list[Any]:
    data = bytearray(array(n).tobytes())
    whole = library.frombuffer(data, dtype=library.float32)
    part = library.frombuffer(data, dtype=library.int32, count=1, offset=4)
    data[4:8] = (7).to_bytes(4, "little")
    whole[0] = 1
    return [part, whole[0], list(data[:8])]


def between_tensors(library: Any, n: int) -> list[Any]:
    t = library.ones(n)
    u = library.from_dlpack(t)
    v = library.utils.dlpack.from_dlpack(library.utils.dlpack.to_dlpack(t))
    t[0], u[1], v[2] = 4, 5, 6
    return [t[:4], u[:4], v[:4]]


def storages(library: Any, n: int) -> list[Any]:
    t = library.arange(n, dtype=library.int32)
    memory, typed = t.untyped_storage(), t.storage()
    memory[0] = 5
    typed[1] = 9
    memory[8:12].fill_(1)
    u = library.zeros(0, dtype=library.int32).set_(typed, 1, (2,), (1,))
    u.fill_(3)
    facts = [memory.nbytes(), memory.size(), len(typed), typed.nbytes(), memory.element_size(), typed.type()]
    return [t[:4], u, *facts, memory[:6].tolist(), memory[0], typed[3], memory == t[1:].untyped_storage()]


def versions(library: Any, n: int) -> list[Any]:
    a = array(n)
    t = library.from_numpy(a)
    first = t._version
    a[0] = 3
    t.add_(1)
    t.numpy()[0] = 1
    return [first, t._version]


PROGRAMS = [
    written_by_numpy, written_by_the_tensor, exported, a_view_exported, temporary_arrays, gradients_of_what_was_there,
    several_results, strides_of_arrays, made_by_other_functions, of_bytes, between_tensors, storages, versions,
]  # fmt: skip


def plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor | peer.Tensor):
        return value.tolist()
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_writes_on_either_side_are_seen(program: Callable[[Any, int], list[Any]], size: int) -> None:
    assert plain(program(torch, size)) == plain(program(peer, size))


@pytest.mark.parametrize("size", SIZES)
def test_compiled_functions_read_what_is_there(size: int) -> None:
    a, b = array(size), array(size)
    t, u = torch.from_numpy(a), torch.from_numpy(b)

    @torch.compile
    def step(x: torch.Tensor) -> torch.Tensor:
        u.add_(x)
        return x * 3

    for number in range(5):
        before = b[1]
        a[:] = number
        assert step(t)[1].item() == 3 * number
        assert b[1] == before + number


@pytest.mark.parametrize("size", SIZES)
def test_addresses_are_true_and_stay(size: int) -> None:
    t = torch.arange(float(size))
    pointer = t.data_ptr()
    words = (ctypes.c_float * size).from_address(pointer)
    assert list(words[:4]) == [0, 1, 2, 3]
    assert (t[3:].data_ptr() - pointer, t.view(2, -1).data_ptr() - pointer) == (12, 0)
    t.add_(1)
    t[1] = 9
    with torch.no_grad():
        t *= 2
    assert t.data_ptr() == pointer == t.untyped_storage().data_ptr()
    assert list(words[:4]) == [2, 18, 6, 8]
    assert torch.ones(0).data_ptr() == 0 == torch.ones(2, device="meta").data_ptr()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e5m2, torch.complex32, torch.bool, torch.int64])
def test_bytes_at_an_address_are_those_of_the_dtype(dtype: torch.dtype) -> None:
    t = torch.tensor([1.0, 0.0, 2.0]).to(dtype)
    count = 3 * dtype.itemsize
    assert bytes((ctypes.c_ubyte * count).from_address(t.data_ptr())) == t.tobytes()


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8, torch.bfloat16, torch.bool])
@pytest.mark.parametrize("count", [1, 8, 1 << 18])
def test_what_others_write_at_the_address_of_new_memory_is_seen(dtype: torch.dtype, count: int, device: str) -> None:
    new = torch.empty(count, dtype=dtype, device="cpu", pin_memory=True)
    address = new.data_ptr()
    for number in (1, 0, 1):
        data = torch.full((count,), number).to(dtype).tobytes()
        ctypes.memmove(address, data, len(data))
        assert new.to(device).tobytes() == new.tobytes() == data
    new.zero_()
    assert not new.to(device).float().any().item()


def test_training_goes_on_where_parameters_have_addresses_and_arrays() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    same = copy.deepcopy(model)
    shown = model[0].weight.detach().numpy()
    pointers = [parameter.data_ptr() for parameter in model.parameters()]
    assert len(set(pointers)) == 4
    x = torch.randn(8, 3)
    for both in zip(model.parameters(), same.parameters(), strict=True):
        assert both[0].tolist() == both[1].tolist()
    optimizers = [torch.optim.Adam(each.parameters(), lr=0.1) for each in (model, same)]
    for _ in range(4):
        for each, optimizer in zip((model, same), optimizers, strict=True):
            optimizer.zero_grad()
            each(x).square().mean().backward()
            optimizer.step()
        assert shown.tolist() == model[0].weight.tolist() == same[0].weight.tolist()


def test_arrays_that_are_gone_leave_no_trace() -> None:
    t = torch.ones(fixed_memory.SMALL)
    for _ in range(2):
        shown = t.numpy()
        assert t._storage.is_shared
        del shown
        gc.collect()
        (t + 1).sum().item()
        assert not t._storage.is_shared


def test_arrays_of_no_tensor_are_refused() -> None:
    a = array(4)
    for library in (torch, peer):
        with pytest.raises(ValueError, match="At least one stride in the given numpy array is negative"):
            library.from_numpy(a[::-1])
        with pytest.raises(TypeError, match=r"expected np\.ndarray"):
            library.from_numpy([1])
        with pytest.raises(TypeError, match=r"can.t convert np\.ndarray of type"):
            library.from_numpy(np.array(["a"]))
        with pytest.raises(ValueError, match="byte order different from the native"):
            library.from_numpy(a.astype(">f4"))
        with pytest.raises(ValueError, match="can't alias arbitrary sequence"):
            library.asarray([1, 2], copy=False)
        with pytest.raises(ValueError, match="can't alias tensor with dtype 'Float' into dtype 'Double'"):
            library.asarray(library.from_numpy(a), dtype=library.float64, copy=False)
        w = library.ones(2, requires_grad=True)
        with pytest.raises(RuntimeError, match="Can't call numpy"):
            w.numpy()
        with library.no_grad():
            assert w.numpy().tolist() == [1, 1]


def test_files_are_storages(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(array(6).tobytes())
    for library in (torch, peer):
        private = library.UntypedStorage.from_file(str(path), shared=False, nbytes=24)
        t = library.asarray(private[4:12], dtype=library.uint8).view(library.float32)
        assert t.tolist() == [1, 2]
        t[0] = 5
        assert array(6).tobytes() == path.read_bytes()
    shared = torch.UntypedStorage.from_file(path, shared=True, nbytes=24)
    torch.zeros(0).set_(shared)[1] = 7
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        assert np.frombuffer(data[:], "float32").tolist() == [0, 7, 2, 3, 4, 5]
    del shared


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_storages_have_pytorchs_text_and_types() -> None:
    for make in (
        lambda library: library.UntypedStorage([1, 2]),
        lambda library: library.UntypedStorage(0),
        lambda library: library.FloatStorage([1, 2.5]),
        lambda library: library.LongStorage([3]).float(),
        lambda library: library.ones(2, device="meta").untyped_storage(),
        lambda library: [library.FloatStorage(3).size(), library.UntypedStorage(4).nbytes(), library.FloatStorage],
        lambda library: isinstance(library.ones(2).storage(), library.FloatStorage),
        lambda library: isinstance(library.ones(2).storage(), library.IntStorage),
        lambda library: isinstance(library.ones(2).storage(), library.TypedStorage),
        lambda library: library.FloatTensor(library.FloatStorage([1, 2])),
        lambda library: copy.deepcopy(library.ones(2).untyped_storage()),
        lambda library: [library.is_storage(x) for x in (library.FloatStorage(1), library.UntypedStorage(1), 1)],
    ):
        assert repr(make(torch)) == repr(make(peer))
    x = torch.ones(3)
    assert x.untyped_storage() is x[1:].untyped_storage()


def test_memory_of_devices_has_no_address(device: str) -> None:
    if device == "cpu":
        pytest.skip("its memory has addresses")
    x = torch.ones(4, device=device)
    pointer = x.data_ptr()
    assert pointer == x.view(2, 2).data_ptr() != torch.ones(4, device=device).data_ptr()
    assert x[1:].data_ptr() - pointer == 4
    assert len({pointer, x.detach().data_ptr(), x[1:].data_ptr()}) == 2
    for use in (
        ctypes.c_void_p,
        hex,
        lambda value: (ctypes.c_ubyte * 4).from_address(value),
        sys.getrefcount.__class__,
    ):
        with pytest.raises((TypeError, ctypes.ArgumentError)):
            use(pointer)


@pytest.mark.parametrize("size", [3, 300])
def test_a_look_at_the_values_leaves_gradients(size: int) -> None:
    """Of a leaf, of what was computed, and of what func.grad differentiates by."""
    for make in (lambda: torch.ones(size, size), lambda: torch.ones(size, size) * 1, lambda: torch.rand(size, size)):
        leaf = make().requires_grad_()
        loss = (leaf * 2).sum()
        leaf.detach().numpy()
        assert torch.autograd.grad(loss, leaf)[0].unique().tolist() == [2.0]

        def looked(x: Any) -> Any:
            total = (x * 3).sum()
            x.detach().numpy()
            return total

        assert torch.func.grad(looked)(make()).unique().tolist() == [3.0]


@pytest.mark.parametrize("size", [3, 300])
@pytest.mark.parametrize(
    "write",
    [lambda y: y.data.fill_(3), lambda y: torch.no_grad()(y.fill_)(3), lambda y: y.detach().mul_(2)],
    ids=["data", "no_grad", "detached"],
)
def test_a_write_past_autograd_keeps_the_history_of_what_has_an_array(size: int, write: Any) -> None:
    leaf = torch.ones(size, size).requires_grad_()
    y = leaf * 2
    array = y.detach().numpy()
    write(y)
    assert y.requires_grad
    assert np.all(array == y.detach().numpy())
    assert torch.autograd.grad(y.sum(), leaf)[0].unique().tolist() == [2.0]


@pytest.mark.parametrize("dtype", ["int32", "int16", "uint8", "float64"])
@pytest.mark.parametrize("name", ["computed", "whole", "part", "turned", "channels last"])
def test_another_dtype_of_what_lies_otherwise_has_its_bits(name: str, dtype: str) -> None:
    """As results of transposed operands lie, which say so by their strides."""
    base = torch.arange(24.0, device="cpu").reshape(4, 6)
    x = base.T if name == "whole" else base.reshape(1, 2, 3, 4).to(memory_format=torch.channels_last) + 1
    x = x if name in ("whole", "channels last") else base.T * 1
    x = x.T if name == "turned" else x[1:, 2:] if name == "part" else x
    other = getattr(torch, dtype)
    if other.itemsize != 4 and x.stride(-1) != 1:
        with pytest.raises(RuntimeError, match="stride"):
            x.view(other)
        return
    assert np.array_equal(x.view(other).numpy(), x.numpy().copy(order="C").view(dtype))
    if other.itemsize == 4 and name not in ("part", "turned"):
        assert x.view(other).stride() == x.stride()


def test_older_orders_of_arguments_are_warned_of_once() -> None:
    x = torch.ones(2)
    with pytest.warns(UserWarning, match="This overload of addcdiv is deprecated"):
        torch.addcdiv(x, 2, x, x)
    assert torch.addcdiv(x, 2, x, x).tolist() == [3, 3]  # A warning is an error here.
