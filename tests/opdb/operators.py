"""Samples of op_db: forward, backward and in place, and inputs that must be refused."""

import contextlib
import itertools
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch

import pywebgpu
from tests.opdb import verdict
from tests.opdb.gradients import gradients, inputs, is_tensor
from tests.opdb.translate import Translator
from tests.opdb.verdict import Difference, Verdict

# Of equal elements any may be the one whose position they return.
TIES = {"kthvalue", "topk", "argsort", "sort", "msort", "median", "nanmedian", "mode"}
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
    random.seed(0)  # Some take numbers from Python.
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
            try:
                _compare(op, sample, translator, expected, given, values=values, differentiable=differentiable)
            except Difference:
                wide = widened(given) if values else given
                if wide is given:
                    raise
                with contextlib.suppress(RuntimeError, TypeError, ValueError):  # It may have no float64.
                    exact = narrowed(_run(op.op, *wide), expected)
                    options = {"values": values, "differentiable": differentiable}
                    return _compare(op, sample, Translator(translator.device), exact, given, wide=wide, **options)
                raise

        return verdict.judged(run)


def _compare(
    op: Any,
    sample: Any,
    translator: Translator,
    expected: Any,
    given: Any,
    *,
    values: bool,
    differentiable: bool,
    wide: Any = None,
) -> None:
    """Raises Difference. wide: the same inputs in float64, of which PyTorch's gradients and writes are taken."""
    theirs = wide or given
    function, (args, kwargs) = translator.value(op.op), translator.value(given)
    out = function(*args, **kwargs)
    shown = [out, expected]
    if op.name in TIES:
        shown = [_places_apart(part) for part in shown]
    elif op.name in SIGNS:
        shown = [translator.value(sample.output_process_fn_grad)(out), sample.output_process_fn_grad(expected)]
    verdict.same("value", *shown, values=values, subject=op.name)
    if differentiable and values and op.name not in MISTAKEN and not (op.name in TIES and _has_ties(given)):
        finish = sample.output_process_fn_grad
        source = _run(op.op, *wide) if wide else expected
        found = gradients(pywebgpu, (args, kwargs), translator.value(finish)(out))
        wanted = gradients(torch, theirs, finish(source))
        same_gradients(found, [narrowed(one, like) for one, like in zip(wanted, inputs(given), strict=True)], op.name)
    if op.inplace_variant is not None and not sample.broadcasts_input and torch.is_tensor(sample.input):
        _in_place(op, given, translator, theirs, values=values)


def _by_columns(x: Any) -> Any:
    return x.transpose(-1, -2).contiguous().transpose(-1, -2) if x.ndim > 1 else x


def _reversed(x: Any) -> Any:
    axes = tuple(reversed(range(x.ndim)))
    return x.permute(axes).contiguous().permute(axes)


def _channels_last(x: Any) -> Any:
    return x.movedim(1, -1).contiguous().movedim(-1, 1) if x.ndim > 2 else x


def _expanded(axis: int) -> Callable[[Any], Any]:
    def expanded(x: Any) -> Any:
        return x.narrow(axis, 0, 1).clone().expand(x.shape) if x.ndim > 1 and x.shape[axis] else x

    return expanded


def _sliced(x: Any) -> Any:
    return x.repeat_interleave(2, -1)[..., ::2] if x.ndim else x


DENSE = {"by columns": _by_columns, "reversed": _reversed, "channels last": _channels_last}
# How tensors lie in memory, as functions of a tensor of either library.
LAYOUTS = DENSE | {"rows repeated": _expanded(0), "columns repeated": _expanded(-1), "every second": _sliced}


def laid_out(value: Any, layout: Callable[[Any], Any]) -> Any:
    """The same nest with its tensors in another layout."""
    if is_tensor(value) and (not isinstance(value, torch.Tensor) or value.layout is torch.strided):
        return layout(value)
    if isinstance(value, dict):
        return {name: laid_out(item, layout) for name, item in value.items()}
    return type(value)(laid_out(item, layout) for item in value) if type(value) in (list, tuple) else value


def strides(
    op: Any, dtype: torch.dtype, device: str, most: int, layout: Any = None, *, views: bool = False
) -> Iterator[Verdict]:
    """Whether results lie in memory as PyTorch's do: a verdict a sample that both can compute.

    layout: that of the inputs. views: they are views of tensors that lie row by row; else they are new tensors.
    """
    for sample in samples(op, dtype, most, requires_grad=False) if op.supports_dtype(dtype, "cpu") else ():
        plain, translator = ((sample.input, *sample.args), sample.kwargs), Translator(device)
        given = laid_out(plain, layout) if layout else plain

        def run() -> None:
            function, (args, kwargs) = translator.value(op.op), translator.value(plain if views else given)  # noqa: B023
            args, kwargs = laid_out((args, kwargs), layout) if views else (args, kwargs)
            expected = _run(op.op, *given)  # noqa: B023
            verdict.same_strides(function(*args, **kwargs), expected)

        yield verdict.judged(run)


def widened(given: Any) -> Any:
    """Inputs of half floats and float32 in float64: what PyTorch computes of them is nearer to what is meant."""
    changed = False

    def wide(value: Any) -> Any:
        nonlocal changed
        if isinstance(value, torch.Tensor):
            if not value.is_floating_point() or value.dtype is torch.float64 or value.layout is not torch.strided:
                return value
            changed = True
            return value.detach().double().requires_grad_(value.requires_grad)
        if isinstance(value, dict):
            return {key: wide(item) for key, item in value.items()}
        return type(value)(wide(item) for item in value) if type(value) in (list, tuple) else value

    found = wide(given)
    return found if changed else given


def narrowed(value: Any, like: Any) -> Any:
    """Results in float64 as of the dtypes of others."""
    if isinstance(value, torch.Tensor) and isinstance(like, torch.Tensor):
        return value.to(like.dtype)
    if isinstance(value, list | tuple) and isinstance(like, list | tuple):
        return [narrowed(one, other) for one, other in zip(value, like, strict=True)]
    return value


def _has_ties(given: Any) -> bool:
    """Whether an input has equal elements, of which the gradient may go to any."""
    tensors = [leaf for leaf in verdict.leaves(given) if torch.is_tensor(leaf) and leaf.is_floating_point()]
    return any(leaf.unique().numel() < leaf.numel() for leaf in tensors)


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


def same_gradients(found: list[Any], expected: list[Any], subject: str = "") -> None:
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        if one is None or other is None:  # No gradient is one of zeros.
            left = one if other is None else other
            if left is not None and verdict.array(left).any():
                raise Difference(f"gradient {number}: {'none' if one is None else 'one where there is none'}")
            continue
        verdict.same(f"gradient {number}", one, other, kind="model", subject=subject)


def _in_place(op: Any, given: Any, translator: Translator, source: Any, *, values: bool) -> None:
    ours, options = translator.value((given[0][1:], given[1]))
    args, kwargs = source
    mine, theirs = translator.value(given[0][0]).detach().clone(), args[0].detach().clone()
    with torch.no_grad():
        try:
            expected = op.inplace_variant(theirs, *args[1:], **kwargs)
        except Exception:
            return  # PyTorch cannot write this result into its input.
    with pywebgpu.no_grad():
        found = translator.value(op.inplace_variant)(mine, *ours, **options)
    if found is not mine and torch.is_tensor(expected) and expected is theirs:
        raise Difference("in place: another tensor is returned")
    verdict.same("in place", mine, narrowed(theirs, given[0][0]), values=values, subject=op.name)


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
        if not _is_refused(op, sample):
            continue  # By PyTorch itself neither, of this version.
        try:
            args, kwargs = translator.value(((sample.input, *sample.args), sample.kwargs))
            function = translator.value(op.op)
        except Exception:
            continue  # Not made of what is here: counted with the samples.
        yield refusal(lambda f=function, a=args, k=kwargs: f(*a, **k), wanted)


def _is_refused(op: Any, sample: Any) -> bool:
    written = [value for value in [sample.kwargs.get("out")] if torch.is_tensor(value)]
    before = [value.detach().clone() for value in written]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _run(op.op, (sample.input, *sample.args), sample.kwargs)
        except Exception:
            return True
    for value, old in zip(written, before, strict=True):
        value.data = old
    return False


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
