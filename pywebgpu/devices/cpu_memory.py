"""Arrays of device cpu that nobody has any more, for the values of the next steps: new memory costs a fault a page."""

from __future__ import annotations

from collections.abc import Callable
from sys import getrefcount
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGE = 1 << 16  # bytes of an array from which it is kept
MOST = 256 << 20  # bytes that are kept
RECENT = 16  # runs of Programs after which a shape that none of them had is not expected again


class Memory:
    """Arrays by dtype and shape. empty: NumPy's, which makes one."""

    def __init__(self, empty: Callable[..., NDArray[Any]]) -> None:
        self._empty, self._kind = empty, type(empty(0))
        self._kept: dict[tuple[str, tuple[int, ...]], list[NDArray[Any]]] = {}
        self._given: dict[tuple[str, tuple[int, ...]], int] = {}  # in which run an array of this kind came last
        self._nbytes = self._runs = 0

    def note_run(self) -> None:
        """A Program runs: now and then, lets go what the last ones had no use for."""
        self._runs += 1
        if self._runs % RECENT:
            return
        for key in [key for key, run in list(self._given.items()) if run < self._runs - RECENT]:
            self._given.pop(key, None)  # Another thread may have done it.
            self._nbytes -= sum([array.nbytes for array in self._kept.pop(key, ())])

    def take(self, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
        """A row-major array with anything in it."""
        kept = self._kept.get((dtype, shape))
        if kept:
            array = kept.pop()
            self._nbytes -= array.nbytes
            return array
        return self._empty(shape, dtype)

    def give(self, values: list[Any], slot: int) -> None:
        """Takes a value out of a list, and keeps its array if nobody else has it and no view of it is left."""
        array = values[slot]
        values[slot] = None
        if getrefcount(array) != _ALONE or type(array) is not self._kind or array.base is not None:
            return
        if array.nbytes < LARGE or not array.flags.c_contiguous or not array.flags.writeable:
            return
        if self._nbytes + array.nbytes > MOST:
            self.clear()
        self._nbytes += array.nbytes
        key = array.dtype.name, array.shape
        self._kept.setdefault(key, []).append(array)
        self._given[key] = self._runs

    def clear(self) -> None:
        """Lets all of it go."""
        self._kept.clear()
        self._given.clear()
        self._nbytes = 0


def _alone() -> int:
    """What getrefcount says of what one local variable holds; interpreters count differently."""
    values: list[Any] = [object()]
    array = values[0]
    values[0] = None
    return getrefcount(array)


_ALONE = _alone()
