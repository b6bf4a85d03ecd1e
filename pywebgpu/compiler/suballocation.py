"""Values that lie inside another value's buffer: pieces of a stored vector, and the parts of a pack.

A slice of data that is contiguous and aligned is a value of its own, a window: kernels read it like any other leaf, so
those of equal layers are equal. A part of a pack is written by its producer where the pack wants it. Parts that cannot
be (leaves, what a caller wants for itself, what two packs want) are copied, neighbours by one kernel; so a pack itself
has nothing left to do but to fill gaps.

No dispatch may bind a buffer for reading and for writing, not even two ranges of it: see `clashes`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

from pywebgpu.compiler.packed_stores import needs_copy
from pywebgpu.ir import walk
from pywebgpu.ir.graph import DATA, HOST, NO_ATTRS, WHICH, Movement, Node, Spec, thread_state
from pywebgpu.kernels.access import Chain, is_free, is_view, read_at
from pywebgpu.kernels.templates import Selection
from pywebgpu.ops import indexing, movement, packing, pointwise, scattering
from pywebgpu.support.symbolic import constant, variable

if TYPE_CHECKING:
    from pywebgpu.compiler.schedule import Schedule


@dataclass(slots=True)
class Suballocation:
    """The graph with windows for slices and with copies where a pack needs them.

    inside: by id, a value -> the value in whose buffer it lies, and at which element it starts.
    parts: those of them that kernels write.  windows: those that are leaves.
    origin: by id, a node -> the id of what it was before it was rebuilt.
    written_over: by id, a value -> the one in whose buffer it is made, element for element.
    """

    roots: tuple[Node, ...]
    inside: dict[int, tuple[Node, int]] = field(default_factory=dict)
    parts: list[Node] = field(default_factory=list)
    windows: list[Node] = field(default_factory=list)
    origin: dict[int, int] = field(default_factory=dict)
    written_over: dict[int, Node] = field(default_factory=dict)

    def first(self, node: Node) -> Node:
        """What was written first in the buffer where a value is made over others."""
        return self.written_over.get(id(node), node)

    def reuse(self, pairs: Iterable[tuple[Node, Node]]) -> None:
        """Puts results where the values of before lie, whose last readers make them. pairs: in the order of running."""
        for result, value in pairs:
            self.inside[id(value)] = result, 0
            self.parts.append(value)
            self.written_over[id(result)] = self.first(value)
        _flatten(self.inside)


def is_done(node: Node) -> bool:
    """Whether nothing is left to do: for a part of a vector, for a pack once its parts are there."""
    if node.op is packing.part:
        return True
    return node.op is packing.pack and not (node.attrs["clean"] and packing.gaps(node))


def windows(roots: tuple[Node, ...], order: Sequence[Node]) -> Suballocation:
    """Replaces aligned slices of data by leaves. `order` is the toposorted graph."""
    placed = Suballocation(roots)
    window_of: dict[tuple[int, int, Spec], Node] = {}

    def rule(node: Node) -> Node:
        source, start = source_of(node)
        if source is None:
            return node
        owner, before = placed.inside.get(id(source), (source, 0))
        key = (id(owner), before + start, node.spec)
        if key not in window_of:
            window = Node(DATA, (), NO_ATTRS, node.spec)
            window.buffer = owner.buffer
            window_of[key] = window
            placed.windows.append(window)
            placed.inside[id(window)] = owner, before + start
        return window_of[key]

    placed.roots = walk.rebuild(roots, order, rule)
    return placed


def source_of(node: Node) -> tuple[Node | None, int]:
    """The data that a slice is one run of elements of, which may be bound by itself, and where it starts; or None."""
    if node.op not in (movement.slice_, packing.piece) or node.buffer is not None or 0 in node.spec.shape:
        return None, 0
    chain: Chain = ()
    source = node
    while source is node or (source.buffer is None and source.op is movement.reshape):
        assert isinstance(source.op, Movement)
        below = source.inputs[0]
        chain = (*chain, (source.op, tuple(source.attrs.items()), below.spec.shape))
        source = below
    if source.buffer is None or source.op is HOST:
        return None, 0
    first = read_at(constant(0), node.spec.shape, chain)
    if first is None or first.low % packing.alignment(node.spec.dtype):
        return None, 0
    position = variable("i", prod(node.spec.shape))
    return (source if read_at(position, node.spec.shape, chain) == position + first.low else None), first.low


def suballocate(
    before: Suballocation, order: Sequence[Node], selection: Selection, packed_apart: Collection[int] = ()
) -> Suballocation:
    """Finds for each part of each pack whether its producer may write it there, and copies the others.

    order: the toposorted graph of `before`.  apart: ids of values in it that keep a buffer of their own.
    """
    placed = Suballocation(before.roots, dict(before.inside), windows=before.windows)
    if not any(_is_placed(node) for node in order):
        return placed
    taken = {id(root) for root in before.roots} | set(packed_apart)
    new: dict[int, Node] = {}
    bases = _Bases(order, taken, new, placed)
    for node in order:
        fresh = node
        if not node.is_source:
            inputs = tuple([new[id(source)] for source in node.inputs])
            if node.op is packing.pack:
                fresh = _packed(node, inputs, taken, new, placed, selection)
            elif node.op.name in scattering.OVERWRITING:
                fresh = bases.overwriting(node, inputs)
            elif node.op is packing.part:
                fresh = Node(node.op, inputs, node.attrs, node.spec)
                placed.inside[id(fresh)] = inputs[0], node.attrs["start"]
                placed.parts.append(fresh)
            elif inputs != node.inputs:
                fresh = Node(node.op, inputs, node.attrs, node.spec)
            if thread_state.origins is not None:
                thread_state.origins.carry(node, fresh)
        new[id(node)] = fresh
    placed.roots = tuple(new[id(root)] for root in before.roots)
    placed.origin = {id(fresh): node_id for node_id, fresh in new.items()}
    _flatten(placed.inside)
    return placed


def _is_placed(node: Node) -> bool:
    """Whether a node says where values lie."""
    return not node.is_source and (node.op in (packing.pack, packing.part) or scattering.overwrites(node))


def _flatten(inside: dict[int, tuple[Node, int]]) -> None:
    """What lies in a value that lies in another lies in that one."""
    for node_id, (owner, start) in inside.items():
        while id(owner) in inside:
            owner, more = inside[id(owner)]
            start += more
        inside[node_id] = owner, start


class _Bases:
    """What ops write over: a computed value that nobody else reads, else a copy of it."""

    def __init__(self, order: Sequence[Node], taken: set[int], new: dict[int, Node], placed: Suballocation) -> None:
        self._taken, self._new, self._placed = taken, new, placed
        self._users: dict[int, set[Any]] = {}
        for node in order:
            for source in () if node.is_source else node.inputs:
                self._users.setdefault(id(source), set()).add(_call(node))
        self._found: dict[Any, Node] = {}

    def overwriting(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        """An op with inputs in the new graph, the first of which it may write over."""
        call = _call(node)
        if call not in self._found:
            self._found[call] = self._base(node.inputs[0], inputs[0])
        base = self._found[call]
        owner = _owner(base)
        assert owner is not None, "what is written over is computed"
        fresh = Node(node.op, (base, *inputs[1:]), node.attrs, node.spec)
        if scattering.overwrites(node):
            self._placed.inside[id(owner)] = fresh, 0
            self._placed.parts.append(owner)
            self._placed.written_over[id(fresh)] = self._placed.first(owner)
        return fresh

    def _base(self, old: Node, source: Node) -> Node:
        owner, current = _owner(old), old
        is_alone = owner is not None and id(owner) not in self._taken and len(self._users[id(current)]) == 1
        while is_alone and current is not owner:
            current = current.inputs[0]
            is_alone = len(self._users[id(current)]) == 1
        if not is_alone:
            return pointwise.copy(source)
        self._taken.add(id(owner))
        return source


def _call(node: Node) -> Any:
    """The same of the values of one op, which its kernel computes together."""
    if WHICH not in node.attrs:
        return id(node)
    attrs = tuple([(name, value) for name, value in node.attrs.items() if name != WHICH])
    return (node.op, *map(id, node.inputs), attrs)


def _packed(
    node: Node,
    inputs: tuple[Node, ...],
    taken: set[int],
    new: dict[int, Node],
    placed: Suballocation,
    selection: Selection,
) -> Node:
    """The pack of parts that are computed where they belong. `inputs` are those of `node` in the new graph."""
    parts: list[tuple[int, Node]] = []
    copied: list[tuple[int, Node]] = []  # neighbours that no kernel of their own computes
    ends = (*node.attrs["starts"][1:], node.attrs["size"])

    def join(end: int) -> None:
        if copied:
            parts.append((copied[0][0], _joined(copied, end)))
            copied.clear()

    for start, end, old, source in zip(node.attrs["starts"], ends, node.inputs, inputs, strict=True):
        if 0 in source.spec.shape:
            continue
        owner = _owner(old)
        if owner is not None and id(owner) not in taken and not needs_copy(owner, selection):
            join(start)
            taken.add(id(owner))
            parts.append((start, new[id(owner)]))
        elif owner is not None:
            join(start)
            parts.append((start, pointwise.copy(source)))
        else:
            copied.append((start, source))
            if len(copied) == selection.target.limits.bindings - 2:
                join(end)
    join(node.attrs["size"])
    attrs = {**node.attrs, "starts": tuple([start for start, _ in parts])}
    packed = Node(packing.pack, tuple([part for _, part in parts]), attrs, node.spec)
    for start, part in parts:
        placed.inside[id(part)] = packed, start
        placed.parts.append(part)
    return packed


def _owner(source: Node) -> Node | None:
    """The computed value that has exactly the elements of `source`, in their order; None where a kernel must copy."""
    while source.buffer is None and source.op in (movement.reshape, movement.alias, movement.barrier):
        source = source.inputs[0]
    if source.buffer is not None or is_view(source) or is_free(source) or source.op is packing.pack:
        return None
    return source


def _joined(copied: list[tuple[int, Node]], end: int) -> Node:
    """One vector of neighbours, with zeros between them, up to `end`."""
    pieces: list[Node] = []
    ends = [*(start for start, _ in copied[1:]), end]
    for (start, source), after in zip(copied, ends, strict=True):
        count = prod(source.spec.shape)
        pieces.append(movement.reshape(source, shape=(count,)))
        if start + count < after:
            pieces.append(pointwise.full(0.0, Spec((after - start - count,), source.spec.dtype)))
    return indexing.cat(*pieces, axis=0) if len(pieces) > 1 else pointwise.copy(pieces[0])


def clashes(schedule: Schedule, placed: Suballocation) -> list[Node]:
    """The parts that a kernel reads while it writes another part of their pack."""
    clashing: dict[int, Node] = {}
    for group in schedule.groups:
        written = {id(placed.inside[id(node)][0]) for node in group.outputs if id(node) in placed.inside}
        over = {id(placed.first(node)) for node in group.outputs}
        if not written:
            continue
        for node in schedule.reads(group):
            if id(placed.first(node)) in over:
                continue
            if id(node) in placed.inside and id(placed.inside[id(node)][0]) in written:
                clashing[id(node)] = node
    return list(clashing.values())


def may_move(part: Node, placed: Suballocation) -> bool:
    """Whether nothing else lies in a part, or is made over it, so that it alone can lie elsewhere."""
    over = {id(node) for node in placed.written_over.values()} | placed.written_over.keys()
    return id(part) not in over and all(
        window.op is not packing.part or window.inputs[0] is not part for window in placed.parts
    )


def move(part: Node, placed: Suballocation) -> Node:
    """Gives a part of a pack a buffer of its own. Returns its copy, which lies in the pack."""
    copy = pointwise.copy(part)
    placed.inside[id(copy)] = placed.inside.pop(id(part))
    placed.parts[placed.parts.index(part)] = copy
    return copy
