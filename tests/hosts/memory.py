"""Trains for long in a host, and holds that its memory does not grow; or with ever new shapes, and that it is bounded.

python -m tests soak [--host node] [--steps 3000 | --shapes 500]
"""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from tests.hosts.host import HOSTS, Host

STEPS = 3000
# How much more a memory may hold in the second half of a run than in the first. A browser clears JavaScript's own when
# it likes, so there the least of each half is compared, and not the process; code that became hot takes room too. On
# the GPU a read that arrives late makes the next one take another buffer: a few of 256 bytes, where one lost in each
# step would be 90.
MORE = {"GPU": 40 * 256, "tensors": 0, "WebAssembly": 0, "JavaScript": 2 << 20, "process": 16 << 20}
# Bytes of a process after a step was captured for 500 shapes, where pipelines are a part of it; and how many more than
# after half of them. Engines of JavaScript give 100 MB back when they like, so there their own heap is looked at.
LARGEST = {"cpu": 150_000_000, "native": 250_000_000}
LATER = 24_000_000


def soak(host: Host, steps: int) -> list[dict[str, Any]]:
    """What the run noted: step, loss, seconds, and bytes of each memory."""
    found: list[dict[str, Any]] = json.loads(
        host.results("soak.py", host.device, str(steps), "results", result="results")
    )
    return found


def shapes(host: Host, count: int) -> list[dict[str, Any]]:
    """The same of a compiled step for so many shapes."""
    found: list[dict[str, Any]] = json.loads(
        host.results("shapes.py", host.device, str(count), "results", result="results")
    )
    return found


def unbounded(host: Host, samples: list[dict[str, Any]]) -> list[str]:
    """What ever new shapes take, if it is too much."""
    found = []
    for name in ("process",) if host.name in LARGEST else ("JavaScript", "WebAssembly"):
        half, last = (sample[name] for sample in (samples[len(samples) // 2 - 1], samples[-1]))
        if last - half > LATER:
            found.append(f"{name} grew from {half} to {last} bytes")
    largest, process = LARGEST.get(host.name), samples[-1].get("process", 0)
    if largest is not None and process > largest:
        found.append(f"the process has {process} bytes, and may have {largest}")
    return found


def growth(samples: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """Bytes of each memory in the first half of the run, and in the second."""
    warm = samples[len(samples) // 10 :]
    halves = warm[: len(warm) // 2], warm[len(warm) // 2 :]
    found = {}
    held = samples[0].keys() - ({"process"} if "JavaScript" in samples[0] else set())
    for name in MORE:
        if name in held:
            mark = min if name in ("JavaScript", "process") else max
            first, second = (mark(sample[name] for sample in half) for half in halves)
            found[name] = (first, second)
    return found


def grown(samples: list[dict[str, Any]]) -> list[str]:
    """The memories that are not flat."""
    return [
        f"{name} grew from {first} to {second} bytes"
        for name, (first, second) in growth(samples).items()
        if second > first + MORE[name]
    ]


def main(arguments: Sequence[str]) -> bool:
    parser = argparse.ArgumentParser(prog="python -m tests soak", description=__doc__.split("\n")[0])
    parser.add_argument("--host", choices=HOSTS, default="node")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--shapes", type=int, help="instead: a compiled step that is called with so many shapes")
    options = parser.parse_args(arguments)
    host = HOSTS[options.host]
    if host.missing():
        print(f"not tested on {host.name}: {host.missing()}")
        return False
    if options.shapes:
        wrong = unbounded(host, shapes(host, options.shapes))
        print(*[f"FAILED {line}" for line in wrong], sep="\n")
        return not wrong
    samples = soak(host, options.steps)
    first, last = samples[0], samples[-1]
    print(
        f"{host.name}: {options.steps} steps in {last['seconds']:.0f} s, loss {first['loss']:.4f} to {last['loss']:.4f}"
    )
    for name, (early, late) in growth(samples).items():
        print(f"  {name:12} {early / 1e6:10.3f} MB in the first half, {late / 1e6:10.3f} MB in the second")
    for line in grown(samples):
        print(f"FAILED {line}")
    return not grown(samples)


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
