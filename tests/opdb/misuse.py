"""PyTorch's samples with one argument changed: what PyTorch refuses is refused, by an error of its type.

error_inputs of op_db are what somebody thought of; these are made: another axis, a tensor with more axes, a text.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import torch

from tests.opdb import operators, verdict
from tests.opdb.translate import Translator

# An error of PyTorch's that says what it was not written for, and nothing of the call; or that says a dtype, where
# this library computes with what it is given.
OTHER_REASONS = (
    "not implemented for",
    "expected scalar type",
    "mixed dtype",
    "same dtype",
    "type promotion",
    "Overloaded torch operator",
    "Expected a value of type",
    "must be bool, not",
    "not bool",
    "descriptor",  # a method that was taken from the class
    "without overflow",
)
INTERNAL = AttributeError, AssertionError, KeyError, RecursionError, ZeroDivisionError  # that no call should end in
SAMPLES = 2
# PyTorch ends the process at some of these: it reads beyond memory.
CRASHING = {
    "_batch_norm_with_update",
    "_native_batch_norm_legit",
    "native_batch_norm",
    "_segment_reduce|offsets",
    "lu_unpack",
}
# Taken here, as elsewhere, where the shapes have one meaning alone.
LENIENT = {
    "cumulative_trapezoid",  # points and values broadcast
    "index_put",  # a value may begin with axes of one element, as in a subscript
    "nn.functional.instance_norm",  # statistics may, too
    "_unsafe_masked_index",  # these are private: nobody's promise
    "_unsafe_masked_index_put_accumulate",
    "linspace|tensor_overload",  # a tensor of one element is a number
    "logspace|tensor_overload",
    "tril_indices",  # fewer than no rows are none
    "triu_indices",
    "allclose",  # nothing is close to within NaN
    "nn.functional.linear",  # a weight that is a vector is taken by both, of one row or of several
    "inner",  # a tensor of one element in all goes with any
    "meshgrid|variadic_tensors",  # a text is asked for its axes
    "sparse.mm|reduce",
    "sparse.sampled_addmm",  # a batch of one goes with any
    # A sample that does not train gives back what it was given.
    "nn.functional.alpha_dropout",
    "nn.functional.dropout",
    "nn.functional.feature_alpha_dropout|with_train",
    "nn.functional.feature_alpha_dropout|without_train",
}


def changes(value: Any) -> Iterator[tuple[str, Any]]:
    """What it was changed to, in words, and so changed."""
    match value:
        case torch.Tensor():
            if value.layout is torch.strided:
                yield "with an axis more", value.detach()[None]
                yield "with no element", torch.empty(0, dtype=value.dtype)
                yield "a text", "abc"
                if value.ndim and value.shape[0]:
                    yield "with an axis less", value.detach()[0]
        case bool() | None:
            return
        case int():
            yield from ((str(number), number) for number in (100, -100))
        case float():
            yield "NaN", float("nan")
        case list() | tuple() if value and not isinstance(value[0], torch.Tensor):
            yield "one longer", type(value)((*value, value[-1]))
            yield "one shorter", type(value)(value[:-1])
        case str():
            yield "another text", f"{value}_"


def calls(sample: Any) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    args = (sample.input, *sample.args)
    for place, value in enumerate(args):
        for what, changed in changes(value):
            yield f"argument {place} {what}", (*args[:place], changed, *args[place + 1 :]), sample.kwargs
    for name, value in sample.kwargs.items():
        for what, changed in changes(value):
            yield f"{name} {what}", args, {**sample.kwargs, name: changed}


def judge(op: Any, device: str) -> Iterator[str]:
    """Of each call that PyTorch refuses and that is not refused here, or by a mistake of the library's own: what."""
    dtype = torch.float32 if op.supports_dtype(torch.float32, "cpu") else torch.int64
    for sample in operators.samples(op, dtype, SAMPLES, requires_grad=False):
        for what, args, kwargs in calls(sample):
            expected = _error(op.op, args, kwargs)
            if expected is None or any(reason in str(expected) for reason in OTHER_REASONS):
                continue
            try:
                function, (args, kwargs) = Translator(device).value((op.op, (args, kwargs)))
            except Exception:
                continue  # Not made of what is here.
            error = _error(function, args, kwargs)
            if error is None or (isinstance(error, INTERNAL) and not isinstance(expected, type(error))):
                yield f"{what}: {error!r}, where PyTorch raises {expected!r}"


def _error(function: Any, args: Any, kwargs: Any) -> Exception | None:
    """What a call raises, or the first read of what it gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for leaf in verdict.leaves(function(*args, **kwargs)):
                if verdict.is_tensor(leaf):
                    verdict.array(leaf)
        except Exception as error:
            return error
    return None
