"""Gradients of nests of tensors, the same in every library: nothing here names PyTorch, so hosts without it run it."""

from typing import Any


def leaves(value: Any) -> list[Any]:
    """The tensors and numbers of a nest, in order."""
    if type(value).__name__ == "Size":
        return [tuple(value)]
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in leaves(item)]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    return [value]


def is_tensor(value: Any) -> bool:
    return hasattr(value, "requires_grad") and hasattr(value, "dtype")


def inputs(given: Any) -> list[Any]:
    """What wants a gradient, each once."""
    found: list[Any] = []
    for leaf in leaves(given):
        if is_tensor(leaf) and leaf.requires_grad and not any(leaf is known for known in found):
            found.append(leaf)
    return found


def gradients(library: Any, given: Any, out: Any) -> list[Any]:
    """The gradients of all inputs, of a sum of all outputs in which each element has its own weight."""
    wanted = inputs(given)
    parts = [leaf for leaf in leaves(out) if is_tensor(leaf) and leaf.requires_grad]
    if not parts or not wanted:
        return [None] * len(wanted)
    total: Any = 0
    for part in parts:
        part = part.to_dense() if "sparse" in str(part.layout) else part
        part = part.cfloat() if str(part.dtype) == "torch.complex32" else part
        weights = [0.25 + (number * 7 % 11) / 8 for number in range(part.numel())]
        shaped = part.detach().resolve_conj().new_tensor(weights).reshape(part.shape)
        weighed = (part * shaped).sum()
        total = total + (weighed.real + weighed.imag if part.is_complex() else weighed)
    return list(library.autograd.grad(total, wanted, allow_unused=True))
