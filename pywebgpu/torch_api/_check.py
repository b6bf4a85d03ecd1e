"""torch._check and its kin: conditions that hold, or an error of one kind with the program's own text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pywebgpu import devices
from pywebgpu.tensor.tensor import Tensor

Message = Callable[[], object] | None


def _check_with(error_type: type[BaseException], cond: Any, message: Message) -> None:
    """Raises an error of a class where a condition does not hold. message: returns its text."""
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is None:
        raise error_type("Expected cond to be True, but got False. (Could this error message be improved? If so, "
                         "please report an enhancement request to PyTorch.)")  # fmt: skip
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _check(cond: Any, message: Message = None) -> None:
    """Raises RuntimeError."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: Message = None) -> None:
    """Raises IndexError."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Message = None) -> None:
    """Raises ValueError."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Message = None) -> None:
    """Raises TypeError."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Message = None) -> None:
    """Raises NotImplementedError."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: Any, message: Message = None, *, max: int | None = None) -> None:
    """Raises RuntimeError for a negative number, or one above a bound."""
    _check(bool(i >= 0), message)
    if max is not None:
        _check(bool(i <= max), message)


def _check_tensor_all_with(error_type: type[BaseException], cond: Any, message: Message = None) -> None:
    """As _check_with, of all elements of a tensor of bools."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if str(cond.dtype) != "torch.bool":
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all().item()), message)


def _check_tensor_all(cond: Any, message: Message = None) -> None:
    """Raises RuntimeError."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _assert_tensor_metadata(
    a: Tensor, size: Any = None, stride: Any = None, dtype: Any = None, *, device: Any = None, layout: Any = None
) -> None:
    """Raises RuntimeError where a tensor differs from what is said of it; None says nothing."""
    expected: dict[str, tuple[Any, Any, Any]] = {
        "size": (a.shape, size, tuple),
        "stride": (a.stride(), stride, tuple),
        "dtype": (a.dtype, dtype, None),
        "device": (a.device, device, devices.device),
        "layout": (a.layout, layout, None),
    }
    for name, (fact, claim, kind) in expected.items():
        if claim is not None and fact != (claim if kind is None else kind(claim)):
            raise RuntimeError(f"Tensor {name} mismatch! Expected: {claim}, Got: {fact}")


def assert_metadata_eq(
    assert_eq: Callable[[object, object], None],
    m1: Tensor,
    m2: Tensor,
    *,
    skip_symbolic: bool = False,
    skip_leaf: bool = False,
) -> None:
    """Calls assert_eq with each thing that is known of two tensors besides their values."""
    facts = [(tensor.dtype, tensor.requires_grad, tensor.layout, tensor.is_inference()) for tensor in (m1, m2)]
    assert_eq(*facts)
    assert_eq(m1.grad is not None, m2.grad is not None)
    if not skip_leaf:
        assert_eq(m1.is_leaf, m2.is_leaf)
    if not skip_symbolic:
        assert_eq((m1.shape, m1.stride(), m1.storage_offset()), (m2.shape, m2.stride(), m2.storage_offset()))


def _assert_async(input: Tensor, assert_msg: str = "") -> None:
    """Raises RuntimeError where the one element of a tensor is zero; here at once."""
    if not bool(input.item()):
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")
