"""The training steps of pywebgpu/bench/workloads.py in tinygrad, each one TinyJit.

It takes tinygrad, and for DEV=WEBGPU Dawn's library, which the package dawn-python has (LD_LIBRARY_PATH says where).
Weights and batches are those of the other libraries, so that losses may be held against each other.
"""

import math
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from tinygrad import Context, Device, Tensor, TinyJit, dtypes, nn

import pywebgpu
from pywebgpu.bench import workloads

Weights = dict[str, Tensor]
STEPS, SECONDS, HEADS = 50, 20.0, 4


def main(names: list[str]) -> None:
    for workload in map(workloads.named, names or MODELS):
        assert workload.training is not None
        data = workload.training.as_data(pywebgpu)
        weights = {name: tensor(one) for name, one in data["parameters"].items()}
        inputs, targets = tensor(data["inputs"]), tensor(data["targets"])
        forward, optimizer = MODELS[workload.name](weights)

        def step(forward: Any = forward, optimizer: Any = optimizer, x: Tensor = inputs, y: Tensor = targets) -> Tensor:
            optimizer.zero_grad()
            loss: Tensor = forward(x).sparse_categorical_crossentropy(y).backward()
            return loss.realize(*optimizer.schedule_step())

        with Context(TRAINING=1):
            measure(workload.name, TinyJit(step))


def measure(name: str, step: Callable[[], Tensor]) -> None:
    started = time.perf_counter()
    losses = [step().item()]
    first, times, begun = time.perf_counter() - started, [], time.perf_counter()
    while len(times) < STEPS and time.perf_counter() - begun < SECONDS:
        at = time.perf_counter()
        losses.append(step().item())
        times.append((time.perf_counter() - at) * 1e3)
    told = f"{statistics.median(times):.2f} ms a step ({min(times):.2f} at least, {len(times)} steps)" if times else "-"
    shown = " ".join(f"{loss:.6f}" for loss in (losses[0], losses[-1]))
    print(f"{name}: {told}, first {first:.2f} s, losses {shown}; tinygrad on {Device.DEFAULT}")


def tensor(data: dict[str, Any]) -> Tensor:
    dtype = dtypes.float32 if data["kind"] == "float" else dtypes.int32
    return Tensor(data["values"], dtype=dtype).reshape(tuple(data["shape"])).contiguous().realize()


def mlp(p: Weights) -> tuple[Callable[[Tensor], Tensor], Any]:
    return lambda x: dense(p, "2", dense(p, "0", x).relu()), nn.optim.SGD(list(p.values()), lr=0.1)


def gpt(p: Weights) -> tuple[Callable[[Tensor], Tensor], Any]:
    def attention(name: str, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = dense(p, f"{name}.into", x).chunk(3, dim=-1)
        q, k, v = (part.reshape(batch, length, HEADS, width // HEADS).transpose(1, 2) for part in parts)
        found = q.scaled_dot_product_attention(k, v, is_causal=True)
        return dense(p, f"{name}.out", found.transpose(1, 2).reshape(batch, length, width))

    def norm(name: str, x: Tensor) -> Tensor:
        return x.layernorm() * p[f"{name}.weight"] + p[f"{name}.bias"]

    def forward(characters: Tensor) -> Tensor:
        x = p["character.weight"][characters] + p["position.weight"]
        for at in range(sum(name.endswith("into.weight") for name in p)):
            name = f"blocks.{at}"
            x = x + attention(f"{name}.attention", norm(f"{name}.attention_norm", x))
            wide = dense(p, f"{name}.wide", norm(f"{name}.network_norm", x))
            wide = 0.5 * wide * (1 + (math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)).tanh())
            x = x + dense(p, f"{name}.narrow", wide)
        return (norm("norm", x) @ p["head.weight"].T).flatten(0, 1)

    return forward, nn.optim.AdamW(list(p.values()), lr=1e-3, weight_decay=0.01)


def dense(p: Weights, name: str, x: Tensor) -> Tensor:
    return x.linear(p[f"{name}.weight"].T, p[f"{name}.bias"])


MODELS = {"mlp": mlp, "gpt": gpt}

if __name__ == "__main__":
    main(sys.argv[1:])
