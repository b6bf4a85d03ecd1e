"""Forward-mode gradients: tensors with a tangent beside them. See torch.autograd.forward_ad.

A tangent is computed when it is asked for, from the graph: what is recorded without gradient mode has none.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from pywebgpu.autodiff import grad_mode
from pywebgpu.autograd import products
from pywebgpu.ir import walk
from pywebgpu.ops import movement
from pywebgpu.tensor import history

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor


class _Levels(threading.local):
    """The points of each level that was entered, with their tangents and dual nodes."""

    def __init__(self) -> None:
        self.entered: list[list[tuple[Any, Any, Any]]] = []


_levels = _Levels()


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent, which is None where it depends on no dual tensor."""

    primal: Any
    tangent: Any


def enter_dual_level() -> int:
    """Begins a level, inside of which dual tensors live."""
    if _levels.entered:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _levels.entered.append([])
    history.tangent_of = _tangent_of
    return len(_levels.entered) - 1


def exit_dual_level(*, level: int | None = None) -> None:
    """Ends a level: its tangents are gone."""
    if not _levels.entered or (level is not None and level != len(_levels.entered) - 1):
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created.")
    _levels.entered.pop()


class dual_level:
    """A level as a context manager."""

    def __enter__(self) -> int:
        self._mode = grad_mode.enable_grad()
        self._mode.__enter__()
        return enter_dual_level()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        exit_dual_level()
        self._mode.__exit__(kind, error, traceback)


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """The tensor with a tangent. Raises RuntimeError outside of a level, ValueError for whole numbers."""
    if not _levels.entered:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, value in (("tensor", tensor), ("tangent", tangent)):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {value.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError(f"Expected a tangent of shape {list(tensor.shape)}, got one of {list(tangent.shape)}")
    with grad_mode.enable_grad():
        point = products.point(tensor)
        dual: Tensor = point._new(movement.alias(point._node), point._storage.device)
        _levels.entered[-1].append((point, tangent, dual._node))
        return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value and the tangent of a tensor that was made dual, or of one made of such."""
    pairs = _levels.entered[-1] if _levels.entered else []
    for point, tangent, dual in pairs:
        if tensor._node is dual:  # Not the tangent's copy: the very tensor.
            return UnpackedDualTensor(point.detach(), tangent)
    reached = set(walk.history([tensor._node]))
    pairs = [pair for pair in pairs if pair[0]._node in reached]
    if not pairs:
        return UnpackedDualTensor(tensor, None)
    points = [point for point, _, _ in pairs]
    with grad_mode.enable_grad():
        rows, doubles = products.forward([tensor], points)
        (tangent,) = products.gradients(rows, doubles, [tangent for _, tangent, _ in pairs])
    return UnpackedDualTensor(products.apart(tensor, points), products.apart(tangent, [*points, *doubles]))


def _tangent_of(tensor: Any) -> Tensor | None:
    """The tangent inside of a level, None outside."""
    return unpack_dual(tensor).tangent if _levels.entered else None


_set_fwd_grad_enabled = grad_mode.set_grad_enabled  # Tangents come of the history, which is recorded or not.


def _is_fwd_grad_enabled() -> bool:
    """Whether what is computed now has tangents."""
    return grad_mode.is_grad_enabled()


def __getattr__(name: str) -> int:
    """`_current_level`: the number of the innermost level of this thread, -1 outside of all."""
    if name == "_current_level":
        return len(_levels.entered) - 1
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
