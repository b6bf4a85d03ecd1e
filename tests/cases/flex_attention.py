"""Masks and functions of scores for flex_attention, by the names of the module `flex` and the namespace `torch`."""

from collections.abc import Callable
from typing import Any

Mod = Callable[..., Any]
DOCUMENTS = [0] * 7 + [1] * 9 + [2] * 20


def causal(b: Any, h: Any, q: Any, k: Any) -> Any:
    return q >= k


def documents(torch: Any, device: str) -> Mod:
    numbers = torch.tensor(DOCUMENTS, device=device)
    return lambda b, h, q, k: numbers[q] == numbers[k]


# By name a mask of (torch, flex, device), the window that it keeps to, and whether that is all it says.
MASKS: dict[str, tuple[Callable[[Any, Any, str], Mod], tuple[int | None, int | None], bool]] = {
    "all": (lambda torch, flex, device: flex.noop_mask, (None, None), True),
    "causal": (lambda torch, flex, device: causal, (None, 0), True),
    "not_itself": (lambda torch, flex, device: lambda b, h, q, k: q > k, (None, -1), True),
    "sliding": (lambda torch, flex, device: lambda b, h, q, k: (q >= k) & (q - k <= 3), (3, 0), True),
    "of_one": (lambda torch, flex, device: lambda b, h, q, k: (k <= q) & (k > q - 1), (0, 0), True),
    "both_sides": (lambda torch, flex, device: lambda b, h, q, k: (q - k).abs() < 5, (4, 4), True),
    "denied": (lambda torch, flex, device: lambda b, h, q, k: ~(q < k) & (q <= 5 + k), (5, 0), True),
    "joined": (
        lambda torch, flex, device: flex.and_masks(causal, lambda b, h, q, k: -k <= 8 - q),
        (8, 0),
        True,
    ),
    "documents": (lambda torch, flex, device: documents(torch, device), (None, None), False),
    "causal_documents": (
        lambda torch, flex, device: flex.and_masks(documents(torch, device), causal),
        (None, 0),
        False,
    ),
    "prefix": (lambda torch, flex, device: flex.or_masks(causal, lambda b, h, q, k: k < 4), (None, None), False),
    "by_head": (lambda torch, flex, device: lambda b, h, q, k: (q >= k) & (q - k <= 2 + h), (None, 0), False),
    "distance_below": (lambda torch, flex, device: lambda b, h, q, k: abs(q - k) >= 2, (None, None), False),
    "first_keys": (lambda torch, flex, device: lambda b, h, q, k: k < 3, (None, None), False),
    "scaled": (lambda torch, flex, device: lambda b, h, q, k: q >= 2 * k, (None, None), False),
}

SCORES: dict[str, Callable[[Any], Mod]] = {
    "softcap": lambda torch: lambda score, b, h, q, k: torch.tanh(score / 2) * 2,
    "alibi": lambda torch: lambda score, b, h, q, k: score + (k - q) * (0.1 * (h + 1)),
    "hidden": lambda torch: lambda score, b, h, q, k: torch.where(q - k > 1, score, -float("inf")),
}
