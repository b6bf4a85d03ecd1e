"""torch.torch_version: a version that is a string, and is ordered as a version is."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from typing import Any

_VERSION = re.compile(
    r"v?(?P<release>\d+(?:\.\d+)*)(?:[-_.]?(?P<stage>a|b|c|rc|alpha|beta|pre|preview)[-_.]?(?P<number>\d*))?"
    r"(?:(?:-|[-_.]?(?:post|rev|r)[-_.]?)(?P<post>\d*))?(?:[-_.]?dev[-_.]?(?P<dev>\d*))?(?:\+(?P<local>[\w.-]+))?"
)
_STAGES = {"a": "a", "alpha": "a", "b": "b", "beta": "b"}  # All others are candidates.
_LAST = float("inf")


class TorchVersion(str):
    """A version as text, which compares with text, versions and tuples of numbers as versions do.

    Text that is no version compares as text. Source: PEP 440.
    """

    __slots__ = ()
    __hash__ = str.__hash__

    def __gt__(self, other: Any) -> bool:
        return self._compare(operator.gt, other)

    def __lt__(self, other: Any) -> bool:
        return self._compare(operator.lt, other)

    def __ge__(self, other: Any) -> bool:
        return self._compare(operator.ge, other)

    def __le__(self, other: Any) -> bool:
        return self._compare(operator.le, other)

    def __eq__(self, other: object) -> bool:
        return self._compare(operator.eq, other)

    def _compare(self, operation: Callable[[Any, Any], Any], other: Any) -> bool:
        is_text = isinstance(other, str) or not isinstance(other, Iterable)
        own, text = str.__str__(self), str(other) if is_text else ".".join(str(part) for part in other)
        keys = _key(own), _key(text)
        return bool(operation(own, text) if None in keys else operation(*keys))


def _key(text: str) -> tuple[Any, ...] | None:
    """What orders versions: release, stage, number, post, dev and local part; None where the text is no version."""
    match = _VERSION.fullmatch(text.strip().lower())
    if match is None:
        return None
    release = tuple(int(part) for part in match["release"].split("."))
    while release[-1:] == (0,):
        release = release[:-1]
    stage = (_STAGES.get(match["stage"], "c"), int(match["number"] or 0)) if match["stage"] else None
    has_dev, post = match["dev"] is not None, -1 if match["post"] is None else int(match["post"] or 0)
    before = ("", 0) if stage is None and post < 0 and has_dev else stage or ("z", 0)
    dev = int(match["dev"] or 0) if has_dev else _LAST
    local = [
        (1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.split(r"[._-]", match["local"] or "")
    ]
    return release, before, post, dev, tuple(local) if match["local"] else ()
