"""`pywebgpu bench`: times the workloads on a device, and on PyTorch on the CPU if that is installed."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pywebgpu import devices, errors
from pywebgpu.bench import compare, growth, integers, measure, plans, report, rooflines, torch_baseline, workloads
from pywebgpu.hosts import chromium, node, site
from pywebgpu.support.installation import InstallationError

STEPS = 20
HOSTS = ("native", "node", "chromium")
# Ours and PyTorch's: mixed precision in the half that each is faster with.
PRECISIONS = {"float32": ("float32", "float32"), "amp": ("float16", "bfloat16"), "amp-bfloat16": ("bfloat16",) * 2}


def main(arguments: Sequence[str]) -> int:
    """The command. Returns 0, or 2 where the device cannot be opened."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.peer:
        return _compare(parser, options)
    if options.host != "native":
        return _run_in(options.host, arguments)
    if options.plans:
        models = [plans.plan(name) for name in plans.MODELS]
        print(json.dumps(plans.as_data(models), indent=2) if options.json else plans.table(models))
        return 0
    if options.growth:
        steps = [growth.measure(layers) for layers in growth.LAYERS]
        print(json.dumps(growth.as_data(steps), indent=2) if options.json else growth.table(steps))
        return 0
    if options.rooflines or options.integers:
        return _kernels(parser, options, rooflines if options.rooflines else integers)
    ours, theirs = PRECISIONS[options.precision]
    names = options.workloads or workloads.WORKLOADS
    chosen = [workloads.named(name, options.tokens, ours) for name in names]
    device = options.device or devices.default_device()
    has_peer = not options.no_peers and device != "null"
    results = []
    try:
        for workload in chosen:
            if sys.stderr.isatty():
                print(f"\r{workload.name} ...\x1b[K", end="", file=sys.stderr, flush=True)
            results.append(measure.measure(workload, device, options.steps, compiled=options.compiled))
            if has_peer:
                peer = workloads.named(workload.name, options.tokens, theirs)
                results[-1].peers.update(torch_baseline.measure(peer, options.steps))
    except errors.DeviceError as error:
        print(f"pywebgpu bench: {error}", file=sys.stderr)
        return 2
    finally:
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    print(json.dumps(list(map(asdict, results)), indent=2) if options.json else report.table(results))
    return 0


def _kernels(parser: argparse.ArgumentParser, options: argparse.Namespace, kind: Any) -> int:
    """What one of two modules measures of kernels alone."""
    try:
        kernels = kind.run(options.device or "webgpu")
    except ValueError as error:
        parser.error(str(error))
    except errors.DeviceError as error:
        print(f"pywebgpu bench: {error}", file=sys.stderr)
        return 2
    print(json.dumps(kind.as_data(kernels), indent=2) if options.json else kind.table(kernels))
    return 0


def _compare(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Next to a peer, in a browser."""
    chosen = options.workloads or compare.TRAINED
    strange = [name for name in chosen if name not in compare.TRAINED]
    if options.host != "chromium":
        parser.error(f"{options.peer} runs in a browser: say --host chromium")
    if strange or options.device not in (None, "webgpu"):
        parser.error(f"next to {options.peer}: {', '.join(compare.TRAINED)} on device webgpu")
    try:
        results = compare.run(options.peer, chosen, options.steps)
    except (compare.CompareError, chromium.ChromiumError, site.SiteError) as error:
        print(f"pywebgpu bench: {error}", file=sys.stderr)
        return 2
    print(json.dumps([asdict(result) for result in results], indent=2) if options.json else report.comparison(results))
    return 0


def _run_in(host: str, arguments: Sequence[str]) -> int:
    """The same command in another host."""
    index = next(index for index, word in enumerate(arguments) if word.startswith("--host"))
    rest = arguments[index + (1 if "=" in arguments[index] else 2) :]
    command = ["-m", "pywebgpu", "bench", *arguments[:index], *rest]
    try:
        return node.run(command) if host == "node" else chromium.run(command)[0]
    except (InstallationError, chromium.ChromiumError, site.SiteError) as error:
        print(f"pywebgpu bench: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    every = [*workloads.WORKLOADS.values(), *map(workloads.named, workloads.LARGE)]
    width = max(len(workload.name) for workload in every) + 2
    listing = "\n".join(f"  {workload.name:{width}}{workload.text}" for workload in every)
    parser = argparse.ArgumentParser(
        prog="pywebgpu bench",
        description="Measures training steps and kernels, next to PyTorch on the CPU where that is installed.",
        epilog=f"workloads:\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "workloads",
        nargs="*",
        type=workloads.checked,
        metavar="WORKLOAD",
        help="those below; the small if none",
    )
    parser.add_argument("--device", choices=("webgpu", "cpu", "null"), help="null compiles and counts without running")
    parser.add_argument("--host", choices=HOSTS, default="native", help="node, chromium: in Pyodide there")
    parser.add_argument("--peer", choices=compare.PEERS, help="in turns with that library, with --host chromium")
    parser.add_argument("--steps", type=_count, default=STEPS, help=f"steps measured after warming up ({STEPS})")
    parser.add_argument("--tokens", type=_count, default=workloads.TOKENS, help=f"of distilgpt2 ({workloads.TOKENS})")
    parser.add_argument(
        "--precision", choices=PRECISIONS, default="float32", help="amp: autocast, ours to float16 with a scaled loss"
    )
    parser.add_argument("--compiled", action="store_true", help="measure torch.compile(step)")
    parser.add_argument("--json", action="store_true", help="print a list of JSON objects")
    parser.add_argument("--plans", action="store_true", help="instead: memory planned for whole models, by device null")
    parser.add_argument("--growth", action="store_true", help="instead: what compiling costs as a model gets deeper")
    parser.add_argument(
        "--rooflines", action="store_true", help="instead: kernels as shares of a copy and of the fastest product"
    )
    parser.add_argument("--integers", action="store_true", help="instead: what checks of int64 cost, and 64 bits would")
    parser.add_argument("--no-peers", action="store_true", help="leave PyTorch out")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"needs a whole number from 1 up, got {text!r}")
    return int(text)
