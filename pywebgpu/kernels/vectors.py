"""A pass that loads and stores several elements at a time, where a kernel computes neighbours one after the other.

An array is read as vectors where each of its loads and stores has a known place in an aligned vector (its index is a
multiple of the width plus a constant), stores come in whole vectors, and something is won. Others stay as they are.
A vector is loaded where its first component was, in the same block: a variable in an index may not change meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from pywebgpu.kernels import ir
from pywebgpu.kernels.ir import Array, Expr, Index, Load, Type, Var
from pywebgpu.support.symbolic import Sym

Place = tuple[Sym, int]  # a vector, and a component of it


@dataclass(slots=True)
class _Use:
    """How a kernel uses an array. Vectors are told apart by the block that has them: one is made of one block's.

    loaded, stored: by block and vector, the components.  last: by block and vector, the statement that stores last.
    """

    is_aligned: bool = True
    loaded: dict[tuple[int, Sym], set[int]] = field(default_factory=dict)
    stored: dict[tuple[int, Sym], dict[int, Expr]] = field(default_factory=dict)
    last: dict[tuple[int, Sym], int] = field(default_factory=dict)

    def is_won(self, width: int) -> bool:
        joined = [components for components in (*self.loaded.values(), *self.stored.values()) if len(components) > 1]
        return self.is_aligned and bool(joined) and all(len(values) == width for values in self.stored.values())


def vectorize(
    body: ir.Block, arrays: Sequence[Array], width: int, shared: Collection[Array] = ()
) -> tuple[ir.Block, dict[Array, Array]]:
    """The body with vectors of `width`, and by array the array of vectors in its place.

    shared: arrays whose words hold several elements each, so that neighbours are fewer words: pairs, where not more.
    """
    vector_arrays: dict[Array, Array] = {}
    for letter, each, candidates in (
        ("q", width, arrays),
        ("w", 2, [array for array in arrays if array in shared and width > 2]),
    ):
        uses = {
            array: _Use(array.size % each == 0 and array.type.width == 1)
            for array in candidates
            if array not in vector_arrays
        }
        if not uses:
            continue
        _note(body, uses, each)
        vectors = {array: _vectors(array, each) for array, use in uses.items() if use.is_won(each)}
        body = _Vectors(uses, vectors, each, letter).block(body) if vectors else body
        vector_arrays |= vectors
    return body, vector_arrays


def _vectors(array: Array, width: int) -> Array:
    kind = Type(array.type.kind, width)
    return Array(array.space, array.name, kind, array.length // width, array.size // width)


def _access(statement: ir.Statement) -> tuple[Load, ...]:
    """The element that a statement does nothing but load or store, or those that it loads as a vector."""
    if type(statement) is ir.Declare:  # A match takes several times as long, and each statement is asked.
        value = statement.value
        if statement.word == "let" and type(statement.target) is Var:
            if type(value) is Load:
                return (value,)
            if type(value) is ir.Call and value.args and type(value.args[0]) is Load:
                return _gathered(value)
    elif type(statement) is ir.Assign:
        target = statement.target
        return (target,) if type(target) is Load and statement.sign == "=" else ()
    return ()


def _gathered(value: ir.Call) -> tuple[Load, ...]:
    """Loads of one array that make a vector."""
    loads = tuple([load for load in value.args if type(load) is Load])
    is_vector = len(loads) == len(value.args) == value.type.width > 1
    return loads if is_vector and all(load.array is loads[0].array for load in loads) else ()


def _place(index: Expr, width: int) -> Place | None:
    """Where an index is in an array of vectors; None where the component is not the same in each run."""
    return _divided(index.at, width) if isinstance(index, Index) else None


def _sure(index: Expr, width: int) -> Place:
    place = _place(index, width)
    assert place is not None
    return place


@lru_cache(4096)
def _divided(index: Sym, width: int) -> Place | None:
    for _, factor in index.terms:
        if factor % width:
            return None
    return Sym(
        tuple([(atom, factor // width) for atom, factor in index.terms]), index.const // width
    ), index.const % width


def _note(body: ir.Block, uses: Mapping[Array, _Use], width: int) -> None:
    """Adds what a block does with arrays. Those that a statement uses otherwise stay as they are."""
    for index, statement in enumerate(body):
        if type(statement) is not ir.Declare and type(statement) is not ir.Assign:
            _leave(_conditions(statement), uses)
            for inner in ir.blocks(statement):
                _note(inner, uses, width)
            continue
        accesses = _access(statement)
        if not accesses or type(statement) is ir.Assign:
            _leave([statement.value] if accesses else [statement.value, statement.target], uses)
        for load in accesses:
            if type(load.index) is not Index:
                _leave([load.index], uses)
            if load.array in uses:
                _note_access(load, statement, index, body, uses[load.array], width)


def _note_access(load: Load, statement: ir.Statement, index: int, body: ir.Block, use: _Use, width: int) -> None:
    place = _place(load.index, width)
    if place is None or load.width != 1:
        use.is_aligned = False
    elif isinstance(statement, ir.Assign):
        key = id(body), place[0]
        values = use.stored.setdefault(key, {})
        between = body[use.last.get(key, index) : index]
        use.is_aligned = use.is_aligned and place[1] not in values and all(map(_may_wait, between))
        values[place[1]] = statement.value
        use.last[key] = index
    else:
        # It may be read after it was written.
        use.is_aligned = use.is_aligned and all(block != id(body) for block, _ in use.stored)
        use.loaded.setdefault((id(body), place[0]), set()).add(place[1])


def _conditions(statement: ir.Statement) -> list[object]:
    """What a statement with blocks computes itself."""
    if isinstance(statement, ir.If):
        return [condition for condition, _ in statement.branches]
    if isinstance(statement, ir.Loop):
        start, step = statement.head or (None, None)
        return [statement.condition, start and start.value, step and step.value]
    return []


def _leave(stack: list[object], uses: Mapping[Array, _Use]) -> None:
    """Arrays in expressions are read there as they are."""
    for expr in stack:  # It grows meanwhile.
        if type(expr) is ir.Call:
            stack += [arg for arg in expr.args if type(arg) is not Var]
        elif type(expr) is Load:
            if expr.array in uses:
                uses[expr.array].is_aligned = False
            stack.append(expr.index)


def _may_wait(statement: ir.Statement) -> bool:
    """Whether a store may as well come after a statement: it goes on, and changes no variable."""
    return isinstance(statement, ir.Declare) or (
        isinstance(statement, ir.Assign) and isinstance(statement.target, Load)
    )


@dataclass(slots=True)
class _Vectors:
    """Writes a body anew. made: by array, the array of vectors in its place."""

    uses: Mapping[Array, _Use]
    made: Mapping[Array, Array]
    width: int
    letter: str
    count: int = 0
    _blocks: set[int] = field(default_factory=set)  # ids of those that have some of them

    def __post_init__(self) -> None:
        for array in self.made:
            use = self.uses[array]
            self._blocks.update([block for block, _ in (*use.loaded, *use.stored)])

    def block(self, body: ir.Block) -> ir.Block:
        if id(body) not in self._blocks:
            return [self._inside(statement) for statement in body]
        statements: ir.Block = []
        loaded: dict[tuple[Array, Sym], Var] = {}
        for index, statement in enumerate(body):
            loads = _access(statement)
            if not loads or loads[0].array not in self.made:
                statements.append(self._inside(statement))
                continue
            places = [_sure(load.index, self.width) for load in loads]
            array, use = self.made[loads[0].array], self.uses[loads[0].array]
            if isinstance(statement, ir.Declare):
                assert isinstance(statement.target, Var)
                first = array, places[0][0]
                if first not in loaded and places == [(first[1], number) for number in range(self.width)]:
                    loaded[first] = statement.target
                    statements.append(ir.Declare("let", statement.target, array[Index(first[1])]))
                    continue
                for vector, _ in places:
                    if (array, vector) not in loaded:
                        loaded[array, vector] = Var(array.type, f"{self.letter}{self.count}")
                        self.count += 1
                        statements.append(ir.Declare("let", loaded[array, vector], array[Index(vector)]))
                parts = [loaded[array, vector][component] for vector, component in places]
                value = parts[0] if type(statement.value) is Load else ir.joined(statement.target.type, parts)
                statements.append(ir.Declare(statement.word, statement.target, value))
                continue
            ((vector, _),) = places
            if use.last[id(body), vector] == index:
                values = use.stored[id(body), vector]
                vector_value = ir.joined(array.type, [values[number] for number in range(self.width)])
                statements.append(ir.Assign(array[Index(vector)], vector_value))
        return statements

    def _inside(self, statement: ir.Statement) -> ir.Statement:
        if type(statement) is ir.Declare or type(statement) is ir.Assign:  # A match takes several times as long.
            return statement
        match statement:
            case ir.If(branches):
                return ir.If([(condition, self.block(body)) for condition, body in branches])
            case ir.Loop(condition, body, head):
                return ir.Loop(condition, self.block(body), head)
            case ir.Scope(body):
                return ir.Scope(self.block(body))
        return statement
