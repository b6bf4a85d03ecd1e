"""A pass that loads and stores several elements at a time, where a kernel computes neighbours one after the other.

An array is read as vectors where each of its loads and stores has a known place in an aligned vector (its index is a
multiple of the width plus a constant) and stores come in whole vectors. Others stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pywebgpu.kernels import ir
from pywebgpu.kernels.ir import Array, Expr, Index, Load, Type, Var
from pywebgpu.symbolic import Sym


@dataclass(slots=True)
class _Use:
    """How a kernel uses an array. at: by number of a statement, the vector and the component that it loads or stores.

    stored: by vector, the values of the components that are stored, and the number of the last statement that does.
    """

    is_aligned: bool = True
    at: dict[int, tuple[Sym, int]] = field(default_factory=dict)
    stored: dict[Sym, dict[int, Expr]] = field(default_factory=dict)
    last: dict[Sym, int] = field(default_factory=dict)


def vectorize(body: ir.Block, arrays: Sequence[Array], width: int) -> tuple[ir.Block, dict[Array, Array]]:
    """The body with vectors of `width`, and by array the array of vectors in its place."""
    uses = {array: _Use(array.size % width == 0) for array in arrays}
    for at, statement in enumerate(body):
        _note(at, statement, uses, width)
    made = {array: _vectors(array, width) for array, use in uses.items() if _is_whole(use, width)}
    found: ir.Block = []
    loaded: dict[tuple[Array, Sym], Var] = {}
    for at, statement in enumerate(body):
        load = _access(statement)
        if load is None or load.array not in made:
            found.append(statement)
            continue
        vector, component = uses[load.array].at[at]
        array = made[load.array]
        if isinstance(statement, ir.Declare):
            key = load.array, vector
            if key not in loaded:
                loaded[key] = Var(array.type, f"q{len(loaded)}")
                found.append(ir.Declare("let", loaded[key], array[Index(vector)]))
            found.append(ir.Declare(statement.word, statement.target, loaded[key][component]))
        elif uses[load.array].last[vector] == at:
            values = uses[load.array].stored[vector]
            whole = ir.construct(array.type, *[values[component] for component in range(width)])
            found.append(ir.Assign(array[Index(vector)], whole))
    return found, made


def _vectors(array: Array, width: int) -> Array:
    kind = Type(array.type.kind, width)
    return Array(array.space, array.name, kind, array.length // width, array.size // width)


def _is_whole(use: _Use, width: int) -> bool:
    return use.is_aligned and bool(use.at) and all(len(values) == width for values in use.stored.values())


def _access(statement: ir.Statement) -> Load | None:
    """The element that a statement does nothing but load or store."""
    match statement:
        case ir.Declare("let", Var(), Load() as load):
            return load
        case ir.Assign(Load() as load, _, "="):
            return load
    return None


def _note(at: int, statement: ir.Statement, uses: dict[Array, _Use], width: int) -> None:
    """Adds what a statement does with arrays."""
    load = _access(statement)
    if load is not None and load.array in uses:
        use = uses[load.array]
        place = _place(load.index, width)
        again = place is not None and isinstance(statement, ir.Assign) and place[1] in use.stored.get(place[0], {})
        if place is None or again or load.width != 1 or load.array.type.width != 1:
            use.is_aligned = False
        else:
            use.at[at] = place
            if isinstance(statement, ir.Assign):
                use.stored.setdefault(place[0], {})[place[1]] = statement.value
                use.last[place[0]] = at
            elif use.stored:
                use.is_aligned = False  # It is read after it was written.
    for inner in _arrays(statement, is_access=load is not None):
        if inner in uses:
            uses[inner].is_aligned = False


def _place(index: Expr, width: int) -> tuple[Sym, int] | None:
    """Which vector an index is in, and which component it is of it; None where that is not the same in each run."""
    if not isinstance(index, Index) or any(factor % width for _, factor in index.at.terms):
        return None
    component = index.at.const % width
    terms = tuple([(atom, factor // width) for atom, factor in index.at.terms])
    return Sym(terms, index.at.const // width), component


def _arrays(statement: ir.Statement, *, is_access: bool) -> list[Array]:
    """The arrays that a statement uses, but for the one that it does nothing else than load or store."""
    stack: list[object] = list(statement)
    if is_access and isinstance(statement, ir.Assign):
        stack = [statement.value, statement.target.index]  # type: ignore[attr-defined]
    elif is_access:
        stack = [statement.value.index]  # type: ignore[union-attr]
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
