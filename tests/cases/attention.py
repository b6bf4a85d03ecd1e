"""Calls of attention, for the tests that hold its kernels against the composite on device cpu, on every host."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, nan, prod
from typing import Any

import pywebgpu as torch
from pywebgpu.composites import attention
from pywebgpu.tensor import random
from pywebgpu.tensor.apply import apply

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """Shapes of query, key and value; the mask of a device's name; options; the dtype."""

    query: Shape
    key: Shape = ()
    value: Shape = ()
    mask: Callable[[str], Any] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    dtype: Any = torch.float32

    @property
    def shapes(self) -> tuple[Shape, Shape, Shape]:
        key = self.key or self.query
        return self.query, key, self.value or key


def numbers(*shape: int, step: int = 37, device: str = "cpu") -> Any:
    """Numbers that differ from their neighbours; made in Python, so that no device needs another one."""
    values = [at * step % 101 / 40 - 1.25 for at in range(prod(shape))]
    return torch.tensor(values, dtype=torch.float32, device=device).reshape(shape)


def seen(device: str) -> Any:
    """Some scores are hidden, and all of one row."""
    values = [at % 7 != 3 and at // 7 != 22 and at % 11 < 8 for at in range(2 * 3 * 5 * 7)]
    return torch.tensor(values, device=device).reshape(2, 3, 5, 7)


def added(device: str) -> Any:
    """A summand for all heads, -inf at some scores and all over one row."""
    values = [-inf if at // 7 == 4 or 9 < at < 14 else at % 5 / 2 - 1 for at in range(5 * 7)]
    return torch.tensor(values, dtype=torch.float32, device=device).reshape(5, 7)


def broken(device: str) -> Any:
    """A summand that is no number at one score."""
    values = [nan if at == 9 else 0.5 for at in range(5 * 7)]
    return torch.tensor(values, dtype=torch.float32, device=device).reshape(5, 7)


def padding(device: str) -> Any:
    """What of each sequence is there, for all heads and rows."""
    return torch.tensor([True] * 4 + [False] * 3 + [True] * 7, device=device).reshape(2, 1, 1, 7)


SMALL = (2, 3, 5, 8), (2, 3, 7, 8)
CALLS: dict[str, Call] = {
    "plain": Call(*SMALL),
    "causal": Call((1, 2, 37, 16), options={"is_causal": True}),
    "causal_wide": Call((2, 1, 5, 8), (2, 1, 9, 8), options={"is_causal": True}),
    "causal_high": Call((2, 1, 9, 8), (2, 1, 5, 8), options={"is_causal": True}),
    "window": Call((1, 2, 37, 16), options={"window": (5, 3)}),
    "window_of_1": Call((1, 2, 37, 16), options={"window": (0, 0)}),
    "window_of_16": Call((1, 2, 37, 16), options={"window": (15, 0)}),
    "window_larger": Call((1, 2, 37, 16), options={"window": (100, 0)}),
    "window_causal_groups_dropout": Call((1, 4, 44, 8), (1, 2, 44, 8), options={
        "window": (9, 0), "enable_gqa": True, "dropout_p": 0.2}),
    "window_mask": Call(*SMALL, mask=seen, options={"window": (2, None)}),
    "window_added": Call(*SMALL, mask=added, options={"window": (1, 1)}),
    "window_lower_right": Call((2, 1, 9, 8), (2, 1, 30, 8), options={"window": (None, 21)}),
    "window_hides_first_rows": Call((2, 1, 30, 8), (2, 1, 9, 8), options={"window": (None, -21)}),
    "window_hides_last_rows": Call((2, 1, 30, 8), (2, 1, 9, 8), options={"window": (4, None)}),
    "window_before": Call((1, 1, 33, 8), options={"window": (20, -4)}),
    "window_after": Call((1, 1, 33, 8), options={"window": (-3, 17)}),
    "window_empty": Call((1, 1, 9, 8), options={"window": (-3, 2)}),
    "bool_mask": Call(*SMALL, mask=seen),
    "added_mask": Call(*SMALL, mask=added),
    "nan": Call(*SMALL, mask=broken),
    "padding": Call(*SMALL, mask=padding),
    "dropout": Call(*SMALL, options={"dropout_p": 0.4}),
    "dropout_by_fours": Call((1, 3, 21, 8), (1, 3, 36, 8), options={"dropout_p": 0.4}),
    "groups": Call((2, 6, 5, 8), (2, 2, 7, 8), options={"enable_gqa": True}),
    "groups_causal_dropout": Call((1, 4, 9, 8), (1, 1, 9, 8), options={
        "enable_gqa": True, "is_causal": True, "dropout_p": 0.2}),
    "scale": Call(*SMALL, options={"scale": -0.3}),
    "value_width": Call((1, 2, 9, 12), (1, 2, 11, 12), (1, 2, 11, 20)),
    "odd_widths": Call((1, 2, 9, 7), (1, 2, 11, 7), (1, 2, 11, 33)),
    "one_query": Call((2, 2, 1, 8), (2, 2, 70, 8)),
    "many_queries": Call((1, 1, 1030, 4), (1, 1, 9, 4)),
    "two_axes": Call((5, 8), (7, 8)),
    "batch_broadcast": Call((2, 3, 5, 8), (1, 3, 7, 8)),
    "half": Call(*SMALL, dtype=torch.float16),
    "half_odd": Call((1, 2, 9, 7), dtype=torch.float16),
    "bfloat": Call(*SMALL, mask=added, dtype=torch.bfloat16),
}  # fmt: skip


def outcome(call: Call, device: str, *, fused: bool, again: bool = False) -> list[Any]:
    """The result, the gradients of all operands, and `again` the gradients of what is made of those."""
    operands = [numbers(*shape, step=37 + 6 * at, device=device) for at, shape in enumerate(call.shapes)]
    operands = [x.to(call.dtype).requires_grad_() for x in operands]
    torch.manual_seed(3)
    dropout = call.options.get("dropout_p", 0)
    found = apply(
        attention.scaled_dot_product_attention,
        *operands,
        None if call.mask is None else call.mask(device),
        fused=fused,
        seed=random.seed_node(device) if dropout else None,
        **call.options,
    )
    weight = numbers(*found.shape, step=29, device=device).to(call.dtype)
    grads = torch.autograd.grad((found * weight).sum(), operands, create_graph=again)
    more = torch.autograd.grad(sum((g * g).sum() for g in grads), operands) if again else ()
    return [found, *grads, *more]


def bound(call: Call) -> float:
    """How far a kernel's result may be from the composite's, which rounds scores to the dtype."""
    return {torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 6e-2}[call.dtype]
