"""Makes a kernel's statements: names, variables, and blocks in which what is computed is known.

Apart from builder.py, which computes elements of nodes with them, because nothing here knows of a node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import reduce
from operator import and_

from pywebgpu.kernels import ir
from pywebgpu.kernels.ir import U32, Expr, Var
from pywebgpu.support.symbolic import Sym


class Blocks:
    """The block that is being made, what is known in it and in those around it, and arrays that a workgroup shares."""

    def __init__(self) -> None:
        self._body: ir.Block = []
        self._known: list[dict[tuple[int, Sym], Expr]] = [{}]  # by what it is of, and where
        self._shared: dict[str, ir.Array] = {}
        self._named = 0

    @contextmanager
    def _inside(self, body: ir.Block) -> Iterator[None]:
        """What is computed inside of a block is not known outside."""
        outer, self._body = self._body, body
        self._known.append({})
        yield
        self._known.pop()
        self._body = outer

    def fresh(self, letter: str = "v") -> str:
        self._named += 1
        name = f"{letter}{self._named}"
        return name if name not in _TYPES else self.fresh(letter)

    def let(self, value: Expr, name: str = "") -> Var:
        variable = Var(value.type, name or self.fresh())
        self._body.append(ir.Declare("let", variable, value))
        return variable

    def var(self, value: Expr | ir.Type, name: str = "") -> Var:
        """A variable that may be assigned to: with a value, or of a type."""
        start, kind = (value, value.type) if isinstance(value, Expr) else (None, value)
        variable = Var(kind, name or self.fresh())
        self._body.append(ir.Declare("var", variable, start))
        return variable

    def local_array(self, name: str, values: Sequence[Expr]) -> ir.Array:
        """An array of the invocation's own, which may be read at any index."""
        array = ir.Array("function", name, values[0].type, len(values))
        value = ir.call(f"array<{array.type}, {array.length}>", array.type, *values)
        self._body.append(ir.Declare("var", array, value))
        return array

    def workgroup_array(self, name: str, type: ir.Type, length: int, rows: int = 0, planes: int = 0) -> ir.Array:
        """An array that a workgroup shares, of one to three dimensions. Who asks for the same again gets the same."""
        return self._shared.setdefault(name, ir.Array("workgroup", name, type, length, rows=rows, planes=planes))

    def assign(self, target: Expr, value: ir.Operand, sign: str = "=") -> None:
        self._body.append(ir.Assign(target, ir.like(target, value), sign))

    def if_(self, *conditions: Expr) -> AbstractContextManager[None]:
        """A block for where all conditions hold; of none, no block."""
        if not conditions:
            return nullcontext()
        return self._branch(ir.If([]), ir.truth(reduce(and_, conditions)))

    def else_(self) -> AbstractContextManager[None]:
        """A block for where the condition of the `if_` just before did not hold."""
        return self._branch(self._body[-1], None)

    def _branch(self, of: ir.If, condition: Expr | None) -> AbstractContextManager[None]:
        if not of.branches:
            self._body.append(of)
        body: ir.Block = []
        of.branches.append((condition, body))
        return self._inside(body)

    @contextmanager
    def loop(
        self, name: str, start: ir.Operand, end: ir.Operand, step: ir.Operand = 1, sign: str = "+="
    ) -> Iterator[Var]:
        """A block for each number from start to end, which is left out; sign ">>=": downwards, by halves."""
        counter = Var(U32, name)
        head = ir.Declare("var", counter, ir.like(counter, start)), ir.Assign(counter, ir.like(counter, step), sign)
        loop = ir.Loop(counter > end if sign == ">>=" else counter < end, [], head)
        self._body.append(loop)
        with self._inside(loop.body):
            yield counter

    def while_(self, condition: Expr) -> AbstractContextManager[None]:
        loop = ir.Loop(ir.truth(condition), [])
        self._body.append(loop)
        return self._inside(loop.body)

    def scope(self) -> AbstractContextManager[None]:
        scope = ir.Scope([])
        self._body.append(scope)
        return self._inside(scope.body)

    def jump(self, word: str, condition: Expr | None = None) -> None:
        """return or break, where the condition holds."""
        jump = ir.Jump(word)
        self._body.append(jump if condition is None else ir.If([(ir.truth(condition), [jump])]))

    def barrier(self) -> None:
        self.jump("workgroupBarrier()")

    def bisect(self, low: Var, high: Var, half: Var, is_below: Expr) -> None:
        """Goes on with the upper half of low..high where what lies at `half` is below what is looked for."""
        with self.if_(is_below):
            self.assign(low, half + 1)
        with self.else_():
            self.assign(high, half)


_TYPES = frozenset(f"{letter}{bits}" for letter in "fiu" for bits in (16, 32, 64))  # no names of variables
