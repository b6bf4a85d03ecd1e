"""Classes and modes that say what operators do: the same programs print the same under both libraries."""

import importlib
from typing import Any

import pytest
import torch as theirs

import pywebgpu


def _recording(torch: Any) -> tuple[Any, list[str]]:
    """A class of tensors without memory, which hold another, and the names of the operators that it was asked for."""
    names: list[str] = []
    tree = torch.utils._pytree

    class Recording(torch.Tensor):  # type: ignore[misc, name-defined]
        @staticmethod
        def __new__(cls: Any, inner: Any, requires_grad: bool = False) -> Any:
            made = torch.Tensor._make_wrapper_subclass(
                cls, inner.shape, dtype=inner.dtype, device=inner.device, requires_grad=requires_grad
            )
            made.inner = inner
            return made

        def __repr__(self) -> str:
            return super().__repr__(tensor_contents=str(self.inner.tolist()))

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names.append(str(func))
            args, kwargs = tree.tree_map(lambda x: x.inner if isinstance(x, cls) else x, (args, kwargs or {}))
            return tree.tree_map(lambda x: cls(x) if isinstance(x, torch.Tensor) else x, func(*args, **kwargs))

    return Recording, names


def _operators(torch: Any) -> list[Any]:
    kind, names = _recording(torch)
    x = kind(torch.arange(1.0, 5.0).reshape(2, 2))
    results = [x + 1, x * x, 2 - x, x.exp(), torch.sin(x), x.mm(torch.ones(2, 2)), x > 2, x.pow(2), x.sum()]
    facts = [x.shape, str(x.device), str(x.dtype), x.requires_grad, x.is_leaf, type(x.detach()) is kind, repr(x)]
    seen = [name for name in names if name not in ("aten.detach.default", "aten._to_copy.default")]
    return [[type(result) is kind for result in results], [result.inner for result in results], facts, seen]


def _gradients(torch: Any) -> list[Any]:
    kind, _ = _recording(torch)
    x = kind(torch.tensor([1.0, 2.0, 3.0]), requires_grad=True)
    y = ((x * 2).exp() * x).sum()
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    plain = torch.ones(3, requires_grad=True)
    (mixed,) = torch.autograd.grad((x * plain).sin().sum(), plain)
    return [value.inner for value in (first, second, mixed)]


def _training(torch: Any) -> list[Any]:
    kind, _ = _recording(torch)
    weights = [torch.nn.Parameter(kind(torch.arange(1.0, n))) for n in (4, 2, 3)]
    optimizer = torch.optim.SGD(weights, lr=0.1, momentum=0.9)
    for _ in range(3):
        optimizer.zero_grad()
        sum((weight * weight).sum() for weight in weights).backward()
        optimizer.step()
    return [value.inner for weight in weights for value in (weight, weight.grad)]


def _parameters(torch: Any) -> list[Any]:
    kind, _ = _recording(torch)
    copy = importlib.import_module("copy")
    weight = torch.nn.Parameter(kind(torch.ones(2)))
    again = copy.deepcopy(weight)
    module = torch.nn.Module()
    module.weight = weight
    return [
        type(weight) is kind, isinstance(weight, torch.nn.Parameter), weight.requires_grad, again.inner,
        isinstance(again, torch.nn.Parameter), [name for name, _ in module.named_parameters()],
        isinstance(kind(torch.ones(2)), torch.nn.Parameter), repr(weight).count("Parameter"),
    ]  # fmt: skip


class Labelled:
    """A part of classes of both libraries, whose tensors are saved with their class."""


def _files(torch: Any) -> list[Any]:
    io = importlib.import_module("io")
    kind = type("Kept", (Labelled, torch.Tensor), {"__module__": __name__})
    globals()["Kept"] = kind  # Where the file finds it.
    value = torch.arange(3.0).as_subclass(kind)
    value.label = "a"
    loaded = []
    for item in (value, torch.nn.Parameter(value), torch.nn.Parameter(torch.ones(2))):
        file = io.BytesIO()
        torch.save(item, file)
        file.seek(0)
        with torch.serialization.safe_globals([kind]):
            again = torch.load(file)
        facts = type(again).__name__, isinstance(again, torch.nn.Parameter), again.requires_grad
        loaded += [*facts, getattr(again, "label", ""), again.detach()]
    return loaded


def _modes(torch: Any) -> list[Any]:
    python_dispatch = importlib.import_module(f"{torch.__name__}.utils._python_dispatch")
    no_dispatch = importlib.import_module(f"{torch.__name__}.utils._mode_utils").no_dispatch
    names: list[str] = []

    class Noting(python_dispatch.TorchDispatchMode):  # type: ignore[misc, name-defined]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names.append(func.overloadpacket.__name__)
            return func(*args, **(kwargs or {}))

    x = torch.ones(2)
    with Noting():
        y = x.exp().mul(3)
        with no_dispatch():
            x.sin()
    x.cos()
    return [names, y, python_dispatch._get_current_dispatch_mode()]


@pytest.mark.parametrize("program", [_operators, _gradients, _training, _files, _parameters, _modes])
def test_a_program_with_rules_for_operators_says_what_it_says_under_pytorch(program: Any) -> None:
    with pywebgpu.device("cpu"):
        assert _plain(program(pywebgpu)) == _plain(program(theirs))


def _plain(value: Any) -> Any:
    if isinstance(value, pywebgpu.Tensor | theirs.Tensor):
        return [float(f"{number:.4g}") for number in value.double().flatten().tolist()]
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


def test_a_class_without_rules_cannot_be_without_memory() -> None:
    with pytest.raises(TypeError, match="__torch_dispatch__"):
        pywebgpu.Tensor._make_wrapper_subclass(pywebgpu.Tensor, (2,))
