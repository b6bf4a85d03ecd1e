"""Samples of op_db: forward, backward and in place, and inputs that must be refused."""

import itertools
import warnings
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch

import pywebgpu
from tests.opdb import verdict
from tests.opdb.translate import Translator
from tests.opdb.verdict import Difference, Verdict

# Of equal elements any may be the one whose position they return.
TIES = {"kthvalue", "topk", "argsort", "sort", "median", "nanmedian", "mode"}
# Their vectors are known up to a sign: compared as PyTorch's own tests make them comparable.
SIGNS = {"linalg.eigh", "linalg.svd", "svd", "linalg.eig"}
# PyTorch's own gradient is not that of what it computes: it is of the part that was overwritten, where writing into a
# view of a copy has that of the rest.
MISTAKEN = {"as_strided_scatter"}
# Their values are whatever memory holds.
UNWRITTEN = {"empty", "empty_like", "new_empty", "new_empty_strided", "empty_permuted", "empty_strided", "resize_"}


def entries() -> dict[str, Any]:
    """PyTorch's operators by name, or name|variant."""
    from torch.testing._internal.common_methods_invocations import op_db

    return {f"{op.name}|{op.variant_test_name}" if op.variant_test_name else op.name: op for op in op_db}


def samples(op: Any, dtype: torch.dtype, most: int, *, requires_grad: bool) -> list[Any]:
    """The first samples of an operator, the same at each call."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=requires_grad), most))


def judge(op: Any, dtype: torch.dtype, device: str, most: int) -> Iterator[Verdict]:
    """A verdict a sample that PyTorch itself can compute."""
    if not op.supports_dtype(dtype, "cpu"):
        return
    differentiable = bool(op.supports_autograd and dtype in op.supported_backward_dtypes("cpu"))
    for sample in samples(op, dtype, most, requires_grad=differentiable):
        found = _sample(op, sample, Translator(device), differentiable=differentiable)
        if found is not None:
            yield found


def _sample(op: Any, sample: Any, translator: Translator, *, differentiable: bool) -> Verdict | None:
    given = (sample.input, *sample.args), sample.kwargs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = _run(op.op, *given)
            first = plain(expected)  # Now: some operators of the table write into their input.
            with mock.patch("torch.manual_seed"):  # What sets its seed for each call is random, too.
                others = [plain(_run(op.op, *given)) for _ in range(4) if torch.rand(1).item() < 2]  # Each draws on.
        except Exception:
            return None  # PyTorch itself refuses its sample.

        def run() -> None:
            values = op.name not in UNWRITTEN and all(repeats(first, other) for other in others)
            function, (args, kwargs) = translator.value(op.op), translator.value(given)
            out = function(*args, **kwargs)
            shown = [out, expected]
            if op.name in TIES:
                shown = [_places_apart(part) for part in shown]
            elif op.name in SIGNS:
                shown = [translator.value(sample.output_process_fn_grad)(out), sample.output_process_fn_grad(expected)]
            verdict.same("value", *shown, values=values, subject=op.name)
            if differentiable and values and op.name not in MISTAKEN:
                finish = sample.output_process_fn_grad
                found = gradients(pywebgpu, (args, kwargs), translator.value(finish)(out))
                same_gradients(found, gradients(torch, given, finish(expected)), op.name)
            if op.inplace_variant is not None and not sample.broadcasts_input and torch.is_tensor(sample.input):
                _in_place(op, given, translator, values=values)

        return verdict.judged(run)


def _places_apart(value: Any) -> Any:
    """Without the positions that come with values."""
    return value[0] if isinstance(value, tuple) else None


def _run(function: Any, args: Any, kwargs: Any) -> Any:
    return function(*args, **kwargs)


def repeats(first: Any, second: Any) -> bool:
    try:
        verdict.same("", first, second, kind="exact")
    except Difference:
        return False
    return True


def plain(value: Any) -> Any:
    return [leaf.detach().clone() if torch.is_tensor(leaf) else leaf for leaf in verdict.leaves(value)]


def _inputs(given: Any) -> list[Any]:
    found = []
    for leaf in verdict.leaves(given):
        if verdict.is_tensor(leaf) and leaf.requires_grad and not any(leaf is known for known in found):
            found.append(leaf)
    return found


def gradients(library: Any, given: Any, out: Any) -> list[Any]:
    """The gradients of all inputs, of a sum of all outputs in which each element has its own weight."""
    wanted = _inputs(given)
    parts = [leaf for leaf in verdict.leaves(out) if verdict.is_tensor(leaf) and leaf.requires_grad]
    if not parts or not wanted:
        return [None] * len(wanted)
    total: Any = 0
    for part in parts:
        weights = [0.25 + (number * 7 % 11) / 8 for number in range(part.numel())]
        shaped = part.detach().resolve_conj().new_tensor(weights).reshape(part.shape)
        weighed = (part * shaped).sum()
        total = total + (weighed.real + weighed.imag if part.is_complex() else weighed)
    return list(library.autograd.grad(total, wanted, allow_unused=True))


def same_gradients(found: list[Any], expected: list[Any], subject: str = "") -> None:
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        if one is None or other is None:  # No gradient is one of zeros.
            left = one if other is None else other
            if left is not None and verdict.array(left).any():
                raise Difference(f"gradient {number}: {'none' if one is None else 'one where there is none'}")
            continue
        verdict.same(f"gradient {number}", one, other, kind="model", subject=subject)


def _in_place(op: Any, given: Any, translator: Translator, *, values: bool) -> None:
    args, kwargs = given
    ours, options = translator.value((args[1:], kwargs))
    mine, theirs = translator.value(args[0]).detach().clone(), args[0].detach().clone()
    with torch.no_grad():
        try:
            expected = op.inplace_variant(theirs, *args[1:], **kwargs)
        except Exception:
            return  # PyTorch cannot write this result into its input.
    with pywebgpu.no_grad():
        found = translator.value(op.inplace_variant)(mine, *ours, **options)
    if found is not mine and torch.is_tensor(expected) and expected is theirs:
        raise Difference("in place: another tensor is returned")
    verdict.same("in place", mine, theirs, values=values, subject=op.name)


# Errors


def refusals(op: Any, device: str) -> Iterator[tuple[bool, bool, str]]:
    """Of each input that must be refused: whether it was, whether by PyTorch's type of error, and what was raised."""
    if op.error_inputs_func is None:
        return
    try:
        given = list(op.error_inputs("cpu"))
    except Exception:
        return
    for item in given:
        sample, wanted = item.sample_input, item.error_type
        translator = Translator(device)
        try:
            args, kwargs = translator.value(((sample.input, *sample.args), sample.kwargs))
            function = translator.value(op.op)
        except Exception:
            continue  # Not made of what is here: counted with the samples.
        yield refusal(lambda f=function, a=args, k=kwargs: f(*a, **k), wanted)


def refusal(call: Any, wanted: Any) -> tuple[bool, bool, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with verdict.limited(verdict.SECONDS):
                for leaf in verdict.leaves(call()):
                    if verdict.is_tensor(leaf):
                        verdict.array(leaf)
        except Exception as error:
            kind = RuntimeError if wanted is NotImplementedError else wanted
            return True, isinstance(error, kind), f"{verdict.text(error)}, where PyTorch raises {wanted.__name__}"
    return False, False, f"nothing raised, where PyTorch raises {wanted.__name__}"
