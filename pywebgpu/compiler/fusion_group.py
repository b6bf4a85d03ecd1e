"""A group of nodes that one kernel computes, while it is decided which groups there are."""

from __future__ import annotations

from dataclasses import dataclass, field

from pywebgpu.kernels.template import Computation


@dataclass(eq=False)
class FusionGroup(Computation):
    """One kernel in the making.

    number: in its partition.  members: bits of its nodes' numbers (see partition.py).
    before: bits of all that must run earlier.  parents: numbers of the groups that it reads from.
    """

    number: int = 0
    members: int = 0
    before: int = 0
    parents: set[int] = field(default_factory=set)
