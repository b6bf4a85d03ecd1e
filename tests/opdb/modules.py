"""Samples of module_db, forward and backward, and of the optimizers' database: a few steps of each configuration."""

import contextlib
import copy
import warnings
from collections.abc import Iterator
from typing import Any

import torch

import pywebgpu
from tests.opdb import operators, verdict
from tests.opdb.translate import Translator
from tests.opdb.verdict import Difference, Verdict

STEPS = 5


def modules() -> dict[str, Any]:
    from torch.testing._internal.common_modules import module_db

    return {info.name: info for info in module_db}


def judge_module(info: Any, dtype: torch.dtype, device: str, most: int) -> Iterator[Verdict]:
    for training in (True, False):
        torch.manual_seed(0)
        try:
            given = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
        except Exception:
            continue
        for sample in given[:most]:
            if sample.forward_input is None:
                continue
            found = _module(info, sample, Translator(device), dtype, training=training)
            if found is not None:
                yield found


def _module(info: Any, sample: Any, translator: Translator, dtype: torch.dtype, *, training: bool) -> Verdict | None:
    made, forward = sample.constructor_input, sample.forward_input
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.manual_seed(0)
            theirs = info.module_cls(*made.args, **made.kwargs).to(dtype).train(training)
            state = {name: value.clone() for name, value in theirs.state_dict().items()}
            wide = copy.deepcopy(theirs).double()
            again = copy.deepcopy(theirs)(*forward.args, **forward.kwargs)
            expected = theirs(*forward.args, **forward.kwargs)
        except Exception:
            return None

        def run() -> None:
            kind = translator.value(info.module_cls)
            made_on_host = Translator("cpu")  # What a module is made of moves with it.
            args, kwargs = made_on_host.value((made.args, made.kwargs))
            ours = kind(*args, **kwargs).to(device=translator.device, dtype=translator.value(dtype)).train(training)
            ours.load_state_dict(translator.value(state))
            values = operators.repeats(operators.plain(expected), operators.plain(again))
            inputs, options = translator.value((forward.args, forward.kwargs))
            out = ours(*inputs, **options)
            found = operators.gradients(pywebgpu, ([*inputs], options, list(ours.parameters())), out) if values else []

            def hold(layer: Any, args: Any, kwargs: Any, result: Any) -> None:
                verdict.same("value", out, operators.narrowed(result, expected), values=values, kind="model")
                if values:
                    wanted = operators.gradients(torch, ([*args], kwargs, list(layer.parameters())), result)
                    narrow = [one if one is None else one.to(dtype) for one in wanted]
                    operators.same_gradients(found, narrow)

            try:
                hold(theirs, forward.args, forward.kwargs, expected)
            except Difference:
                if not values:
                    raise
                with contextlib.suppress(RuntimeError, TypeError, ValueError):  # It may have no float64.
                    args, kwargs = operators.widened((forward.args, forward.kwargs))
                    return hold(wide, args, kwargs, wide(*args, **kwargs))
                raise

        return verdict.judged(run)


def module_refusals(info: Any, device: str) -> Iterator[tuple[bool, bool, str]]:
    if info.module_error_inputs_func is None:
        return
    try:
        given = info.module_error_inputs_func(
            info, device="cpu", dtype=torch.float32, requires_grad=False, training=False
        )
    except Exception:
        return
    for item in given:
        sample = item.module_error_input
        translator = Translator(device)

        def call(sample: Any = sample, translator: Translator = translator, info: Any = info) -> Any:
            args, kwargs = translator.value((sample.constructor_input.args, sample.constructor_input.kwargs))
            made = translator.value(info.module_cls)(*args, **kwargs).to(device=translator.device)
            if sample.forward_input is None:
                return None
            args, kwargs = translator.value((sample.forward_input.args, sample.forward_input.kwargs))
            return made(*args, **kwargs)

        try:
            translator.value(info.module_cls)
        except AttributeError:
            continue
        yield operators.refusal(call, item.error_type)


# Optimizers


def optimizers() -> dict[str, Any]:
    from torch.testing._internal.common_optimizers import optim_db

    return {info.name: info for info in optim_db}


def judge_optimizer(info: Any, device: str) -> Iterator[Verdict]:
    """A few steps of each configuration: parameters and what was learned of them are the same."""
    for sample in info.optim_inputs_func(device="cpu"):
        options = {name: value for name, value in sample.kwargs.items() if name not in ("capturable", "fused")}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = _trained(torch, info.optim_cls, options)
            except Exception:
                continue
            yield verdict.judged(lambda o=options, e=expected: _compare(info, o, e, Translator(device)))


def _compare(info: Any, options: Any, expected: Any, translator: Translator) -> None:
    with pywebgpu.device(translator.device):
        found = _trained(pywebgpu, translator.value(info.optim_cls), translator.value(options))
    verdict.same("parameters", found, expected, kind="model")


def _trained(library: Any, kind: Any, options: Any) -> list[Any]:
    """Parameters after steps on the squares of a few products."""
    weight = library.tensor([[0.5, -1.0, 2.0], [1.5, 0.3, -0.7]], requires_grad=True)
    bias = library.tensor([0.1, -0.2], requires_grad=True)
    shapes = [weight] if kind.__name__ == "Muon" else [weight, bias]
    optimizer = kind(shapes, **options)
    x = library.tensor([[1.0, 2.0, -1.0], [0.5, -0.3, 0.8]])
    goal = library.tensor([[1.0, 0.0], [0.0, 1.0]])

    def closure() -> Any:
        optimizer.zero_grad()
        loss = ((x @ weight.t() + bias - goal) ** 2).sum()
        loss.backward()
        if kind.__name__ == "SparseAdam":
            for parameter in shapes:
                parameter.grad = parameter.grad.to_sparse()
        return loss

    for _ in range(STEPS):
        optimizer.step(closure)
    return [part.detach() for part in shapes]
