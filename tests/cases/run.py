"""Runs a case on a library and holds two runs against each other. Results are plain data: they can cross a process."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from tests.cases.case import FLOATING, Case, arrays, generator
from tests.cases.tolerance import Tolerance, tolerance


@dataclass(frozen=True, slots=True)
class Value:
    """One tensor, read back: bfloat16 travels as float32 under its own name."""

    dtype: str
    array: np.ndarray
    requires_grad: bool


@dataclass(frozen=True, slots=True)
class Result:
    outputs: tuple[Any, ...]
    gradients: tuple[Value | None, ...]


@contextmanager
def default_device(library: ModuleType, device: str) -> Iterator[None]:
    """New tensors live on `device` inside the block."""
    library.set_default_device(place(library, device))
    try:
        yield
    finally:
        library.set_default_device(None)


def place(library: ModuleType, device: str) -> str:
    """The oracle knows one device only."""
    return "cpu" if library.__name__ == "torch" else device


def send(library: ModuleType, array: np.ndarray, dtype: str, device: str) -> Any:
    """A tensor of `dtype` on `device` with the values of `array`."""
    tensor = library.from_numpy(array).to(place(library, device))
    return tensor.to(library.bfloat16) if dtype == "bfloat16" else tensor


def fetch(library: ModuleType, tensor: Any) -> Value:
    dtype = dtype_name(tensor.dtype)
    plain = tensor.detach().cpu().clone()
    host = plain.to(library.float32) if dtype == "bfloat16" else plain
    return Value(dtype, np.array(host.numpy()), bool(tensor.requires_grad))


def dtype_name(dtype: Any) -> str:
    return str(dtype).rsplit(".", 1)[-1]


def leaves(library: ModuleType, value: Any) -> list[Any]:
    """The tensors and plain values of a nest, in order; dictionaries by sorted key, keys included."""
    if isinstance(value, library.Tensor):
        return [value]
    if isinstance(value, dict):
        return [leaf for key in sorted(value, key=str) for leaf in (key, *leaves(library, value[key]))]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(library, item)]
    if isinstance(value, library.dtype):
        return [dtype_name(value)]
    return [value]


def run(case: Case, library: ModuleType, device: str, *, order: int = 1) -> Result:
    """Outputs of the case and, if it has any, gradients of its floating inputs under fixed random weights.

    With order 2 the gradients are those of the gradients: what double backward gives.
    """
    with default_device(library, device):
        tensors = []
        for item, array in zip(case.inputs, arrays(case), strict=True):
            tensor = send(library, array, item.dtype, device)
            if case.grad and item.needs_grad and item.dtype in FLOATING:
                tensor.requires_grad_()
            tensors.append(tensor)
        outputs = leaves(library, case.fn(library, *tensors))
        found = tuple(fetch(library, leaf) if isinstance(leaf, library.Tensor) else leaf for leaf in outputs)
        if case.grad:
            if order == 2:
                outputs = first_gradients(case.name, library, outputs, tensors, device)
            backward(case.name, library, outputs, device)
        wanted = [tensor.grad if tensor.is_leaf else None for tensor in tensors]
        gradients = tuple(None if grad is None else fetch(library, grad) for grad in wanted)
    return Result(found, gradients)


def failure(case: Case, library: ModuleType, device: str) -> Exception | None:
    """What a case of errors.py raises."""
    try:
        with default_device(library, device):
            for leaf in leaves(library, case.fn(library)):
                if isinstance(leaf, library.Tensor):  # What only the device can check raises when a value is read.
                    fetch(library, leaf)
    except Exception as error:
        return error
    return None


def backward(name: str, library: ModuleType, outputs: list[Any], device: str) -> None:
    """Leaves gradients of the weighed sum in the leaves."""
    loss = weighed_sum(name, library, outputs, device)
    if loss is not None:
        loss.backward()


def first_gradients(name: str, library: ModuleType, outputs: list[Any], tensors: list[Any], device: str) -> list[Any]:
    """Gradients of the weighed sum, as tensors that can be differentiated again."""
    loss = weighed_sum(name, library, outputs, device)
    wanted = [tensor for tensor in tensors if tensor.requires_grad]
    if loss is None or not wanted:
        return []
    return list(library.autograd.grad(loss, wanted, create_graph=True, allow_unused=True))


def weighed_sum(name: str, library: ModuleType, outputs: list[Any], device: str) -> Any:
    """The sum of all outputs, each weighed by fixed random numbers of both signs."""
    random = generator(f"{name}: weights")
    loss = None
    for output in outputs:
        if isinstance(output, library.Tensor) and output.requires_grad:
            weights = random.uniform(0.5, 1.5, tuple(output.shape)) * random.choice([-1.0, 1.0], tuple(output.shape))
            factors = send(library, np.array(weights, "float32"), "float32", str(output.device)).to(output.dtype)
            weighed = (output * factors).sum().to(place(library, device))
            loss = weighed if loss is None else loss + weighed
    return loss


def check(case: Case, found: Result, expected: Result, engine: str, *, order: int = 1) -> None:
    """Raises AssertionError where `found` leaves `expected` by more than the tolerance of the case."""
    assert len(found.outputs) == len(expected.outputs), f"{len(found.outputs)} outputs, not {len(expected.outputs)}"
    for number, (mine, theirs) in enumerate(zip(found.outputs, expected.outputs, strict=True)):
        compare(mine, theirs, f"{case.name}: output {number}", case, engine)
    for number, (mine, theirs) in enumerate(zip(found.gradients, expected.gradients, strict=True)):
        what = f"{case.name}: gradient {number}"
        if mine is not None and theirs is not None:
            compare(mine, theirs, what, case, engine)
        elif order == 1:
            assert mine is theirs, f"{what} is {mine}, not {theirs}"
        else:  # Whether a derivative that is zero everywhere is absent or zeros is nobody's promise.
            present = mine or theirs
            if present is not None:
                allowed = tolerance(case.name, case.tolerance, present.dtype, engine, terms=case.terms)
                assert_close(present.array, np.zeros_like(present.array), allowed, what)


def compare(found: Any, expected: Any, what: str, case: Case, engine: str) -> None:
    """Two leaves of a result: kind, dtype, whether a gradient is wanted, shape, values."""
    if isinstance(expected, Value):
        assert isinstance(found, Value), f"{what} is {found!r}, not a tensor"
        assert found.dtype == expected.dtype, f"{what} is {found.dtype}, not {expected.dtype}"
        assert found.requires_grad == expected.requires_grad, f"{what} requires_grad is {found.requires_grad}"
        assert found.array.shape == expected.array.shape, f"{what} is {found.array.shape}, not {expected.array.shape}"
        allowed = tolerance(case.name, case.tolerance, expected.dtype, engine, terms=case.terms)
        assert_close(found.array, expected.array, allowed, what)
    elif isinstance(expected, float):
        assert isinstance(found, float), f"{what} is {found!r}, not {expected!r}"
        allowed = tolerance(case.name, case.tolerance, "float32", engine, terms=case.terms)
        assert_close(np.array(found), np.array(expected), allowed, what)
    else:
        assert type(found) is type(expected), f"{what} is {found!r}, not {expected!r}"
        assert found == expected, f"{what} is {found!r}, not {expected!r}"


def assert_close(found: np.ndarray, expected: np.ndarray, allowed: Tolerance, what: str) -> None:
    """NaN equals NaN, an infinity itself, and every other number lies within the tolerance."""
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(found, expected, err_msg=what)
        return
    mine, theirs = found.astype("float64"), expected.astype("float64")
    with np.errstate(invalid="ignore"):
        near = np.abs(mine - theirs) <= allowed.bound(theirs)
    right = near | (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
    if not right.all():
        worst = np.argwhere(~right)[0]
        place_of = tuple(int(i) for i in worst)
        raise AssertionError(
            f"{what}: {int((~right).sum())} of {right.size} values differ; at {place_of} "
            f"{mine[place_of]!r}, not {theirs[place_of]!r} (allowed {allowed})"
        )
