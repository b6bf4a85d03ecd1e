"""A kernel as data: typed expressions, statements, arrays. A Builder makes it, wgsl.py prints it at the very end.

Nothing of it changes once made, but for blocks, which grow. Types are checked as expressions are made: what WGSL would
refuse is refused where it was written.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import copysign, inf, isinf, isnan
from typing import Any, NamedTuple

from pywebgpu.dtypes import DType
from pywebgpu.errors import CompileError
from pywebgpu.kernels import prelude
from pywebgpu.kernels.target import MATRICES, SUBGROUPS
from pywebgpu.support.numbers import WORD, too_wide
from pywebgpu.support.symbolic import Sym, variable


class Type(NamedTuple):
    """`width` numbers of a kind that WGSL knows: f32, i32, u32 or bool."""

    kind: str
    width: int = 1

    def __str__(self) -> str:
        return self.kind if self.width == 1 else f"vec{self.width}<{self.kind}>"


F32, I32, U32, BOOL = Type("f32"), Type("i32"), Type("u32"), Type("bool")
SCALARS = {"f32": F32, "i32": I32, "u32": U32, "vec2<f32>": Type("f32", 2)}  # of one element


def scalar(dtype: DType) -> Type:
    """What an element of a dtype is in a kernel."""
    return SCALARS[str(dtype.compute)]


NEEDS = {"subgroupMatrix": MATRICES, "subgroup": SUBGROUPS}  # By how a function's name begins: what a device must have.


class Intrinsic(NamedTuple):
    """What a call is printed as, which helpers that needs, and which feature of the device.

    level: how tightly the text binds, and what it asks of its first operand and of the others: 5 a name or a call.
    """

    template: str
    helpers: tuple[str, ...] = ()
    level: int = 5
    first: int = 0
    others: int = 0
    needs: str = ""


def _operator(sign: str, level: int, first: int, others: int) -> Callable[[Expr, Operand], Call]:
    """Of two operands of one kind, of which one may be a vector."""
    intrinsic = Intrinsic(f"{{0}} {sign} {{1}}", (), level, first, others)
    compares = level == 2

    def apply(a: Expr, b: Operand) -> Call:
        kind = a.type
        if not isinstance(b, Expr):
            b = Const(SCALARS[kind.kind], b)
        elif b.type is not kind:
            if kind.kind != b.type.kind or (kind.width != b.type.width and 1 not in (kind.width, b.type.width)):
                raise CompileError(f"{kind} {sign} {b.type}: a kernel's operands must be of one kind")
            kind = max(kind, b.type)
        return Call(intrinsic, BOOL if compares else kind, a, b)

    return apply


class Expr:
    """A value of a type. Operators make expressions; `eq`, `ne` are the comparisons that Python needs for itself."""

    __slots__ = ("type",)
    type: Type

    __mul__, __floordiv__, __mod__ = _operator("*", 4, 4, 5), _operator("/", 4, 4, 5), _operator("%", 4, 4, 5)
    __add__, __sub__ = _operator("+", 3, 3, 4), _operator("-", 3, 3, 4)
    __lt__, __le__ = _operator("<", 2, 3, 3), _operator("<=", 2, 3, 3)
    __gt__, __ge__ = _operator(">", 2, 3, 3), _operator(">=", 2, 3, 3)
    __xor__ = _operator("^", 0, 5, 5)
    eq, ne = _operator("==", 2, 3, 3), _operator("!=", 2, 3, 3)
    _both, _either, _bits = _operator("&&", 1, 2, 2), _operator("||", 1, 2, 2), _operator("&", 0, 5, 5)

    def __rsub__(self, other: int) -> Call:
        return Const(self.type, other) - self

    def __and__(self, other: Operand) -> Call:
        return self._both(other) if self.type is BOOL else self._bits(other)

    def __or__(self, other: Expr) -> Call:
        return self._either(other)

    def __invert__(self) -> Call:
        return Call(_NOT, BOOL, self)

    def __getitem__(self, index: Expr | int) -> Call:
        """One number of a vector."""
        kind = SCALARS[self.type.kind]
        if self.type.width == 1:
            raise CompileError(f"{self.type} has no components")
        return Call(_AT, kind, self, index) if isinstance(index, Expr) else Call(_COMPONENTS[index], kind, self)


Operand = Expr | int | float


class Const(Expr):
    """A number, which the type holds exactly: see `constant` for any number."""

    __slots__ = ("value",)

    def __init__(self, type: Type, value: float) -> None:
        self.type, self.value = type, value


class Var(Expr):
    """A variable, or what WGSL gives an invocation."""

    __slots__ = ("name",)

    def __init__(self, type: Type, name: str) -> None:
        self.type, self.name = type, name

    def within(self, size: int) -> Sym:
        """The same in an index, where it is known to be below `size`."""
        return variable(self.name, size)


class Index(Expr):
    """An index, or a part of one."""

    __slots__ = ("at",)

    def __init__(self, position: Sym) -> None:
        self.type, self.at = U32, position


class Load(Expr):
    """`width` elements of an array. Assigned to, it is a store."""

    __slots__ = ("array", "index", "width")

    def __init__(self, array: Array, index: Operand, width: int = 1) -> None:
        self.array, self.width = array, width
        self.index = index if isinstance(index, Expr) else Const(U32, index)
        self.type = array.type if width == 1 else Type(array.type.kind, array.type.width * width)
        if self.index.type != U32:
            raise CompileError(f"{array.name}: an index must be u32, got {self.index.type}")


class Call(Expr):
    """An intrinsic of operands. That its type is right, its maker says."""

    __slots__ = ("args", "intrinsic")

    def __init__(self, intrinsic: Intrinsic, type: Type, *args: Expr) -> None:
        self.type, self.intrinsic, self.args = type, intrinsic, args


@lru_cache(4096)
def template(text: str) -> Intrinsic:
    """An expression of {0}, {1}, ... as text."""
    return Intrinsic(text, prelude.names_in(text), 5, 5, 5)


@lru_cache(4096)
def _function(name: str, count: int) -> Intrinsic:
    args = ", ".join(f"{{{index}}}" for index in range(count))
    needs = next((feature for word, feature in NEEDS.items() if name.startswith(word)), "")
    return Intrinsic(f"{name}({args})", prelude.names_in(name), needs=needs)


_NOT, _AT, _AT_ROW = template("!{0}"), Intrinsic("{0}[{1}]", (), 5, 5), Intrinsic("{0}[{1}][{2}]", (), 5)
_IN_PLANE = Intrinsic("{0}[{1}][{2}][{3}]", (), 5)
_COMPONENTS = [template(f"{{0}}.{letter}") for letter in "xyzw"]


def call(name: str, type: Type, *args: Expr) -> Call:
    """A function of WGSL or of the prelude."""
    return Call(_function(name, len(args)), type, *args)


def construct(type: Type, *args: Expr) -> Call:
    """A vector of numbers; without any, of zeros. A number of a number: converted."""
    if args and len(args) != type.width:
        raise CompileError(f"{type} of {len(args)} numbers")
    return call(str(type), type, *args)


def whole(elements: Sequence[Expr]) -> Var | None:
    """The variable that has these numbers as its components, in their order."""
    of: Expr | None = None
    for index, element in enumerate(elements):
        if (
            type(element) is not Call
            or element.intrinsic is not _COMPONENTS[index]
            or (index and element.args[0] is not of)
        ):
            return None
        of = element.args[0]
    return of if type(of) is Var and of.type.width == len(elements) else None


def joined(type: Type, elements: Sequence[Expr]) -> Expr:
    """Numbers as a vector: the variable that they are of, or a new one."""
    return whole(elements) or construct(type, *elements)


def smaller(a: Expr, b: Operand) -> Call:
    return call("min", a.type, a, like(a, b))


def larger(a: Expr, b: Operand) -> Call:
    return call("max", a.type, a, like(a, b))


def select(otherwise: Operand, chosen: Expr, condition: Expr) -> Call:
    return call("select", chosen.type, like(chosen, otherwise), chosen, truth(condition))


def truth(condition: Expr) -> Expr:
    """The condition, if it is one."""
    if condition.type is not BOOL:
        raise CompileError(f"a condition must be bool, got {condition.type}")
    return condition


def isnan_(value: Expr) -> Call:
    return call("p_isnan", BOOL, value)


def like(a: Expr, b: Operand) -> Expr:
    """The second as an expression of the type of the first."""
    b = b if isinstance(b, Expr) else Const(a.type, b)
    if a.type != b.type:
        raise CompileError(f"{a.type} beside {b.type}: a kernel's operands must have one type")
    return b


def constant(value: float, type: Type) -> Expr:
    """Any Python number, as the type has it."""
    if type == U32:
        return Const(type, int(value) & 0xFFFFFFFF)
    if type == I32:
        if not WORD[0] <= int(value) <= WORD[1]:
            raise too_wide(int(value))
        return Const(type, int(value))
    number = float(value)
    try:
        (number,) = struct.unpack("<f", struct.pack("<f", number))
    except OverflowError:
        number = copysign(inf, number)
    if isnan(number):
        return call("p_nan", F32)
    if not isinf(number):
        return Const(type, number)
    infinity = call("p_inf", F32)
    return infinity if number > 0 else Call(template("(-{0})"), F32, infinity)


def is_constant(value: Expr) -> bool:
    """Whether a translator may compute it, and so refuses what overflows or divides by 0."""
    if isinstance(value, Call):
        return bool(value.args) and not value.intrinsic.helpers and all(map(is_constant, value.args))
    return isinstance(value, Const) or (isinstance(value, Index) and value.at.is_constant)


class Array:
    """Elements in memory. length 0: as long as the buffer.  size: how many elements the buffer has.

    rows: of a workgroup's array of two dimensions, each with `length` elements; 0: it has one dimension.
    planes: of one of three dimensions, each with `rows` rows.

    whole: the name of the array that it is a window of; its own name, where it is no window.

    space: "storage" (a binding), "uniform" (the host numbers), "workgroup", or "function" (an invocation's own).
    """

    __slots__ = ("length", "name", "planes", "rows", "size", "space", "type", "whole")

    def __init__(
        self,
        space: str,
        name: str,
        type: Type,
        length: int = 0,
        size: int = 0,
        owner: str = "",
        rows: int = 0,
        planes: int = 0,
    ) -> None:
        self.space, self.name, self.type, self.length, self.size = space, name, type, length, size
        self.whole, self.rows, self.planes = owner or name, rows, planes

    def __getitem__(self, index: Operand) -> Load:
        return Load(self, index)

    def row(self, row: Expr, index: Expr) -> Call:
        """An element of two dimensions, which may be assigned to."""
        return Call(_AT_ROW, self.type, Var(self.type, self.name), row, index)

    def in_plane(self, plane: Expr, row: Expr, index: Expr) -> Call:
        """An element of three, which may be assigned to."""
        return Call(_IN_PLANE, self.type, Var(self.type, self.name), plane, row, index)


class Declare(NamedTuple):
    """word: "let" or "var". An array's value is a Call of its elements."""

    word: str
    target: Var | Array
    value: Expr | None


class Assign(NamedTuple):
    target: Expr
    value: Expr
    sign: str = "="


class If(NamedTuple):
    """The first branch whose condition holds; None holds always. As many as there are: nothing is nested for them."""

    branches: list[tuple[Expr | None, Block]]


class Loop(NamedTuple):
    """While the condition holds; `head` is a variable's start and what makes the next of it, where there is one."""

    condition: Expr
    body: Block
    head: tuple[Declare, Assign] | None = None


class Scope(NamedTuple):
    body: Block


class Jump(NamedTuple):
    """return, break, or a barrier."""

    word: str


Statement = Declare | Assign | If | Loop | Scope | Jump
Block = list[Any]  # of Statements, which hold Blocks: mypy has no recursive types of tuples


def blocks(statement: Statement) -> list[Block]:
    """Those inside of a statement."""
    kind = type(statement)  # A match takes several times as long, and most statements have none.
    if kind is Declare or kind is Assign:
        return []
    match statement:
        case If(branches):
            return [body for _, body in branches]
        case Loop(_, body) | Scope(body):
            return [body]
    return []


class Windowed(NamedTuple):
    """A function that loads `width` elements of an array by windows: each with its first element (see windows.py)."""

    name: str
    width: int
    windows: tuple[tuple[int, Array], ...]


class Function(NamedTuple):
    """A whole kernel. numbers: the Program's, of which this kernel may read some. shared: by a workgroup.

    windowed: functions for arrays that are bound by windows.
    """

    name: str
    lanes: int
    grid: tuple[int, int, int]
    bindings: tuple[Array, ...]
    shared: tuple[Array, ...]
    numbers: Array
    body: Block
    windowed: tuple[Windowed, ...] = ()


FAULT = Array("storage", "fault", Type("atomic<u32>"))  # see prelude.py
LANE, GROUP, WORKGROUP = Var(U32, "lane"), Var(U32, "group"), Var(Type("u32", 3), "w")


def unknown(number: int) -> Expr:
    """A number that no compiler knows, so that it does not write out a loop up to it: no grid has a third dimension."""
    return WORKGROUP[2] + number
