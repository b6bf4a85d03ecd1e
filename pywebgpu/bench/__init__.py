"""`pywebgpu bench`: measures the workloads on a device, next to PyTorch on the CPU where that is installed."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from pywebgpu import devices, errors
from pywebgpu.bench import measure, peer, report, workloads

STEPS = 20


def main(arguments: Sequence[str]) -> int:
    """The command. Returns 0, or 2 where the device cannot be opened."""
    options = _parser().parse_args(arguments)
    chosen = [workloads.WORKLOADS[name] for name in options.workloads or workloads.WORKLOADS]
    device = options.device or devices.default_device()
    has_peer = not options.no_peers and device != "null"
    found = []
    try:
        for workload in chosen:
            if sys.stderr.isatty():
                print(f"\r{workload.name} ...\x1b[K", end="", file=sys.stderr, flush=True)
            found.append(measure.measure(workload, device, options.steps))
            if has_peer:
                found[-1].peers.update(peer.measure(workload, options.steps))
    except errors.DeviceError as error:
        print(f"pywebgpu bench: {error}", file=sys.stderr)
        return 2
    finally:
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    print(json.dumps([asdict(one) for one in found], indent=2) if options.json else report.table(found))
    return 0


def _parser() -> argparse.ArgumentParser:
    listing = "\n".join(f"  {workload.name:10}{workload.text}" for workload in workloads.WORKLOADS.values())
    parser = argparse.ArgumentParser(
        prog="pywebgpu bench",
        description="Measures training steps and kernels, next to PyTorch on the CPU where that is installed.",
        epilog=f"workloads:\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("workloads", nargs="*", type=_workload, metavar="WORKLOAD", help="those below; all if none")
    parser.add_argument("--device", choices=("webgpu", "cpu", "null"), help="null compiles and counts without running")
    parser.add_argument("--steps", type=_count, default=STEPS, help=f"steps measured after warming up ({STEPS})")
    parser.add_argument("--json", action="store_true", help="print a list of JSON objects")
    parser.add_argument("--no-peers", action="store_true", help="leave PyTorch out")
    return parser


def _workload(name: str) -> str:
    if name not in workloads.WORKLOADS:
        raise argparse.ArgumentTypeError(f"there is no workload {name!r}; there are {', '.join(workloads.WORKLOADS)}")
    return name


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"needs a whole number from 1 up, got {text!r}")
    return int(text)
