"""A product, attention, a norm and a softmax with their gradients, launched as on adapters that nobody has measured.

`limited.py DEVICE RESULTS ADAPTER...`: 16 KiB of workgroup memory, 256 invocations, rules of families, with subgroups
and without.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.kernels.target import SUBGROUPS, Features
from pywebgpu.kernels.templates import attention
from pywebgpu.nn import functional
from tests.hosts.windows import numbers

LENGTH, WIDTH = 37, 48
# Families whose rules differ most: in registers, and in whether workgroup memory is used.
ADAPTERS = {"unknown": "", "nvidia": "nvidia", "intel": "intel", "arm": "arm"}
SHUFFLING = "intel with subgroups"  # a family whose subgroups may have any size, as this adapter's do


def trained(device: str) -> list[float]:
    x, weight, scale = (
        numbers(*shape).to(device).requires_grad_() for shape in ((2, LENGTH, WIDTH), (WIDTH, 3 * WIDTH), (WIDTH,))
    )
    query, key, value = (part.unflatten(-1, (2, -1)).transpose(1, 2) for part in (x @ weight).split(WIDTH, -1))
    seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True).transpose(1, 2).flatten(2)
    normed = functional.layer_norm(seen, (WIDTH,), scale)
    loss = (normed.softmax(-1) * x).sum() + normed.square().mean()
    found = [loss, *torch.autograd.grad(loss, (x, weight, scale))]
    return [number for tensor in found for number in tensor.reshape(-1).tolist()]


def adapters(given: Features) -> dict[str, Features]:
    """By what they are called, adapters that the one that is there can play."""
    plain = replace(given, names=tuple([one for one in given.names if one != SUBGROUPS]), subgroup_sizes=(0, 0))
    found = {name: replace(plain, family=family, kind="", cores=0) for name, family in ADAPTERS.items()}
    if SUBGROUPS in given:
        found[SHUFFLING] = replace(given, family="intel", kind="", cores=0)
    return found


def main(name: str, results: str, *wanted: str) -> None:
    attention.STORED = 0  # Adapters that are a CPU have kernels for it, too.
    device: Any = devices.open_device(name)
    given = device.target
    limits = replace(given.limits, workgroup_size=256, shared_bytes=16 << 10, bindings=8, emulated=False, unrolls=())
    found = {}
    for adapter, features in adapters(given.features).items():
        if adapter in wanted:
            device.target = replace(given, limits=limits, features=features, tuning={})
            found[adapter] = trained(name)
    Path(results).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
