"""Which slots share a buffer. Best fit over lifetimes; inputs and outputs keep their own."""

from collections.abc import Mapping, Sequence


def plan(
    steps: Sequence[Sequence[int]], sizes: Sequence[int], pinned: Mapping[int, int]
) -> tuple[list[int], list[int], int]:
    """steps: the slots that each step touches. pinned: slot -> slot whose buffer it has (itself, mostly).

    -> (buffer of each slot, bytes of each buffer, the least bytes that temporaries need at any step).
    """
    last = {slot: at for at, slots in enumerate(steps) for slot in slots}
    buffer: dict[int, int] = {}
    bytes_of: list[int] = []
    for slot, owner in pinned.items():
        if owner not in buffer:
            buffer[owner] = len(bytes_of)
            bytes_of.append(sizes[owner])
        buffer[slot] = buffer[owner]
    free: list[int] = []
    live = most = 0
    for at, slots in enumerate(steps):
        for slot in slots:
            if slot not in buffer:
                live += sizes[slot]
                buffer[slot] = _take(free, bytes_of, sizes[slot])
        most = max(most, live)
        for slot in dict.fromkeys(slots):
            if last[slot] == at and slot not in pinned:
                free.append(buffer[slot])
                live -= sizes[slot]
    for slot in range(len(sizes)):
        if slot not in buffer:
            buffer[slot] = len(bytes_of)
            bytes_of.append(sizes[slot])
    return [buffer[slot] for slot in range(len(sizes))], bytes_of, most


def _take(free: list[int], bytes_of: list[int], need: int) -> int:
    """The smallest free buffer that is large enough, else the largest one grown, else a new one."""
    fitting = [b for b in free if bytes_of[b] >= need]
    if fitting:
        chosen = min(fitting, key=lambda b: bytes_of[b])
    elif free:
        chosen = max(free, key=lambda b: bytes_of[b])
        bytes_of[chosen] = need
    else:
        bytes_of.append(need)
        return len(bytes_of) - 1
    free.remove(chosen)
    return chosen
