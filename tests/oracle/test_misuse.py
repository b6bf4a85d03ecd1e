"""Wrong use of every operator: PyTorch's own inputs that must be refused, and its samples with one argument changed."""

from typing import Any

import pytest
import torch

import pywebgpu

pytest.importorskip("expecttest", reason="torch.testing's samples need expecttest, of the extra `test`")

from tests.opdb import misuse, modules, operators  # After the package that they need.

ERRORS = sorted(name for name, op in operators.entries().items() if op.error_inputs_func is not None)
NO_FLOAT64 = "WebGPU has no float64"  # What is made there of float64 is refused before it is used wrongly.
LAYERS = sorted(name for name, info in modules.modules().items() if info.module_error_inputs_func is not None)


@pytest.mark.one_in(webgpu=12)
@pytest.mark.parametrize("name", ERRORS)
def test_what_pytorch_refuses_is_refused_by_its_type(name: str, device: str) -> None:
    refusals = operators.refusals(operators.entries()[name], device)
    assert not [text for _, is_right, text in refusals if not is_right and NO_FLOAT64 not in text]


@pytest.mark.one_in(webgpu=12)
@pytest.mark.parametrize("name", LAYERS)
def test_what_pytorch_refuses_of_layers_is_refused_by_its_type(name: str, device: str) -> None:
    refusals = modules.module_refusals(modules.modules()[name], device)
    assert not [text for _, is_right, text in refusals if not is_right and NO_FLOAT64 not in text]


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", sorted(operators.entries().keys() - misuse.CRASHING - misuse.LENIENT))
def test_what_no_function_can_do_is_refused(name: str) -> None:
    op = operators.entries()[name]
    if not op.supports_dtype(torch.float32, "cpu") and not op.supports_dtype(torch.int64, "cpu"):
        pytest.skip("PyTorch has it on CUDA alone")
    assert not list(misuse.judge(op, "cpu"))


@pytest.mark.parametrize("space", misuse.SPACES)
def test_what_no_argument_can_be_is_refused(space: str) -> None:
    with pywebgpu.device("cpu"):
        assert not list(misuse.unrefused(space, pywebgpu))


CALLS = {
    "a function": lambda torch, x: torch.masked_fill(x, 2.5, 1),
    "a layer's function": lambda torch, x: torch.nn.functional.linear(x, 2.5),
    "a method": lambda torch, x: x.mm(2.5),
    "a method that writes": lambda torch, x: x.addmm_(x, 2.5),
    "a method that asks for a shape": lambda torch, x: x.expand_as(2.5),
    "by name": lambda torch, x: torch.linalg.solve(x, B=2.5),
}


def test_a_list_is_no_tensor_for_a_method() -> None:
    with pytest.raises(TypeError, match=r"mm\(\): argument 'mat2' \(position 1\) must be Tensor, not list"):
        pywebgpu.ones(2, 2, device="cpu").mm([1.0, 2.0])


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_argument_that_is_no_tensor_is_named(call: Any) -> None:
    with pytest.raises(TypeError, match=r"argument '\w+'.* must be Tensor, not float"):
        call(pywebgpu, pywebgpu.ones(2, 2, device="cpu"))


def test_a_mistake_in_a_programs_own_function_stays_what_it_is() -> None:
    with pytest.raises(AttributeError, match="no attribute 'shape'"):
        pywebgpu.vmap(lambda x, number: number.shape, in_dims=(0, None))(pywebgpu.ones(2, device="cpu"), 3)
