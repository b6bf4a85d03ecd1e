"""How a kernel is laid out over a device, as data, and the one function that decides it.

A launch changes how fast a kernel is, and never a value, but for the order of sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from pywebgpu.kernels.target import Target


class Launch(NamedTuple):
    """A variant of a template's kernel. Which of the fields a template uses, and for what, it says itself.

    variant: which algorithm, where a template has several.
    threads: invocations of a workgroup.  tile: what a workgroup computes, by axis.  each: of that, an invocation.
    split: how many invocations, or workgroups, share what is folded.  vector: elements that are loaded at a time.
    """

    variant: str = ""
    threads: int = 0
    tile: tuple[int, ...] = ()
    each: tuple[int, ...] = ()
    split: int = 1
    vector: int = 1


class Problem(NamedTuple):
    """What a launch may depend on.

    sizes: the extents of the kernel's iteration space, as the template has them.
    formats: of what it reads and writes, as the template has them.  layout: how its operands lie, in a word.
    """

    sizes: tuple[int, ...]
    formats: tuple[str, ...] = ()
    layout: str = ""

    def shape_class(self) -> tuple[int, ...]:
        """Sizes, each as the next power of two: problems of one class have one launch in a tuning."""
        return tuple([1 << max(size - 1, 0).bit_length() for size in self.sizes])


HALVES = frozenset({"float16", "bfloat16"})
SUBGROUP = "subgroup"  # a way that products of halves alone have, on subgroup matrices


class Case(NamedTuple):
    """What a tuning says a launch for."""

    template: str
    shape_class: tuple[int, ...]
    formats: tuple[str, ...]
    layout: str


Tuning = Mapping[Case, Launch]


class Launchable(Protocol):
    """The part of a template (see template.py) that says how its kernels may be launched."""

    name: str

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        """Every launch that the target can run, the one first that is taken where no tuning knows better."""


def threads(most: int) -> list[int]:
    """Sizes of workgroups: the largest that there may be, then smaller ones, down to what a subgroup has."""
    return [most, *(1 << exponent for exponent in reversed(range(5, 11)) if 1 << exponent < most)]


def case(template: Launchable, problem: Problem) -> Case:
    return Case(template.name, problem.shape_class(), problem.formats, problem.layout)


def choose(template: Launchable, problem: Problem, target: Target) -> Launch:
    """The launch of a template's kernel for a problem on a target.

    It is what `target.tuning` has for the case, if that is one of `template.launches(problem, target)`, else the first
    of these: the template's own rule for devices that nobody has measured. A tuning can name nothing that the target
    cannot run, and what it does not name costs nothing. `case(template, problem)` is the key that it is looked up by.
    Of halves that nobody measured it is what float32 has, where their products are computed in that.
    """
    launches = template.launches(problem, target)
    key = case(template, problem)
    tuned = target.tuning.get(key)
    if tuned is None and key.formats and HALVES.issuperset(key.formats) and launches[0].variant != SUBGROUP:
        tuned = target.tuning.get(key._replace(formats=("float32",)))
    return tuned if tuned is not None and tuned in launches else launches[0]
