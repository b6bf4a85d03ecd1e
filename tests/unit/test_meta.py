"""Device meta: shapes, dtypes and strides of every call are those of device cpu, and no value can be asked for."""

import copy
import io
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch as peer

import pywebgpu as torch
from pywebgpu import devices, nn
from tests.cases import run
from tests.cases.case import FLOATING, Case, arrays
from tests.cases.tables import AREAS, RAISING, TABLES

REFUSALS = (RuntimeError, TypeError, ValueError)
# What PyTorch computes the shapes of, and this library does not.
READS_VALUES = {
    "tensor_of_zero_dims": "the numbers of a list are read",
    "set_mask_and_tensor_scalar": "a mask beside numbers of rows is read",
    "set_mask_and_tensor_by_tensor": "a mask beside numbers of rows is read",
    "linalg.ldl_solve": "pivots are read",
    "ctc_loss_none": "the labels are read",
    "ctc_loss_mean": "the labels are read",
    "ctc_loss_sum": "the labels are read",
    "ctc_loss_impossible": "the labels are read",
    "saved": "PyTorch's file says other strides of a complex tensor's parts",
    "from_numpy_strided": "what NumPy made is on the host",
}


def _outputs(library: Any, case: Case, device: str) -> list[Any]:
    """What is known of the results without values."""
    with run.default_device(library, "cpu"):
        tensors = [
            run.send(library, array, item.dtype, "cpu") for item, array in zip(case.inputs, arrays(case), strict=True)
        ]
    library.set_default_device(device)
    try:
        tensors = [tensor.to(device) for tensor in tensors]
        for item, tensor in zip(case.inputs, tensors, strict=True):
            if case.grad and item.needs_grad and item.dtype in FLOATING:
                tensor.requires_grad_()
        return [_facts(library, leaf) for leaf in run.leaves(library, case.fn(library, *tensors))]
    finally:
        library.set_default_device(None)


def _facts(library: Any, leaf: Any) -> Any:
    if not isinstance(leaf, library.Tensor):
        return type(leaf) if isinstance(leaf, float | bool) else leaf  # Which are of values, or of addresses.
    strides = leaf.stride() if leaf.layout is library.strided else None
    return tuple(leaf.shape), leaf.dtype, strides, leaf.requires_grad


@pytest.mark.parametrize("area", [area for area in AREAS if area not in (*RAISING, "testing")])
def test_shapes_and_dtypes_and_strides_are_those_of_device_cpu(area: str) -> None:
    """What needs values is refused where PyTorch refuses it."""
    wrong = []
    for case in TABLES[area]:
        if "cpu" not in case.devices or case.name in READS_VALUES:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = _outputs(torch, case, "cpu")
            try:
                result = _outputs(torch, case, "meta")
            except REFUSALS as error:
                if not _refused(case):
                    wrong.append((case.name, error))
            else:
                wrong += [(case.name, pair) for pair in zip(result, expected, strict=True) if pair[0] != pair[1]]
    assert not wrong


def _refused(case: Case) -> bool:
    try:
        _outputs(peer, case, "meta")
    except REFUSALS:
        return True
    return False


def _raised(call: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises((RuntimeError, TypeError)) as caught:
        call()
    return type(caught.value).__name__, str(caught.value)


VALUES_ASKED_FOR = {
    "item": lambda x: x[0, 0].item(),
    "bool": lambda x: bool(x[0, 0]),
    "int": lambda x: int(x[0, 0]),
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.numpy(),
    "numpy_by_force": lambda x: x.numpy(force=True),
    "array": np.asarray,
    "cpu": lambda x: x.cpu(),
    "to": lambda x: x.to("cpu"),
}


@pytest.mark.parametrize("name", VALUES_ASKED_FOR)
def test_values_are_refused_as_pytorch_refuses_them(name: str) -> None:
    call = VALUES_ASKED_FOR[name]
    assert _raised(lambda: call(torch.ones(2, 3, device="meta"))) == _raised(
        lambda: call(peer.ones(2, 3, device="meta"))
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda library: library.ones(2, 3, device="meta"),
        lambda library: library.ones((), device="meta", dtype=library.int64),
        lambda library: library.ones(2, device="meta", requires_grad=True) * 2,
        lambda library: library.empty(0, 2, device="meta"),
        lambda library: library.nn.Parameter(library.ones(2, device="meta")),
        lambda library: [library.ones(2, device="meta").type(), library.ones(2, device="meta").device],
    ],
)
def test_text_is_pytorchs(make: Callable[[Any], Any]) -> None:
    assert repr(make(torch)) == repr(make(peer))


def test_a_large_model_takes_no_memory_and_is_filled_later() -> None:
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(1 << 20, 1 << 20), nn.LayerNorm(8), nn.LSTM(4, 5), nn.BatchNorm1d(3))
        assert torch.get_default_device() == torch.device("meta")
    assert all(tensor.is_meta for tensor in model.state_dict().values())
    small = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    hollow = copy.deepcopy(small).to("meta")
    weight = hollow[0].weight
    assert isinstance(weight, nn.Parameter)
    assert (weight.is_meta, weight.requires_grad, tuple(weight.shape)) == (True, True, (2, 3))
    with pytest.raises(NotImplementedError, match=r"use torch\.nn\.Module\.to_empty"):
        hollow.to("cpu")
    with pytest.warns(UserWarning, match="is a no-op"):
        hollow.load_state_dict(small.state_dict())
    assert hollow[0].weight.is_meta
    with pytest.raises(RuntimeError, match="While copying the parameter named"):
        copy.deepcopy(small).load_state_dict(hollow.state_dict())
    assigned = copy.deepcopy(hollow)
    assigned.load_state_dict(small.state_dict(), assign=True)
    assert assigned[0].weight.tolist() == small[0].weight.tolist()
    assert isinstance(assigned[0].weight, nn.Parameter)
    hollow.to_empty(device="cpu")
    hollow.load_state_dict(small.state_dict())
    assert hollow(torch.ones(4, 3)).tolist() == small(torch.ones(4, 3)).tolist()


def test_parameters_registered_under_a_hook_are_moved_away() -> None:
    """As libraries make models without weights."""
    register = nn.Module.register_parameter

    def on_meta(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        register(module, name, parameter)
        own = module._parameters[name]
        if own is not None:
            options = own.__dict__ | {"requires_grad": own.requires_grad}
            module._parameters[name] = type(own)(own.to(torch.device("meta")), **options)

    nn.Module.register_parameter = on_meta
    try:
        model = nn.TransformerEncoderLayer(8, 2)
    finally:
        nn.Module.register_parameter = register
    assert {parameter.device.type for parameter in model.parameters()} == {"meta"}


def test_gradients_and_optimizers_work_on_shapes() -> None:
    model = nn.Linear(3, 2, device="meta")
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        model(torch.ones(4, 3, device="meta")).square().mean().backward()
        assert model.weight.grad.is_meta
        optimizer.step()
        optimizer.zero_grad()
    assert optimizer.state[model.weight]["exp_avg"].is_meta


def test_copies_go_one_way() -> None:
    hollow, full = torch.ones(2, 3, device="meta"), torch.ones(2, 3)
    version = hollow._version
    assert hollow.copy_(full) is hollow
    assert hollow._version == version + 1
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        full.copy_(hollow)
    assert full.to("meta").is_meta
    assert torch.empty_like(hollow, device="cpu").device.type == "cpu"
    assert (hollow * torch.ones(())).is_meta
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        hollow + full


def test_draws_leave_the_default_generator_as_it_was() -> None:
    torch.manual_seed(0)
    expected = torch.rand(2).tolist()
    torch.manual_seed(0)
    nn.Linear(3, 3, device="meta")
    torch.rand(3, device="meta").normal_().bernoulli_(0.5)
    torch.randperm(5, device="meta")
    assert torch.rand(2).tolist() == expected


def test_files_and_pickles_keep_shapes_and_strides() -> None:
    x = torch.ones(2, 3, device="meta").t()
    file = io.BytesIO()
    torch.save({"x": x, "w": nn.Parameter(x)}, file)
    theirs = peer.load(io.BytesIO(file.getvalue()))
    assert (theirs["x"].device.type, theirs["x"].stride()) == ("meta", (1, 3))
    theirs_file = io.BytesIO()
    peer.save({"x": peer.ones(2, 3, device="meta").t(), "w": theirs["w"]}, theirs_file)
    for data in (file, theirs_file):
        for weights_only in (True, False):
            state = torch.load(io.BytesIO(data.getvalue()), weights_only=weights_only)
            assert (state["x"].is_meta, state["x"].stride(), state["w"].requires_grad) == (True, (1, 3), True)
    assert pickle.loads(pickle.dumps(x)).is_meta
    assert copy.deepcopy(x).is_meta


def test_values_too_large_for_any_device_have_shapes() -> None:
    large = torch.empty(1 << 30, 1 << 20, device="meta")
    assert tuple((large @ large.t()).shape) == (1 << 30, 1 << 30)
    assert devices.open_device("meta").counters["live_bytes"] == 0
