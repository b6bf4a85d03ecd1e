"""Computes with values larger than a binding and writes down what came out: `windows.py DEVICE RESULTS CASE...`.

Each case runs under limits made small, and is held against itself on device cpu by tests/hosts/test_windows.py.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.compiler.passes import split_scans
from pywebgpu.nn import functional

# Bytes of a binding, and bindings: as WebGPU promises it, a value takes two of eight; and many of many.
LIMITS = {"two_of_eight": (4096, 8), "many": (1024, 12)}


def numbers(*shape: int, seed: int = 1) -> torch.Tensor:
    """The same on every host: fractions between -1 and 1."""
    count = 1
    for n in shape:
        count *= n
    values = [((i * 7919 + seed * 104729) % 2003) / 1001.5 - 1 for i in range(count)]
    return torch.tensor(values).reshape(shape)


def gradients(loss: torch.Tensor, *leaves: torch.Tensor) -> list[torch.Tensor]:
    loss.backward()
    return [leaf.grad for leaf in leaves]


def embedding_step() -> list[torch.Tensor]:
    """A tied table: gathered rows, logits, their gradients, an update in place."""
    table = torch.nn.Parameter(numbers(101, 16))
    optimizer = torch.optim.AdamW([table], lr=0.1)
    ids = torch.tensor([3, 100, 51, 3, 0, 64])
    losses = []
    for _ in range(3):
        logits = table[ids] @ table.t()
        loss = functional.cross_entropy(logits, ids.flip(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [table.detach(), *losses]


def attention() -> list[torch.Tensor]:
    q, k, v = (numbers(44, 8, seed=seed).requires_grad_() for seed in (1, 2, 3))
    mask = torch.ones(44, 44).tril() > 0
    scores = (q @ k.t() / 3).masked_fill(~mask, float("-inf")).softmax(-1)
    out = scores @ v
    return [out.detach(), *gradients((out * out).sum(), q, k, v)]


def written_in_place() -> list[torch.Tensor]:
    x = numbers(1700)
    x.mul_(2).add_(1)
    x[3:1500:7] = 5.0
    x[1600:] -= 1
    return [x]


def scan_of_long_rows() -> list[torch.Tensor]:
    """Blocks of rows are made as small as windows."""
    split_scans.SHORT, split_scans.ALONE, split_scans.AGAIN = 256, 1024, 0
    split_scans.SIZES = split_scans.SIZES_ON_CPU = ((1024, split_scans.MOST),)
    return [numbers(2, 2500).cumsum(1), numbers(3001).cummax(0)[0], (numbers(5000) * 9).long().cumsum(0)]


CASES: dict[str, Callable[[], list[torch.Tensor]]] = {
    "map": lambda: [numbers(1701).exp() + numbers(1701, seed=2)],
    "several_results": lambda: [torch.sort(numbers(2, 350))[0], *torch.max(numbers(40, 43), 1)],
    "transposed": lambda: [numbers(40, 43) + numbers(43, 40, seed=2).t()],
    "flipped": lambda: [numbers(1701).flip(0) * 2],
    "broadcast": lambda: [numbers(40, 43) * numbers(43, seed=2) - numbers(40, 1, seed=3)],
    "rows": lambda: [numbers(40, 43).sum(1), numbers(40, 43).softmax(1)],
    "columns": lambda: [numbers(40, 43).sum(0), numbers(43, 40).mean()],
    "product": lambda: [numbers(40, 43) @ numbers(43, 41, seed=2)],
    "product_of_transposed": lambda: [numbers(43, 40).t() @ numbers(41, 43, seed=2).t()],
    "gather": lambda: [numbers(43, 40)[torch.tensor([42, 0, 17, 17, 5])]],
    "joined": lambda: [torch.cat([numbers(20, 43), numbers(7, 43, seed=2)])],
    "padded": lambda: [functional.pad(numbers(37, 41), (3, 4, 1, 2))],
    "scan": lambda: [numbers(40, 43).cumsum(1)],
    "scan_of_long_rows": scan_of_long_rows,
    "scatter": lambda: [numbers(40, 43).index_add(0, torch.tensor([1, 39, 3, 1]), numbers(4, 43, seed=2))],
    "random": lambda: [torch.rand(1701, generator=torch.Generator(device=torch.get_default_device()).manual_seed(5))],
    "convolution": lambda: [functional.conv2d(numbers(1, 3, 20, 20), numbers(4, 3, 3, 3, seed=2))],
    "half": lambda: [(numbers(3001).half() * 3)[5:].float(), numbers(43, 70).half().t().contiguous().float()],
    "bool": lambda: [(numbers(5001) > 0).logical_not().float(), (numbers(40, 120) > 0.5).any(1).float()],
    "embedding_step": embedding_step,
    "attention": attention,
    "written_in_place": written_in_place,
}


def outcome(case: Callable[[], list[torch.Tensor]]) -> list[list[float]] | str:
    """The numbers of a case's tensors, or what it raises."""
    try:
        return [tensor.reshape(-1).tolist() for tensor in case()]
    except RuntimeError as error:
        return str(error)


def main(device: str, results: str, *cases: str) -> None:
    torch.set_default_device(device)
    opened: Any = devices.open_device(device)
    given = opened.target
    found = {}
    for name, (binding_bytes, bindings) in LIMITS.items():
        fewer = min(bindings, given.limits.bindings)
        changed = replace(given.limits, binding_bytes=binding_bytes, bindings=fewer)
        opened.target = replace(given, limits=changed) if device == "webgpu" else given
        found[name] = {case: outcome(CASES[case]) for case in cases}
    Path(results).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
