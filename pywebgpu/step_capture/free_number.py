"""Numbers of the host that change from replay to replay of a captured step.

To Python a free number is what its value is: isinstance, match, all operators, math and NumPy. Arithmetic stays free:
it makes instructions of the host program, which each replay computes anew. Where Python itself goes on with the value
(a comparison, a conversion, a C function), the value becomes a guard. A number of a capture that is over is plain.

Two kinds, since only a whole number has __index__. Neither is a subclass of float or int: C functions read the value
of such a subclass without asking. What looks at exact types therefore sees that a free number is none: `type(k) is
float`; C code such as json.dumps, Decimal and timedelta, which raises TypeError; and sum, which raises NotFreeError
where Python adds floats with a correction.
"""

from __future__ import annotations

import dis
import math
import operator
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from pywebgpu.errors import CaptureError

if TYPE_CHECKING:
    from typing import Protocol

    class Owner(Protocol):
        """The capture whose host program computes a free number."""

        def is_current(self) -> bool: ...
        def apply(self, op: str, rule: Callable[..., Any], *numbers: Any) -> Any: ...
        def fix(self, number: FreeNumber) -> None: ...


Number = bool | int | float
NUMBERS = (bool, int, float)
PLAIN = frozenset(NUMBERS)
CORRECTED = sys.version_info >= (3, 12)  # `sum` of floats adds up what rounding loses.
BINARY_OP = dis.opmap["BINARY_OP"]


def number(value: object, function: str, argument: str) -> Number:
    """A Python number of one, or of what stands for one: a tensor of a single element, a number of NumPy's.

    Raises TypeError, which names the function and its argument, for anything else; arrays have to be tensors first.
    """
    if isinstance(value, NUMBERS) or type(value) is complex:
        return value  # type: ignore[return-value]  # Number is what most dtypes hold.
    if hasattr(value, "item") and type(value).__hash__ is not None:  # An array can change, and has no hash.
        converted: Number = value.item()
        return converted
    raise TypeError(f"{function}(): argument {argument!r} must be Number, not {type(value).__name__}")


class NotFreeError(CaptureError):
    """What the function does is only right with plain numbers: the call has to be recorded with those."""


T = TypeVar("T")
Method = Callable[[Any, Any], Any]


def _operators(op: str) -> tuple[Method, Method]:
    """a op b and b op a, which stay free."""
    rule = RULES[op]

    def forward(self: FreeNumber, other: object) -> object:
        kind = type(other)
        if kind in PLAIN or kind in FREE:
            return _computed(op, rule, self, other)
        return _with_other(self, rule, other)

    def reflected(self: FreeNumber, other: object) -> object:
        kind = type(other)
        if kind in PLAIN or kind in FREE:
            return _computed(op, rule, other, self)
        return _with_other(self, lambda mine, its: rule(its, mine), other)

    return forward, reflected


def _comparison(op: str) -> Method:
    """A comparison, whose result becomes a guard."""
    rule = RULES[op]

    def compared(self: FreeNumber, other: object) -> object:
        kind = type(other)
        if kind in PLAIN or kind in FREE:
            return fixed(_computed(op, rule, self, other))
        if other is None or kind is str:
            return NotImplemented
        return _with_other(self, rule, other)

    return compared


def _fixed_operators(rule: Method) -> tuple[Method, Method]:
    """Operators of which the value becomes a guard."""
    return (
        lambda self, other: _with_other(self, rule, other),
        lambda self, other: _with_other(self, lambda mine, its: rule(its, mine), other),
    )


def _computed(op: str, rule: Method, a: object, b: object) -> object:
    free = a if type(a) in FREE else b
    if not is_free(free):
        return rule(fixed(a), fixed(b))
    return free._capture.apply(op, rule, a, b)  # type: ignore[attr-defined]


def _with_other(self: FreeNumber, rule: Method, other: object) -> object:
    """An operation with what is no plain number: tensors take free ones, anything else takes the value."""
    if getattr(type(other), "_takes_free_numbers", False):
        return NotImplemented
    return rule(fixed(self), other)


def _converted(op: str) -> Callable[[Any], Any]:
    """An operation on one number, which stays free."""
    rule = RULES[op]

    def convert(self: FreeNumber) -> object:
        if not self._capture.is_current():
            return rule(fixed(self))
        return self._capture.apply(op, rule, self)

    return convert


RULES: dict[str, Callable[..., Any]] = {
    name: getattr(operator, {"div": "truediv"}.get(name, name))
    for name in ("add", "sub", "mul", "div", "floordiv", "mod", "pow", "lt", "le", "gt", "ge", "eq", "ne", "neg", "abs")
} | {"trunc": math.trunc, "floor": math.floor, "ceil": math.ceil, "round": round, "to_float": float}


class FreeNumber:
    """`_value` is what it is now, `_index` where the host program of `_capture` computes it."""

    __slots__ = ("_capture", "_index", "_value")

    _capture: Owner
    _index: int
    _value: Any

    __add__, __radd__ = _operators("add")
    __sub__, __rsub__ = _operators("sub")
    __mul__, __rmul__ = _operators("mul")
    __truediv__, __rtruediv__ = _operators("div")
    __floordiv__, __rfloordiv__ = _operators("floordiv")
    __mod__, __rmod__ = _operators("mod")
    __lt__, __le__, __gt__, __ge__ = map(_comparison, ("lt", "le", "gt", "ge"))
    __eq__, __ne__ = map(_comparison, ("eq", "ne"))
    __neg__, __abs__ = map(_converted, ("neg", "abs"))

    def __pos__(self) -> object:
        return self

    def __pow__(self, exponent: Any, modulus: Any = None) -> object:
        if modulus is not None:
            return pow(fixed(self), fixed(exponent), fixed(modulus))
        return _power(self, exponent)

    def __rpow__(self, base: Any, modulus: Any = None) -> object:
        return pow(fixed(base), fixed(self), fixed(modulus)) if modulus is not None else _power(base, self)

    def __divmod__(self, other: object) -> object:
        return _divided(self, other) if type(other) in PLAIN | FREE else divmod(fixed(self), other)

    def __rdivmod__(self, other: object) -> object:
        return _divided(other, self) if type(other) in PLAIN else divmod(other, fixed(self))

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __float__(self) -> float:
        return float(fixed(self))

    def __hash__(self) -> int:
        return hash(fixed(self))

    def __repr__(self) -> str:
        return repr(fixed(self))

    def __format__(self, spec: str) -> str:
        return format(fixed(self), spec)

    def __dir__(self) -> list[str]:
        return dir(self.__class__)

    def __getattr__(self, name: str) -> object:
        """What else floats and ints have: of the value, which becomes a guard."""
        kind = type(self._value)
        if not hasattr(kind, name):
            raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
        return getattr(fixed(self), name)

    def __copy__(self) -> object:
        return fixed(self)

    def __deepcopy__(self, memo: object) -> object:
        return fixed(self)

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        return type(self._value), (fixed(self),)

    def __array__(self, dtype: object = None, copy: object = None) -> object:
        return sys.modules["numpy"].asarray(fixed(self), dtype)  # Nobody but NumPy calls this.

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> object:
        return getattr(ufunc, method)(*map(fixed, inputs), **options)

    def __array_function__(self, function: Any, types: object, args: Any, options: Any) -> object:
        """NumPy's other functions: to them, too, Python's own number has no dtype."""
        return function(*fixed_inside(args), **{name: fixed_inside(value) for name, value in options.items()})


class FreeFloat(FreeNumber):
    """A float that is free."""

    __slots__ = ()

    def __new__(cls, *args: Any) -> Any:  # For type(k)(x).
        return float(*map(fixed, args))

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return float

    __trunc__, __floor__, __ceil__ = map(_converted, ("trunc", "floor", "ceil"))

    def __round__(self, digits: int | None = None) -> object:
        return _rounded(self) if digits is None else round(fixed(self), digits)

    def __int__(self) -> int:
        return int(fixed(self.__trunc__()))

    if CORRECTED:

        def __add__(self, other: object) -> object:
            _require_operator("sum")
            return FreeNumber.__add__(self, other)

        def __radd__(self, other: object) -> object:
            _require_operator("sum")
            return FreeNumber.__radd__(self, other)


class FreeInt(FreeNumber):
    """An int that is free: a count of steps, a seed."""

    __slots__ = ()

    def __new__(cls, *args: Any) -> Any:
        return int(*map(fixed, args))

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return int

    __and__, __rand__ = _fixed_operators(operator.and_)
    __or__, __ror__ = _fixed_operators(operator.or_)
    __xor__, __rxor__ = _fixed_operators(operator.xor)
    __lshift__, __rlshift__ = _fixed_operators(operator.lshift)
    __rshift__, __rrshift__ = _fixed_operators(operator.rshift)
    __trunc__ = __floor__ = __ceil__ = FreeNumber.__pos__

    def __invert__(self) -> int:
        return ~int(self)

    def __round__(self, digits: int | None = None) -> object:
        return self if digits is None else round(fixed(self), digits)

    def __int__(self) -> int:
        return int(fixed(self))

    def __index__(self) -> int:
        return int(fixed(self))


FREE = frozenset((FreeFloat, FreeInt))
_rounded = _converted("round")


def _divided(a: Any, b: Any) -> object:
    if plain(b) == 0:
        return divmod(fixed(a), fixed(b))  # It raises, in its own words.
    return a // b, a % b


def _power(base: Any, exponent: Any) -> object:
    """Of whole numbers, the sign of the exponent decides whether the result is one."""
    for free, other, rule in ((base, exponent, operator.pow), (exponent, base, lambda mine, its: its**mine)):
        if type(plain(other)) not in PLAIN:
            return _with_other(free, rule, other)
    if not any(isinstance(number, float) for number in (base, exponent)) and exponent < 0:  # Here it becomes a guard.
        base, exponent = _as_float(base), _as_float(exponent)
    return _computed("pow", operator.pow, base, exponent)


def _as_float(number: Number) -> Number:
    return _converted("to_float")(number) if type(number) in FREE else float(number)


def _require_operator(name: str) -> None:
    """Raises NotFreeError where the operator was not written in Python: a C function adds the numbers up."""
    frame = sys._getframe(2)
    if frame.f_code.co_code[frame.f_lasti] != BINARY_OP:
        raise NotFreeError(f"{name}() adds floats with a correction; a number that changes from run to run has none")


def make(value: Number, index: int, capture: Owner) -> Number:
    """The free number of a value."""
    number = object.__new__(FreeFloat if type(value) is float else FreeInt)
    number._value, number._index, number._capture = value, index, capture
    return number  # type: ignore[return-value]


def is_free(value: object) -> bool:
    """Whether it is a number of a capture that goes on now, here."""
    return type(value) in FREE and value._capture.is_current()  # type: ignore[attr-defined]


def plain(value: T) -> T:
    """The value of a number, which does not become a guard: only for what a replay computes again, or after it."""
    return value._value if type(value) in FREE else value  # type: ignore[attr-defined]


def fixed_inside(value: Any) -> Any:
    """The same of all numbers in lists and tuples."""
    return type(value)(map(fixed_inside, value)) if type(value) in (list, tuple) else fixed(value)


def fixed(value: T) -> T:
    """The value of a number as Python's own: from here on the step depends on it."""
    if type(value) in FREE:
        value._capture.fix(value)  # type: ignore[attr-defined]
        return value._value  # type: ignore[attr-defined, no-any-return]
    return value
