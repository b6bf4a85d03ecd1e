"""`python -m tests opdb [--device D] [--host H] [--dtype T] [--most N]`: PyTorch's own samples through pywebgpu.

Writes docs/conformance.json, a section for each host and dtype that was run, and docs/conformance.md from all of it.
A host is cpu or native (device webgpu by wgpu-py), where PyTorch itself is; or node or chromium, to which samples are
sent, in float32: those of operators that have a name in torch.

    --most N      samples of each operator (8)
    --part K/N    each Nth operator from the Kth on, beside what is known of the others: a device may be slow
    --only TEXT   operators whose names hold TEXT; nothing is written
    --errors      also what must be refused
    --verbose     each sample that did not pass
"""

import argparse
import sys
import time
from collections import Counter
from typing import Any

import torch

from tests.devices import prepare_environment
from tests.opdb import elsewhere, modules, operators, report
from tests.opdb.verdict import KINDS, LACKING, PASSED, Verdict

HOSTS = {"cpu": "cpu", "native": "webgpu", "node": "webgpu", "chromium": "webgpu"}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests opdb", description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "webgpu"), help="short for the host that has it")
    parser.add_argument("--host", choices=tuple(HOSTS), default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--most", type=int, default=8)
    parser.add_argument("--part", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--errors", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args(arguments)
    host = next(name for name, kind in HOSTS.items() if kind == options.device) if options.device else options.host
    start = time.monotonic()
    if HOSTS[host] == "webgpu":
        prepare_environment()
    section = (
        sent(host, options) if host in ("node", "chromium") else measured(host, getattr(torch, options.dtype), options)
    )
    print(report.summary(section), f"{time.monotonic() - start:.0f} s")
    if not options.only:
        report.write(host, options.dtype, section, whole=not options.part)
    return 0


def measured(host: str, dtype: torch.dtype, options: Any) -> dict[str, Any]:
    """What became of all samples, by family, and of each family by entry."""
    device = HOSTS[host]
    found: dict[str, dict[str, Any]] = {"operators": {}, "modules": {}, "optimizers": {}}
    first, _, step = (options.part or "0/1").partition("/")
    for name, op in list(operators.entries().items())[int(first) :: int(step)]:
        if options.only in name:
            _add(found["operators"], name, list(operators.judge(op, dtype, device, options.most)), options)
    if dtype is torch.float32 and int(first) == 0:
        for name, info in modules.modules().items():
            if options.only in name:
                _add(found["modules"], name, list(modules.judge_module(info, dtype, device, options.most)), options)
        for name, info in modules.optimizers().items():
            if options.only in name:
                _add(found["optimizers"], name, list(modules.judge_optimizer(info, device)), options)
    if options.errors:
        found["errors"] = _errors(device, options)
    return found


def sent(host: str, options: Any) -> dict[str, Any]:
    """As measured, of a host where PyTorch is not."""
    names = [name for name in operators.entries() if options.only in name]
    found: dict[str, Any] = {}
    for name, verdicts in elsewhere.judge(host, names, options.most).items():
        _add(found, name, verdicts, options)
    return {"operators": found}


def _add(family: dict[str, Any], name: str, verdicts: list[Verdict], options: Any) -> None:
    if not verdicts:
        return
    counts = Counter(item.kind for item in verdicts)
    first = next((item.why for item in verdicts if item.kind not in (PASSED, LACKING)), "")
    family[name] = {kind: counts[kind] for kind in KINDS if kind != LACKING or counts[kind]} | (
        {"first": first} if first else {}
    )
    if options.verbose or options.only:
        for number, item in enumerate(verdicts):
            if item.kind != PASSED:
                print(f"{name} {number}: {item.kind}: {item.why}", flush=True)


def _errors(device: str, options: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    given = [(name, operators.refusals(op, device)) for name, op in operators.entries().items()]
    given += [(f"nn.{name}", modules.module_refusals(info, device)) for name, info in modules.modules().items()]
    for name, refusals in given:
        if options.only not in name:
            continue
        results = list(refusals)
        if results:
            silent, other = (
                sum(not raised for raised, _, _ in results),
                sum(raised and not right for raised, right, _ in results),
            )
            found[name] = {"right": len(results) - silent - other, "other": other, "silent": silent}
            why = [text for _, right, text in results if not right]
            if why:
                found[name]["first"] = why[0]
            if options.verbose or options.only:
                for text in why:
                    print(f"{name}: {text}", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
