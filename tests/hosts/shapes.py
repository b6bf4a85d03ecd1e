"""Calls a compiled training step with ever new shapes and notes its memory: `shapes.py DEVICE SHAPES RESULTS`."""

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import pywebgpu as torch
from pywebgpu import nn
from tests.hosts.soak import memory

SAMPLES = 20  # moments at which memory is looked at


def main(device: str, shapes: str, results: str) -> None:
    torch.set_default_device(device)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.Adam(network.parameters())

    @torch.compile
    def step(x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(x), labels)
        loss.backward()
        optimizer.step()
        return loss

    found = []
    start = time.monotonic()
    for count in range(1, int(shapes) + 1):
        loss = step(torch.randn(count + 1, 16), torch.randint(4, (count + 1,))).item()
        if count % max(int(shapes) // SAMPLES, 1) == 0:
            found.append({"step": count, "loss": loss, "seconds": time.monotonic() - start, **memory(device)})
            shown = [f"{name} {nbytes / 1e6:.1f}" for name, nbytes in memory(device).items()]
            print(f"shape {count} of {shapes}, MB: {', '.join(shown)}", flush=True)
    assert step.counters["captures"] == int(shapes), step.reasons
    Path(results).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
