"""Plain values and arrays as one file: both sides of a border read and write it, with NumPy or with its stand-in."""

import json
from collections.abc import Callable
from typing import Any


def packed(value: Any) -> bytes:
    """JSON in the first line, where each array is {"array": [dtype, shape, start, length]}; then their bytes."""
    blobs: list[bytes] = []
    size = 0

    def plain(item: Any) -> Any:
        nonlocal size
        if hasattr(item, "__array_interface__"):
            data = item.tobytes()
            blobs.append(data)
            size += len(data)
            return {"array": [str(item.dtype), list(item.shape), size - len(data), len(data)]}
        if isinstance(item, dict):
            return {str(key): plain(inner) for key, inner in item.items()}
        if isinstance(item, list | tuple):
            return [plain(inner) for inner in item]
        return item

    head = json.dumps(plain(value)).encode()
    return head + b"\n" + b"".join(blobs)


def unpacked(raw: bytes, make: Callable[[str, tuple[int, ...], bytes], Any]) -> Any:
    """The opposite; `make(dtype, shape, data)` builds the arrays."""
    head, _, body = raw.partition(b"\n")

    def whole(item: Any) -> Any:
        if isinstance(item, dict):
            if item.keys() == {"array"}:
                dtype, shape, start, length = item["array"]
                return make(dtype, tuple(shape), body[start : start + length])
            return {key: whole(inner) for key, inner in item.items()}
        return [whole(inner) for inner in item] if isinstance(item, list) else item

    return whole(json.loads(head))
