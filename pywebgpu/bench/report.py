"""Measurements as a table for people: plain text, within 100 columns."""

from typing import Any

from pywebgpu.bench import measure
from pywebgpu.bench.compare import Result
from pywebgpu.bench.measure import Measurement

AGREE = 1e-3  # relative; a loss that differs by more from PyTorch's is told of

# The heading of each column and its width; the first stands left, the others right.
_COLUMNS = (
    ("workload", 9), ("ms", 9), ("min", 9), ("max", 9), ("first", 9), ("host", 9),
    ("disp", 6), ("subm", 5), ("bufs", 5), ("pipes", 6), ("ffi", 6), ("MB", 7),
)  # fmt: skip
_PEER = (("torch", 9), ("ratio", 7))
_CONTEST = (("workload", 10), ("library", 20), ("ms", 9), ("min", 9), ("max", 9), ("first", 9), ("ratio", 8),
            ("disp", 6), ("subm", 6), ("error", 9))  # fmt: skip


def table(found: list[Measurement]) -> str:
    """What was measured, a line a workload, and how to read it."""
    peers = any(one.peers for one in found)
    columns = (*_COLUMNS[:3], *_COLUMNS[4:], *_PEER) if peers else _COLUMNS
    first = found[0]
    lines = [f"host {first.host}, device {first.device}" + (f": {first.adapter}" if first.adapter else "")]
    lines += [f"a steady step, median of {first.steps} after {measure.WARM_UP} to warm up; times in ms", ""]
    lines.append(_line([heading for heading, _ in columns], columns))
    for one in found:
        cells = _cells(one)
        lines.append(_line([cells.get(heading, "") for heading, _ in columns], columns))
    lines += ["", "first: the first step, with compilation.  host: until Python had queued the step."]
    lines += ["disp, subm, bufs, pipes, ffi: dispatches, submits, new buffers, new pipelines, driver calls."]
    lines += ["MB: the most memory that tensors took at a time."]
    lines += ["", "On the host a step records ops, finds the Program of their graph (key) and queues it (run):"]
    lines += [_host(one) for one in found]
    if peers:
        lines += ["", "torch: the fastest of PyTorch's, in ms.  ratio: ms / torch."]
        lines += [_peer(one.name, name, peer) for one in found for name, peer in one.peers.items()]
    return "\n".join([line.rstrip() for line in lines] + _disagreements(found))


def comparison(found: list[Result]) -> str:
    """Libraries next to each other, a line each."""
    first, peer = found[0], found[-1].library
    loads = [load for one in found for load in one.load[:2]]
    lines = [f"Chromium, device webgpu: {first.adapter}; load {min(loads)} to {max(loads)} on {first.load[2]} cores"]
    lines += [f"a steady step, median of {first.steps} after {measure.WARM_UP} to warm up, in turns; times in ms", ""]
    lines.append(_line([heading for heading, _ in _CONTEST], _CONTEST))
    for one in found:
        times = [_time(ms) for ms in (one.ms, one.ms_min, one.ms_max, one.first_ms)]
        counts = [str(one.dispatches), str(one.submits), f"{one.loss_error:.0e}"]
        lines.append(_line([one.name, one.library, *times, f"{one.ratio:.2f}", *counts], _CONTEST))
    lines += ["", f"first: the first step, with compilation.  ratio: ms next to {peer}, median of the rounds."]
    lines += ["error: the largest difference of a loss from PyTorch's, or from pywebgpu's where that is missing."]
    return "\n".join(line.rstrip() for line in lines)


def _line(cells: list[str], columns: tuple[tuple[str, int], ...]) -> str:
    (_, width), *others = columns
    return cells[0].ljust(width) + "".join(cell.rjust(n) for cell, (_, n) in zip(cells[1:], others, strict=True))


def _cells(one: Measurement) -> dict[str, str]:
    cells = {
        "workload": one.name,
        "ms": _time(one.ms),
        "min": _time(one.ms_min),
        "max": _time(one.ms_max),
        "first": _time(one.first_ms),
        "host": _time(one.host_ms),
        "disp": str(one.dispatches),
        "subm": str(one.submits),
        "bufs": str(one.buffers_created),
        "pipes": str(one.pipelines_created),
        "ffi": str(one.ffi_calls),
        "MB": f"{one.peak_bytes / 1e6:.1f}",
    }
    if one.peers:
        fastest = min(peer["ms"] for peer in one.peers.values())
        cells |= {"torch": _time(fastest), "ratio": f"{one.ms / fastest:.2f}"}
    return cells


def _host(one: Measurement) -> str:
    return (
        f"{one.name}: {one.ops} ops, {one.op_us:.1f} us each; record {_time(one.record_ms)}, key {_time(one.key_ms)}, "
        f"run {_time(one.run_ms)}; {one.dispatch_us:.2f} us a dispatch"
    )


def _peer(workload: str, name: str, peer: dict[str, Any]) -> str:
    times = f"{_time(peer['ms'])} ({_time(peer['ms_min'])} to {_time(peer['ms_max'])})"
    rest = f"{peer['threads']} threads" if "threads" in peer else f"{peer['device']}, {peer['peak_bytes'] / 1e6:.1f} MB"
    return f"{workload}: {name} {times}; PyTorch {peer['version']}, {rest}"


def _time(ms: float) -> str:
    return f"{ms:.0f}" if ms >= 1000 else f"{ms:.2f}"


def _disagreements(found: list[Measurement]) -> list[str]:
    """A line for each workload whose losses are not PyTorch's."""
    lines = []
    for one in found:
        peer: dict[str, Any] = next(iter(one.peers.values()), {})
        for when, key in (("first", "loss_first"), ("last", "loss_last")):
            ours, theirs = getattr(one, key), peer.get(key)
            if ours is None or theirs is None:
                continue
            if not abs(ours - theirs) <= AGREE * max(abs(theirs), AGREE):  # So written, it tells of NaN as well.
                lines.append(f"{one.name}: the {when} loss is {ours:.6g}, and PyTorch's is {theirs:.6g}")
    return lines
