"""How PyTorch's surface shows an elementwise function: a record beside its op, or beside a function made of ops.

Methods, forms in place, functions of the namespace, torch.special's names, names of gradients, autocast's lists and
what type checkers see are made from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Takes(Enum):
    """The arguments of the method, and how their dtypes meet."""

    REAL = auto()  # one; integers become the default float
    WHOLE = auto()  # one; integers stay as they are
    UNARY = auto()  # one; the function casts
    BINARY = auto()  # two, of which one may be a number; they are promoted
    PAIR = auto()  # two tensors; they are promoted
    BITS = auto()  # two, of which one may be a number; no floats
    SHIFT = auto()  # two, of which one may be a number; integers


@dataclass(frozen=True, slots=True)
class Surface:
    """names: of the method, each with a form in place unless `in_place` is False, which ends in "_".

    special: its name in torch.special.  grad_fn: PyTorch's name of its gradient, where the last op does not tell it.
    autocast: the rule of amp/lists.py by which GPUs cast its arguments.
    """

    names: str
    takes: Takes
    in_place: bool = True
    special: str = ""
    grad_fn: str = ""
    autocast: str = ""


RECORDS: dict[Any, Surface] = {}  # by op, or by the function of nodes


def shown(names: str, takes: Takes, **facts: Any) -> Callable[[F], F]:
    """Decorates a function of nodes with its record."""

    def decorate(function: F) -> F:
        RECORDS[function] = Surface(names, takes, **facts)
        return function

    return decorate
