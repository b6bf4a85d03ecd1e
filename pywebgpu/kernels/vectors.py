"""A pass that loads and stores several elements at a time, where a kernel computes neighbours one after the other.

An array is read as vectors where each of its loads and stores has a known place in an aligned vector (its index is a
multiple of the width plus a constant), stores come in whole vectors, each within a block, and so do loads in blocks
that not every invocation enters. Others stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pywebgpu.kernels import ir
from pywebgpu.kernels.ir import Array, Expr, Index, Load, Type, Var
from pywebgpu.symbolic import Sym

Place = tuple[int, Sym]  # a block, by its id, and a vector


@dataclass(slots=True)
class _Use:
    """How a kernel uses an array. at: by id of a statement, the vector and the component that it loads or stores.

    stored: by block and vector, the values of the components that are stored, and the last statement that does.
    loaded: by block and vector, the components that are loaded; not of the body itself.
    """

    is_aligned: bool = True
    at: dict[int, tuple[Sym, int]] = field(default_factory=dict)
    stored: dict[Place, dict[int, Expr]] = field(default_factory=dict)
    last: dict[Place, int] = field(default_factory=dict)
    loaded: dict[Place, set[int]] = field(default_factory=dict)


def vectorize(body: ir.Block, arrays: Sequence[Array], width: int) -> tuple[ir.Block, dict[Array, Array]]:
    """The body with vectors of `width`, and by array the array of vectors in its place."""
    uses = {array: _Use(array.size % width == 0) for array in arrays}
    _note_block(body, uses, width, is_inner=False)
    made = {array: _vectors(array, width) for array, use in uses.items() if _is_whole(use, width)}
    return (_Vectors(uses, made, width).block(body) if made else body), made


class _Vectors:
    """Rewrites blocks. Vectors have names of their own in the whole kernel."""

    def __init__(self, uses: dict[Array, _Use], made: dict[Array, Array], width: int) -> None:
        self._uses, self._made, self._width = uses, made, width
        self._named = 0

    def block(self, body: ir.Block) -> ir.Block:
        found: ir.Block = []
        loaded: dict[tuple[Array, Sym], Var] = {}
        for statement in body:
            load = _access(statement)
            if load is None or load.array not in self._made:
                found.append(self._inside(statement))
            elif isinstance(statement, ir.Declare):
                vector, component = self._uses[load.array].at[id(statement)]
                key = load.array, vector
                if key not in loaded:
                    loaded[key] = Var(self._made[load.array].type, f"q{self._named}")
                    self._named += 1
                    found.append(ir.Declare("let", loaded[key], self._made[load.array][Index(vector)]))
                found.append(ir.Declare(statement.word, statement.target, loaded[key][component]))
            else:
                found += self._stored(load, statement)
        return found

    def _stored(self, load: Load, statement: ir.Assign) -> ir.Block:
        """The store of a whole vector, in the place of the last of its components."""
        use, array = self._uses[load.array], self._made[load.array]
        place = next((place for place, last in use.last.items() if last == id(statement)), None)
        if place is None:
            return []
        values, (_, vector) = use.stored[place], place
        whole = ir.construct(array.type, *[values[component] for component in range(self._width)])
        return [ir.Assign(array[Index(vector)], whole)]

    def _inside(self, statement: ir.Statement) -> ir.Statement:
        match statement:
            case ir.If(branches):
                return ir.If([(condition, self.block(body)) for condition, body in branches])
            case ir.Loop(condition, body, head):
                return ir.Loop(condition, self.block(body), head)
            case ir.Scope(body):
                return ir.Scope(self.block(body))
        return statement


def _vectors(array: Array, width: int) -> Array:
    kind = Type(array.type.kind, width)
    return Array(array.space, array.name, kind, array.length // width, array.size // width)


def _is_whole(use: _Use, width: int) -> bool:
    parts = [*use.stored.values(), *use.loaded.values()]
    return use.is_aligned and bool(use.at) and all(len(part) == width for part in parts)


def _access(statement: ir.Statement) -> Load | None:
    """The element that a statement does nothing but load or store."""
    match statement:
        case ir.Declare("let", Var(), Load() as load):
            return load
        case ir.Assign(Load() as load, _, "="):
            return load
    return None


def _note_block(body: ir.Block, uses: dict[Array, _Use], width: int, *, is_inner: bool) -> None:
    """Adds what the statements of a block do with arrays."""
    for statement in body:
        match statement:
            case ir.If(branches):
                outside: list[object] = [condition for condition, _ in branches]
                inner = [block for _, block in branches]
            case ir.Loop(condition, block, head):
                outside, inner = [condition, head], [block]
            case ir.Scope(block):
                outside, inner = [], [block]
            case _:
                outside, inner = _note(statement, id(body) if is_inner else 0, uses, width), []
        for array in _arrays(outside):
            if array in uses:
                uses[array].is_aligned = False
        for block in inner:
            _note_block(block, uses, width, is_inner=True)


def _note(statement: ir.Statement, block: int, uses: dict[Array, _Use], width: int) -> list[object]:
    """Adds what a statement does with the array that it does nothing else than load or store; gives all else in it."""
    load = _access(statement)
    if load is None or load.array not in uses:
        return list(statement)
    use, place = uses[load.array], _place(load.index, width)
    again = place is not None and isinstance(statement, ir.Assign) and place[1] in use.stored.get((block, place[0]), {})
    if place is None or again or load.width != 1 or load.array.type.width != 1:
        use.is_aligned = False
    else:
        use.at[id(statement)] = place
        if isinstance(statement, ir.Assign):
            use.stored.setdefault((block, place[0]), {})[place[1]] = statement.value
            use.last[block, place[0]] = id(statement)
        elif use.stored:
            use.is_aligned = False  # It is read after it was written.
        elif block:
            use.loaded.setdefault((block, place[0]), set()).add(place[1])
    return [load.index, statement.value] if isinstance(statement, ir.Assign) else [load.index]


def _place(index: Expr, width: int) -> tuple[Sym, int] | None:
    """Which vector an index is in, and which component it is of it; None where that is not the same in each run."""
    if not isinstance(index, Index) or any(factor % width for _, factor in index.at.terms):
        return None
    component = index.at.const % width
    terms = tuple([(atom, factor // width) for atom, factor in index.at.terms])
    return Sym(terms, index.at.const // width), component


def _arrays(stack: list[object]) -> list[Array]:
    """The arrays that expressions use."""
    found: list[Array] = []
    while stack:
        one = stack.pop()
        match one:
            case Load():
                found.append(one.array)
                stack.append(one.index)
            case ir.Call():
                stack.extend(one.args)
            case tuple() | list():
                stack.extend(one)
    return found
