"""Which of many buffers are in use when: sets of buffers by step, in a segment tree.

Apart from the memory plan because it knows no bytes. A set of buffers is a number whose bit n is buffer n.
"""

from collections.abc import Iterator

LiveInterval = tuple[int, int]  # first and last step


class LiveIntervals:
    """For each step a set of buffers. To add to all steps of a life, or to ask for them, takes the life's logarithm.

    all: by node of the tree, what is true of all steps below it.  any: what is true of some of them.
    """

    def __init__(self, steps: int) -> None:
        self._size = 1 << (steps - 1).bit_length()
        self._all = [0] * (2 * self._size)
        self._any = [0] * (2 * self._size)

    def add(self, interval: LiveInterval, buffer: int) -> None:
        bit = 1 << buffer
        for node in self._cover(interval):
            self._all[node] |= bit
            while node and not self._any[node] & bit:
                self._any[node] |= bit
                node >>= 1

    def during(self, interval: LiveInterval) -> int:
        """The buffers of any step of a life."""
        numbers = 0
        for node in self._cover(interval):
            numbers |= self._any[node]
        for step in interval:
            node = step + self._size
            while node:
                numbers |= self._all[node]
                node >>= 1
        return numbers

    def _cover(self, interval: LiveInterval) -> list[int]:
        """The fewest nodes that have all steps of a life below them, and no other step."""
        low, high = interval[0] + self._size, interval[1] + self._size + 1
        tree_nodes: list[int] = []
        while low < high:
            if low & 1:
                tree_nodes.append(low)
                low += 1
            if high & 1:
                high -= 1
                tree_nodes.append(high)
            low >>= 1
            high >>= 1
        return tree_nodes


def members(buffers: int) -> Iterator[int]:
    """The buffers of a set, the first one first."""
    while buffers:
        low = buffers & -buffers
        yield low.bit_length() - 1
        buffers ^= low
