"""Integer expressions of bounded variables: what an index is before it is WGSL text.

An expression is a constant plus a sum of coefficient x atom; an atom is a variable, a quotient or a remainder. Building
one simplifies it: a reshape there and back cancels, a remainder that cannot wrap disappears, so index maps of whole
view chains come out as short as a person would write them. All values are non-negative where they are used as indices.
"""

from __future__ import annotations

from functools import lru_cache

from pywebgpu.support.shapes import Shape

KEPT = 1024  # results of each function: as many as a model's compilation asks for again, in 200 bytes each


class Var:
    """A variable with values low..high; `name` is what stands in the WGSL text. Immutable, compared by value."""

    __match_args__ = ("name", "low", "high")
    __slots__ = ("_hash", "high", "key", "low", "name")

    def __init__(self, name: str, low: int, high: int) -> None:
        self.name, self.low, self.high = name, low, high
        self.key = f"Var(name={name!r}, low={low}, high={high})"  # what orders terms
        self._hash = hash((name, low, high))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is Var and self.name == other.name and self.low == other.low and self.high == other.high
        )

    def __hash__(self) -> int:
        return self._hash


class _Part:
    """A quotient or a remainder. Immutable, compared by value."""

    __match_args__ = ("of", "by")
    __slots__ = ("_hash", "by", "high", "low", "of")

    of: Sym
    by: int
    low: int
    high: int
    _hash: int

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is type(self) and self.by == other.by and self.of == other.of)

    def __hash__(self) -> int:
        return self._hash

    @property
    def key(self) -> str:
        """What orders terms."""
        return f"{type(self).__name__}(of={self.of}, by={self.by})"


class Quotient(_Part):
    """floor(of / by)."""

    __slots__ = ()

    def __init__(self, of: Sym, by: int) -> None:
        self.of, self.by = of, by
        self.low, self.high = of.low // by, of.high // by
        self._hash = hash((Quotient, of, by))


class Remainder(_Part):
    """of mod by, never negative."""

    __slots__ = ()

    def __init__(self, of: Sym, by: int) -> None:
        self.of, self.by = of, by
        self.low, self.high = 0, min(by - 1, of.high if of.low >= 0 else by - 1)
        self._hash = hash((Remainder, of, by))


Atom = Var | Quotient | Remainder


class Sym:
    """constant + sum of coefficient x atom. Immutable, compared by value."""

    __slots__ = ("_hash", "const", "high", "low", "terms")

    def __init__(self, terms: tuple[tuple[Atom, int], ...], const: int) -> None:
        self.terms, self.const = terms, const
        self._hash = hash((terms, const))
        low = high = const
        for atom, factor in terms:
            if factor > 0:
                low += factor * atom.low
                high += factor * atom.high
            else:
                low += factor * atom.high
                high += factor * atom.low
        self.low, self.high = low, high

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Sym) and self.const == other.const and self.terms == other.terms)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return text(self)

    def __add__(self, other: Sym | int) -> Sym:
        if isinstance(other, int):
            return Sym(self.terms, self.const + other) if other else self
        if not other.terms:
            return self + other.const
        if not self.terms:
            return other + self.const
        return _sum(self, other)

    def __mul__(self, factor: int) -> Sym:
        if factor == 1:
            return self
        if factor == 0:
            return ZERO
        return Sym(tuple((atom, c * factor) for atom, c in self.terms), self.const * factor)

    def __sub__(self, other: Sym | int) -> Sym:
        return self + (-other if isinstance(other, int) else other * -1)

    def __floordiv__(self, by: int) -> Sym:
        return _divide(self, by)

    def __mod__(self, by: int) -> Sym:
        return _remainder(self, by)

    @property
    def is_constant(self) -> bool:
        return not self.terms


def constant(value: int) -> Sym:
    return Sym((), value)


ZERO = constant(0)


@lru_cache(KEPT)
def variable(name: str, size: int, low: int = 0) -> Sym:
    """A variable with values low..low+size-1; of one value, that value."""
    return constant(low) if size == 1 else Sym(((Var(name, low, low + max(size, 1) - 1), 1),), 0)


def _order(term: tuple[Atom, int]) -> tuple[int, str]:
    return (-term[1], term[0].key)


@lru_cache(KEPT)
def _sum(a: Sym, b: Sym) -> Sym:
    factors: dict[Atom, int] = dict(a.terms)
    for atom, factor in b.terms:
        factors[atom] = factors.get(atom, 0) + factor
    return _make(factors, a.const + b.const)


def _make(factors: dict[Atom, int], const: int) -> Sym:
    """Drops zeros and joins k*n*(e / n) + k*(e % n) into k*e."""
    for atom in list(factors):
        if isinstance(atom, Remainder) and (factor := factors.get(atom, 0)):
            partner = Quotient(atom.of, atom.by)
            if factors.get(partner, 0) == factor * atom.by:
                del factors[atom], factors[partner]
                for inner, c in atom.of.terms:
                    factors[inner] = factors.get(inner, 0) + c * factor
                return _make(factors, const + atom.of.const * factor)
            if factors.get(partner, 0) == 0:  # (e / a % b) with e / a / b hidden as e / (a*b)
                joined = _join_nested(factors, atom, factor)
                if joined is not None:
                    return _make(joined, const)
    terms = [(atom, factor) for atom, factor in factors.items() if factor]
    return Sym(tuple(sorted(terms, key=_order)) if len(terms) > 1 else tuple(terms), const)


def _join_nested(factors: dict[Atom, int], atom: Remainder, factor: int) -> dict[Atom, int] | None:
    """k*((e / a) % b) + k*b*(e / (a*b)) -> k*(e / a); quotients of quotients are stored flat."""
    if len(atom.of.terms) != 1 or atom.of.const:
        return None
    inner, c = atom.of.terms[0]
    if c != 1 or not isinstance(inner, Quotient):
        return None
    partner = Quotient(inner.of, inner.by * atom.by)
    if factors.get(partner, 0) != factor * atom.by:
        return None
    joined = dict(factors)
    del joined[atom], joined[partner]
    joined[inner] = joined.get(inner, 0) + factor
    return joined


@lru_cache(KEPT)
def _divide(e: Sym, by: int) -> Sym:
    if by == 1:
        return e
    if e.low // by == e.high // by:
        return constant(e.low // by)
    divided = tuple((atom, c // by) for atom, c in e.terms if c % by == 0)
    rest = Sym(tuple((atom, c) for atom, c in e.terms if c % by), e.const % by)
    carried = Sym(divided, e.const // by)
    if divided or carried.const:
        return carried + _divide(rest, by)
    if len(e.terms) == 1 and e.terms[0][1] == 1 and e.const == 0:
        atom = e.terms[0][0]
        if isinstance(atom, Quotient):
            return _divide(atom.of, atom.by * by)
        if isinstance(atom, Remainder) and atom.by % by == 0:  # (e % n) / m = (e / m) % (n / m)
            return _remainder(_divide(atom.of, by), atom.by // by)
    shared = _shared_factor(e, by)
    if shared > 1:
        return _divide(Sym(tuple((atom, c // shared) for atom, c in e.terms), e.const // shared), by // shared)
    lift = _lift(e, by)  # floor(e / n) = floor((e + k*n) / n) - k: what is divided is never negative.
    return Sym(((Quotient(e + lift * by, by), 1),), -lift)


def _lift(e: Sym, by: int) -> int:
    return -(e.low // by) if e.low < 0 else 0


def _shared_factor(e: Sym, by: int) -> int:
    """The greatest d dividing `by` and every coefficient, where the constant's remainder cannot matter."""
    from math import gcd

    shared = by
    for _, c in e.terms:
        shared = gcd(shared, c)
    return shared


@lru_cache(KEPT)
def _remainder(e: Sym, by: int) -> Sym:
    if by == 1:
        return ZERO
    if e.low // by == e.high // by:
        return e - (e.low // by) * by
    # A coefficient keeps its sign: made positive it would be large, and the sum might not fit 32 bits.
    terms = tuple((atom, c % by if c > 0 else -(-c % by)) for atom, c in e.terms if c % by)
    kept = Sym(terms, e.const % by)
    if kept != e:
        return _remainder(kept, by)
    if len(e.terms) == 1 and e.const == 0:
        atom, c = e.terms[0]
        if c == 1 and isinstance(atom, Remainder) and atom.by % by == 0:
            return _remainder(atom.of, by)
    shared = _shared_factor(e, by)
    if shared > 1:  # (d*e + c) % (d*n) = d * ((e + c/d) % n) + c%d
        inner = Sym(tuple([(atom, c // shared) for atom, c in e.terms]), e.const // shared)
        return _remainder(inner, by // shared) * shared + e.const % shared
    return Sym(((Remainder(e + _lift(e, by) * by, by), 1),), 0)


@lru_cache(KEPT)
def flatten(coords: tuple[Sym, ...], shape: Shape) -> Sym:
    """Coordinates -> position in row-major order."""
    factors: dict[Atom, int] = {}
    const, step = 0, 1
    for coord, n in zip(reversed(coords), reversed(shape), strict=True):
        for atom, factor in coord.terms:
            factors[atom] = factors.get(atom, 0) + factor * step
        const += coord.const * step
        step *= n or 1
    return _make(factors, const)


@lru_cache(KEPT)
def unflatten(position: Sym, shape: Shape) -> tuple[Sym, ...]:
    """Position in row-major order -> coordinates."""
    out: list[Sym] = []
    for n in reversed(shape[1:]):
        out.append(position % max(n, 1))
        position = position // max(n, 1)
    if shape:
        out.append(position)
    return tuple(reversed(out))


def text(e: Sym, suffix: str = "") -> str:
    """As WGSL. suffix "u" writes unsigned literals; the caller sees to it that no part is negative then."""
    positive = [(a, c) for a, c in e.terms if c > 0]
    negative = [(a, -c) for a, c in e.terms if c < 0]
    parts = [_term(a, c, suffix) for a, c in positive]
    if e.const > 0 or not parts:
        parts.append(f"{max(e.const, 0)}{suffix}")
    out = " + ".join(parts)
    for a, c in negative:
        out += f" - {_term(a, c, suffix)}"
    if e.const < 0:
        out += f" - {-e.const}{suffix}"
    return out


def _term(atom: Atom, factor: int, suffix: str) -> str:
    match atom:
        case Var(name=name):
            body = name
        case Quotient(of=of, by=by):
            body = f"({_grouped(of, suffix)} / {by}{suffix})"
        case Remainder(of=of, by=by):
            body = f"({_grouped(of, suffix)} % {by}{suffix})"
    return body if factor == 1 else f"{body} * {factor}{suffix}"


def _grouped(e: Sym, suffix: str) -> str:
    simple = (len(e.terms) + (e.const != 0)) == 1 and (not e.terms or e.terms[0][1] == 1)
    return text(e, suffix) if simple else f"({text(e, suffix)})"


def atoms(e: Sym) -> list[Var]:
    """Every variable below an expression."""
    variables: list[Var] = []
    stack: list[Sym] = [e]
    while stack:
        for atom, _ in stack.pop().terms:
            match atom:
                case Var():
                    variables.append(atom)
                case Quotient(of=of) | Remainder(of=of):
                    stack.append(of)
    return variables
