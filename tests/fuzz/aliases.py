"""Random programs of views, writes, other memory and backward, played on any library: what each handle shows.

A program is plain data: its kind, and instructions of numbers that are taken modulo what is there. Kinds keep to what
PyTorch defines: "values" wants no gradient and does everything; "moves" has linear formulas, since PyTorch's formulas
of a leaf read what `x.data = y` brought in later; "formulas" has any formula, and gives no tensor other memory.

`python -m tests.fuzz.aliases 20000 cpu` plays as many as one likes against PyTorch.
"""

import sys
from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

from tests.cases import run
from tests.cases.case import Case
from tests.fuzz import steps
from tests.oracle import oracle

ERRORS = (RuntimeError, IndexError, ValueError, TypeError)
MOST_TENSORS = 12
REFUSED = "backward raises"


class Instruction(NamedTuple):
    """What is done, and the numbers that say to which tensor and how."""

    name: str
    which: int
    choice: int
    a: int
    b: int


class Stop(Exception):
    """What follows means nothing: a walk ended half-way."""


class Machine:
    """The tensors of a program, and what it saw."""

    def __init__(self, torch: Any, kind: str) -> None:
        self.torch, self.kind = torch, kind
        self.tensors: list[Any] = []
        self.views: list[int] = []  # of each tensor: the number of the one whose memory it was a view of
        self.seen: list[Any] = []

    def add(self, made: Any, base: int | None = None) -> None:
        if len(self.tensors) < MOST_TENSORS and made.numel() <= steps.MOST:
            self.tensors.append(made)
            self.views.append(len(self.tensors) - 1 if base is None else self.views[base])

    def fresh(self, shape: tuple[int, ...], shift: float = 0.0) -> Any:
        torch = self.torch
        return torch.arange(steps.count(shape), dtype=torch.float32).reshape(shape) * 0.125 - 0.5 + shift

    def has_views(self, at: int) -> bool:
        return self.views.count(self.views[at]) > 1


# Each takes the machine, the number of a tensor, the tensor, and three numbers.

VIEWS: list[Callable[..., Any]] = [
    *(lambda m, x, a, b, view=view: view(m.torch, x, a, b, a + b) if x.ndim and x.numel() else x[...]
      for view in (*steps.VIEWS, steps.merge_dims, steps.split_dim, steps.expand)),
    lambda m, x, a, b: x.unfold(a % x.ndim, 1 + b % 2, 2) if 0 < x.ndim < 4 and x.shape[a % x.ndim] > 1 else x[...],
    lambda m, x, a, b: x.detach(),
    lambda m, x, a, b: x[...],
    lambda m, x, a, b: x.view(-1),
    lambda m, x, a, b: x.contiguous(),
    lambda m, x, a, b: x.diagonal(a % 2, -1, -2) if x.ndim > 1 else x.view(x.shape),
    lambda m, x, a, b: x.mT if x.ndim > 1 else x.t(),
    lambda m, x, a, b: x.view_as(x),
]  # fmt: skip


def other_like(m: Machine, x: Any, a: int) -> Any:
    """Another tensor of this shape, or of shape (), with its own memory."""
    found = [t for t in m.tensors if t.shape == x.shape and t is not x]
    return found[a % len(found)].clone() if found else m.tensors[a % len(m.tensors)].sum() * 0.125


def set_row(m: Machine, x: Any, a: int, b: int) -> None:
    x[a % x.shape[0]] = x[b % x.shape[0]].clone() if b % 2 else 0.5


def add_rows(m: Machine, x: Any, a: int, b: int) -> None:
    x[a % x.shape[0] :] += 0.25


def set_all(m: Machine, x: Any, a: int, b: int) -> None:
    x[...] = x if b % 2 else 1.5


def set_other(m: Machine, x: Any, a: int, b: int) -> None:
    x[...] = other_like(m, x, a)


WRITES: list[Callable[..., Any]] = [
    lambda m, x, a, b: x.add_(1.0),
    lambda m, x, a, b: x.mul_(0.5),
    lambda m, x, a, b: x.neg_(),
    lambda m, x, a, b: x.add_(-0.5) if 0 in x.stride() and x.requires_grad else x.fill_(a * 0.25),
    lambda m, x, a, b: x.mul_(2.0) if 0 in x.stride() and x.requires_grad else x.zero_(),
    lambda m, x, a, b: x.copy_(x),
    lambda m, x, a, b: x.view_as(x).copy_(x.view_as(x)),
    lambda m, x, a, b: x.mT.copy_(x.mT) if x.ndim > 1 else x[...].copy_(x),
    lambda m, x, a, b: x.copy_(x.detach()) if 0 not in x.stride() else x.copy_(x),
    lambda m, x, a, b: x.add_(x),
    lambda m, x, a, b: x.add_(other_like(m, x, a)),
    lambda m, x, a, b: x.copy_(other_like(m, x, a)),
    lambda m, x, a, b: x.sub_(m.tensors[0].sum()),
    set_row,
    add_rows,
    set_all,
    set_other,
]
ONTO_ITSELF = [*WRITES[5:9], set_all]  # writes of what is there
FORMULA_WRITES: list[Callable[..., Any]] = [
    lambda m, x, a, b: x.cos_(),
    lambda m, x, a, b: x.sin_(),
    lambda m, x, a, b: x.mul_(other_like(m, x, a)),
    lambda m, x, a, b: x.mul_(x),
]
NEW: list[Callable[..., Any]] = [
    lambda m, x, a, b: x * 0.5 + 1.0,
    lambda m, x, a, b: x + other_like(m, x, a),
    lambda m, x, a, b: x.clone(),
    lambda m, x, a, b: x.flip(0) if x.ndim else x * 1.0,
    lambda m, x, a, b: x.mT.reshape(-1) if x.ndim > 1 else x.repeat(2) if x.ndim else x + 1.0,
    lambda m, x, a, b: m.fresh(tuple(x.shape), a * 0.5),
    lambda m, x, a, b: m.torch.zeros(x.shape).copy_(x),
]
FORMULAS: list[Callable[..., Any]] = [
    lambda m, x, a, b: x * x,
    lambda m, x, a, b: x.sin(),
    lambda m, x, a, b: x.tanh(),
    lambda m, x, a, b: x * other_like(m, x, a),
]
SHAPES_IN_PLACE: list[Callable[..., Any]] = [
    lambda m, x, a, b: x.t_(),
    lambda m, x, a, b: x.transpose_(a % x.ndim, b % x.ndim),
    lambda m, x, a, b: x.swapaxes_(a % x.ndim, b % x.ndim),
    lambda m, x, a, b: x.swapdims_(0, -1),
    lambda m, x, a, b: x.squeeze_(),
    lambda m, x, a, b: x.squeeze_(a % x.ndim),
    lambda m, x, a, b: x.unsqueeze_(a % (x.ndim + 1)),
]


def number_of(m: Machine, x: Any) -> int:
    return next(i for i, t in enumerate(m.tensors) if t is x)


def set_data(m: Machine, x: Any, a: int, b: int) -> None:
    """Other memory: fresh, another tensor's, or a view of its own."""
    at = number_of(m, x)
    if m.kind != "values" and m.has_views(at) and not (x.is_leaf and x.requires_grad):
        return  # PyTorch's views and their base would go on to take each other's history for their own.
    choices = (m.fresh((2, 3), b), m.tensors[b % len(m.tensors)].detach(), x.detach()[..., :1] if x.ndim else x.data)
    other = choices[a % 3].clone().contiguous() if m.kind != "values" and a % 3 == 1 and b % 2 else choices[a % 3]
    if m.kind != "values" and (other.shape != x.shape or x.requires_grad != m.tensors[0].requires_grad):
        other = m.fresh(tuple(x.shape), b)
    x.data = other
    m.views[at] = at if not x.requires_grad or x.is_leaf else m.views[at]


def resize(m: Machine, x: Any, a: int, b: int) -> None:
    x.resize_(1 + a % x.numel() if x.is_contiguous() and x.numel() else 1)  # What grows may move.


def copies(m: Machine, x: Any, a: int, b: int) -> None:
    at = number_of(m, x)
    if a % 2:
        for made in deepcopy((x.detach(), m.tensors[b % len(m.tensors)].detach())):
            m.add(made)
    else:
        m.add(copy(x), at)


ANYTHING: list[Callable[..., Any]] = [
    resize,
    lambda m, x, a, b: x.set_(m.tensors[a % len(m.tensors)]),
    lambda m, x, a, b: x.resize_as_(x[:1] if x.is_contiguous() else x),
    copies,
]


def pick(table: list[Callable[..., Any]], m: Machine, step: Instruction) -> tuple[Any, Any]:
    x = m.tensors[step.which % len(m.tensors)]
    return x, table[step.choice % len(table)](m, x, step.a, step.b)


def backward(m: Machine, step: Instruction) -> None:
    x = m.tensors[step.which % len(m.tensors)]
    if x.requires_grad:
        try:
            (x if step.choice % 2 else x.clone()).sum().backward(retain_graph=True)
        except RuntimeError:
            raise Stop from None


def leaf(m: Machine, step: Instruction) -> None:
    torch, x = m.torch, m.tensors[step.which % len(m.tensors)]
    match step.choice % 4:
        case 0 if m.kind != "values":
            m.add(m.fresh(((2, 3), (4,), (3, 2), (1, 3))[step.a % 4], step.b).requires_grad_())
        case 1 if m.kind != "values":
            m.add(torch.nn.Parameter(x.detach().clone().contiguous() if step.a % 2 else x))
        case 2 if m.kind != "values" and not m.has_views(number_of(m, x)):
            x.requires_grad_(bool(step.a % 3))
        case 3 if m.kind == "values" or not (m.has_views(number_of(m, x)) or (x.is_leaf and x.requires_grad)):
            x.detach_()


def write(m: Machine, step: Instruction) -> None:
    table = [*WRITES, *FORMULA_WRITES] if m.kind == "formulas" else WRITES
    before = [t._version for t in m.tensors]
    if m.kind == "formulas" and table[step.choice % len(table)] in ONTO_ITSELF:
        m.tensors[step.which % len(m.tensors)].mul_(1.0)  # For PyTorch it counts as a write, and so it is one.
    pick(table, m, step)
    if m.kind == "formulas":
        m.seen.append([t._version > was for t, was in zip(m.tensors, before, strict=True)])


def write_unrecorded(m: Machine, step: Instruction) -> None:
    with m.torch.no_grad():
        write(m, step)


def shape_in_place(m: Machine, step: Instruction) -> None:
    x = m.tensors[step.which % len(m.tensors)]
    if m.kind == "formulas":  # PyTorch counts it as a write, which what a formula kept does not survive.
        m.add(x.clone().contiguous())
        x, step = m.tensors[-1], step._replace(which=len(m.tensors) - 1)
    with m.torch.set_grad_enabled(x.requires_grad or bool(step.b % 3)):
        x, _ = pick(SHAPES_IN_PLACE, m, step)
    m.seen.append(tuple(x.shape))


def view(m: Machine, step: Instruction) -> None:
    _, made = pick(VIEWS, m, step)
    m.add(made, step.which % len(m.tensors))


def new(m: Machine, step: Instruction) -> None:
    _, made = pick([*NEW, *FORMULAS] if m.kind == "formulas" else NEW, m, step)
    made = made.contiguous()  # PyTorch keeps the strides of what it computes with, which nobody promises.
    m.add(made, step.which % len(m.tensors) if made._is_view() else None)


ACTIONS: dict[str, Callable[[Machine, Instruction], Any]] = {
    "view": view,
    "write": write,
    "write_unrecorded": write_unrecorded,
    "new": new,
    "leaf": leaf,
    "backward": backward,
    "shape": shape_in_place,
    "data": lambda m, s: pick([set_data], m, s) if m.kind != "formulas" else None,
    "data_alias": lambda m, s: m.add(m.tensors[s.which % len(m.tensors)].data) if m.kind != "formulas" else None,
    "anything": lambda m, s: pick(ANYTHING, m, s) if m.kind == "values" else None,
    "read": lambda m, s: m.seen.append(m.tensors[s.which % len(m.tensors)].sum().item()),
}
NAMES = [*ACTIONS, "view", "view", "write", "write", "write", "new", "backward", "shape", "data"]
RANGES = (12, 100, 12, 12)  # of the numbers of an instruction
KINDS = ("values", "moves", "formulas")


def play(torch: Any, kind: str, program: list[Instruction]) -> list[Any]:
    """What a program saw, and what all its tensors are in the end."""
    m = Machine(torch, kind)
    m.add(m.fresh((2, 3)))
    if kind != "values":
        m.tensors[0].requires_grad_()
        m.add(m.tensors[0] * 2.0)
    for step in program:
        for x in m.tensors:
            x.grad_fn  # noqa: B018 - PyTorch takes a view for a leaf until somebody asks.
        try:
            ACTIONS[step.name](m, step)
        except Stop:  # What had arrived by then is nobody's promise.
            return [*m.seen, REFUSED]
        except ERRORS:
            m.seen.append(f"{step.name} raises")
        except ZeroDivisionError:  # A number modulo the axes of a tensor without any.
            m.seen.append("nothing to choose from")
    return [*m.seen, [facts(m, x) for x in m.tensors], pointers(m), m.tensors, gradients(m)]


def facts(m: Machine, x: Any) -> Any:
    strides = tuple(step for n, step in zip(x.shape, x.stride(), strict=True) if n > 1) if x.numel() else ()
    return tuple(x.shape), strides, x.is_contiguous(), x.requires_grad, x.is_leaf


def pointers(m: Machine) -> list[bool]:
    """Which pairs of tensors start at one place of memory."""
    found = [x.data_ptr() if x.numel() else None for x in m.tensors]
    return [p == q for i, p in enumerate(found) for q in found[:i] if p is not None and q is not None]


def gradients(m: Machine) -> list[Any]:
    return [x.grad for x in m.tensors if x.is_leaf]


def drawn(random: Random, most: int) -> tuple[str, list[Instruction]]:
    """A kind and a program."""
    program = []
    for _ in range(random.randint(1, most)):
        program.append(Instruction(random.choice(NAMES), *[random.randrange(n) for n in RANGES]))
    return random.choice(KINDS), program


def agree(kind: str, program: list[Instruction], device: str) -> None:
    """The library shows what PyTorch shows, and refuses what it refuses."""
    case = Case("program", lambda torch: play(torch, kind, program), grad=False, tolerance="model")
    with oracle.quiet():
        expected = run.run(case, oracle.torch, "cpu")
        found = run.run(case, oracle.library(), device)
    if expected.outputs[-1] == REFUSED and any(step.name == "read" for step in program):
        # A read may give a view that a formula needs memory of its own: its value is then known in spite of a write.
        seen = len(expected.outputs) - 1
        expected, found = (replace(result, outputs=result.outputs[:seen]) for result in (expected, found))
    run.check(case, found, expected, oracle.engine(device))


def main(count: int, device: str, seed: int = 0) -> int:
    """Plays `count` programs, and prints those on which the library and PyTorch differ."""
    differ = 0
    for number in range(count):
        kind, program = drawn(Random(f"{seed}:{number}"), 15)
        try:
            agree(kind, program, device)
        except Exception as error:
            differ += 1
            print(f"program {number}, {kind}: {type(error).__name__}: {error}\n  {program}", flush=True)
    print(f"{count} programs on {device}, seed {seed}: {differ} differ")
    return int(differ > 0)


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:])))
