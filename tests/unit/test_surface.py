"""The torch namespace: light to import, complete in its parts, and its tensors survive copies and files."""

import contextlib
import copy
import inspect
import math
import pickle
import re
import subprocess
import sys
import warnings

import pytest

import pywebgpu as torch
from pywebgpu.nn import module
from tests.cases.case import resolve

PARTS = (
    "accelerator.is_available", "autograd.Function", "autograd.functional.hessian", "backends.cudnn.deterministic",
    "cuda.is_available", "data.DataLoader", "linalg.norm", "memory.stats", "nn.Linear", "nn.functional.relu",
    "nn.init.ones_", "optim.Adam", "optim.lr_scheduler.StepLR", "random.fork_rng", "save",
    "utils.checkpoint.checkpoint", "utils.data.DataLoader", "version.cuda", "webgpu.is_available",
)  # fmt: skip


def test_import_brings_no_host_and_no_part() -> None:
    code = (
        "import sys, pywebgpu; print([n for n in ('numpy', 'wgpu', 'pywebgpu.nn', 'pywebgpu.io') if n in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("name", PARTS)
def test_parts_are_found_by_their_name(name: str) -> None:
    resolve(torch, name)


def test_unknown_names_are_attribute_errors() -> None:
    assert not hasattr(torch, "no_such_function")


def test_methods_are_functions_too() -> None:
    x = torch.tensor([1.0, 4.0], device="cpu")
    assert torch.sqrt(x).tolist() == x.sqrt().tolist() == [1.0, 2.0]
    assert torch.sum(input=x).item() == 5.0
    assert torch.pow(2.0, x).tolist() == [2.0, 16.0]
    assert torch.sub(5, x).tolist() == [4.0, 1.0]


def test_out_is_written_and_returned() -> None:
    x, out = torch.ones(2, device="cpu"), torch.zeros(2, device="cpu")
    assert torch.add(x, x, out=out) is out
    assert out.tolist() == [2.0, 2.0]


def test_functions_refuse_what_is_no_tensor() -> None:
    with pytest.raises(TypeError, match="must be Tensor, not list"):
        torch.sqrt([1.0])
    with pytest.raises(TypeError, match="must be tuple of Tensors"):
        torch.cat(torch.ones(2, device="cpu"))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int64", "uint8", "bool"])
def test_pickled_tensor_is_the_same(dtype: str) -> None:
    x = torch.tensor([[0, 1], [1, 0]], dtype=getattr(torch, dtype), device="cpu")
    again = pickle.loads(pickle.dumps(x))
    assert again.tolist() == x.tolist()
    assert again.dtype is x.dtype
    assert again.device == x.device


SPACES = ("", "Tensor", "nn.functional", "linalg", "fft", "special")


@pytest.mark.parametrize("space", SPACES)
def test_a_wrong_keyword_is_refused_by_a_public_name(space: str) -> None:
    """Python's own error says the function's name: what users called, and no class or function behind it."""
    owner = resolve(torch, space) if space else torch
    x, shown = torch.ones(2, 2, device="cpu"), {}
    for name in dir(owner):
        function = getattr(owner, name)
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        with contextlib.suppress(Exception), warnings.catch_warnings(action="ignore"):
            try:
                function(x, no_such_option=1)
            except TypeError as error:
                if "()" in str(error):
                    shown[name] = str(error).partition("(")[0]
    assert len(shown) > 9
    assert {name: said for name, said in shown.items() if not re.match(r"[a-z]\w*( |$)", said)} == {}


ADVICE = {
    "float class numbers": (lambda x: torch.nn.functional.cross_entropy(x, x[0]), "target.long()"),
    "float labels of a likelihood": (lambda x: torch.nn.functional.nll_loss(x, x[0]), "target.long()"),
}


@pytest.mark.parametrize("name", ADVICE)
def test_a_mistake_is_answered_with_the_way_out(name: str) -> None:
    call, advice = ADVICE[name]
    with pytest.raises(RuntimeError, match=re.escape(advice)):
        call(torch.ones(2, 2, device="cpu"))


def test_pickled_leaf_wants_a_gradient() -> None:
    x = torch.ones(2, requires_grad=True, device="cpu")
    assert pickle.loads(pickle.dumps(x)).requires_grad


def test_deep_copies_share_nothing() -> None:
    x = torch.ones(2, requires_grad=True, device="cpu")
    x.sum().backward()
    twin, same = copy.deepcopy([x, x])
    assert twin is same
    with torch.no_grad():
        twin.add_(1)
        twin.grad.zero_()
    assert x.tolist() == [1.0, 1.0]
    assert x.grad.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x * 2)


def test_cuda_is_not_there_and_says_so() -> None:
    assert not torch.cuda.is_available()
    with pytest.raises(AssertionError, match="CUDA"):
        torch.ones(2, device="cpu").cuda()


def test_memory_goes_with_its_tensors() -> None:
    before = torch.memory.stats("cpu")["live_bytes"]
    x = torch.ones(1000, device="cpu") * 2
    x.tolist()
    assert torch.memory.stats("cpu")["live_bytes"] >= before + 4000
    del x
    assert torch.memory.stats("cpu")["live_bytes"] == before


def test_in_place_forms_exist_for_what_they_name() -> None:
    for name in dir(torch.Tensor):
        if name.endswith("_") and not name.startswith("_"):
            assert callable(getattr(torch.Tensor, name)), name


def test_a_filled_tensor_is_data_once_it_was_read() -> None:
    for value in (1.0, 2.0, 3.0):
        x = torch.full((2,), value, device="cpu", requires_grad=True)
        x.tolist()
        (x**x).sum().backward()
        assert (x * 2).tolist() == [2 * value] * 2
        assert x.grad.tolist() == pytest.approx([value**value * (1 + math.log(value))] * 2)


@pytest.mark.parametrize("register", ["of one", "of all"])
def test_a_module_whose_hooks_are_gone_is_called_as_one_that_had_none(register: str) -> None:
    model = torch.nn.Linear(1, 1)
    add = torch.nn.modules.module.register_module_forward_hook
    handle = (model.register_forward_hook if register == "of one" else add)(lambda *given: None)
    assert module._are_hooked(vars(model))
    handle.remove()
    assert not module._are_hooked(vars(model))


def test_the_error_that_a_program_gets_is_that_of_the_call_and_not_of_a_hook_after_it() -> None:
    layer, seen = torch.nn.Linear(2, 2), []

    def fail(what: str) -> None:
        raise RuntimeError(what)

    layer.register_forward_pre_hook(lambda module, args: fail("before"))
    layer.register_forward_hook(lambda module, args, out: fail("after"), always_call=True)
    layer.register_forward_hook(lambda module, args, out: seen.append(out), always_call=True)
    with pytest.warns(UserWarning, match="silenced"), pytest.raises(RuntimeError, match="before"):
        layer(torch.ones(1, 2))
    assert seen == [None]
