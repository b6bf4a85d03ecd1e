"""`python -m tests interrupts [--count 567] [--device cpu]`: Ctrl-C at random moments of a training loop.

A child trains with Adam, whose rate is 1 and whose gradients are 1, so that a weight on the device is minus the steps
that it took; the parent interrupts it. After all that, what the device did and what the host counted are the same.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

COUNT = 567


def train(device: str, count: int) -> None:
    """The child's part. Prints what it found."""
    import pywebgpu as torch

    signal.signal(signal.SIGINT, signal.default_int_handler)  # A shell that starts jobs in the background ignores it.
    lost: list[str] = []
    sys.unraisablehook = lambda args: lost.append(f"{args.exc_type.__name__} in {args.object!r}")
    weights = [torch.ones(n, device=device).requires_grad_() for n in (3, 5)]
    optimizer = torch.optim.Adam(weights, lr=1.0)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = sum((weight + 0 * x.sum()).sum() for weight in weights)
        loss.backward()
        optimizer.step()
        return loss.detach()

    compiled = torch.compile(step)
    caught = calls = 0

    def one() -> None:
        nonlocal calls
        calls += 1
        x = torch.ones(1 + calls % 3, device=device) + 1
        loss = (step if calls % 4 == 0 else compiled)(x)
        if calls % 5 == 0:
            loss.item()

    def loop() -> None:
        nonlocal caught
        while caught < count:
            try:
                while True:
                    one()
            except KeyboardInterrupt:
                caught += 1

    for _ in range(60):  # Steps are captured, and audited.
        one()
    start = time.perf_counter()
    for _ in range(3):
        one()
    print("ready", (time.perf_counter() - start) / 3, flush=True)
    while True:
        try:
            loop()
            break
        except KeyboardInterrupt:  # Beside the loop's own handler.
            continue
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    taken = [round(1 - float(weight[0].item())) for weight in weights]
    counted = [int(optimizer.state[weight]["step"]) for weight in weights]
    kinds = dict(compiled.counters)
    print({"counted": counted, "taken": taken, "calls": calls, "caught": caught, **kinds, "lost": lost}, flush=True)


def interrupted(device: str, count: int, seed: int) -> dict[str, Any]:
    """Starts the child, interrupts it until it saw `count` interrupts, and gives what it found."""
    root = str(Path(__file__).parent.parent)
    environment = os.environ | {"PYTHONPATH": root + os.pathsep + os.environ.get("PYTHONPATH", "")}
    command = [sys.executable, "-m", "tests.interrupts", "--child", "--device", device, "--count", str(count)]
    with subprocess.Popen(command, env=environment, cwd=root, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        word, _, seconds = child.stdout.readline().partition(" ")
        if word != "ready":
            child.kill()
            raise AssertionError("the child did not begin")
        draw = random.Random(seed)
        while child.poll() is None:
            time.sleep(draw.uniform(0.0005, 10 * float(seconds) + 0.03))  # Between two, some calls come to their end.
            if child.poll() is None:
                child.send_signal(signal.SIGINT)
        text = child.stdout.read()
    assert child.returncode == 0, f"the child ended with {child.returncode}\n{text}"
    found: dict[str, Any] = eval(text.strip().splitlines()[-1])
    return found


def problems(found: dict[str, Any]) -> list[str]:
    """In what the host and the device differ, and which interrupts this package lost."""
    ours = [text for text in found["lost"] if "pywebgpu" in text or "Storage" in text or "Buffer" in text]
    differ = [] if found["counted"] == found["taken"] else [f"counted {found['counted']}, taken {found['taken']}"]
    return differ + ours


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests interrupts")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        train(asked.device, asked.count)
        return 0
    found = interrupted(asked.device, asked.count, asked.seed)
    print(found)
    for problem in problems(found):
        print(problem)
    return bool(problems(found))


if __name__ == "__main__":
    sys.exit(main())
