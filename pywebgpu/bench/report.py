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


def table(measurements: list[Measurement]) -> str:
    """What was measured, a line a workload, and how to read it."""
    peers = any(measurement.peers for measurement in measurements)
    columns = (*_COLUMNS[:3], *_COLUMNS[4:], *_PEER) if peers else _COLUMNS
    first = measurements[0]
    lines = [f"host {first.host}, device {first.device}" + (f": {first.adapter}" if first.adapter else "")]
    lines += [f"a steady step, median of {first.steps} after {measure.WARM_UP} to warm up; times in ms", ""]
    lines.append(_line([heading for heading, _ in columns], columns))
    for measurement in measurements:
        cells = _cells(measurement)
        lines.append(_line([cells.get(heading, "") for heading, _ in columns], columns))
    lines += ["", "first: the first step, with compilation.  host: until Python had queued the step."]
    lines += ["disp, subm, bufs, pipes, ffi: dispatches, submits, new buffers, new pipelines, driver calls."]
    lines += ["MB: the most memory that tensors took at a time."]
    lines += ["", "On the host a step records ops, finds the Program of their graph (key) and queues it (run):"]
    lines += [_host(measurement) for measurement in measurements]
    if peers:
        lines += ["", "torch: the fastest of PyTorch's, in ms.  ratio: ms / torch."]
        lines += [
            _peer(measurement.name, name, peer)
            for measurement in measurements
            for name, peer in measurement.peers.items()
        ]
    return "\n".join([line.rstrip() for line in lines] + _disagreements(measurements))


def comparison(results: list[Result]) -> str:
    """Libraries next to each other, a line each."""
    first, peer = results[0], results[-1].library
    loads = [load for result in results for load in result.load[:2]]
    lines = [f"Chromium, device webgpu: {first.adapter}; load {min(loads)} to {max(loads)} on {first.load[2]} cores"]
    lines += [f"a steady step, median of {first.steps} after {measure.WARM_UP} to warm up, in turns; times in ms", ""]
    lines.append(_line([heading for heading, _ in _CONTEST], _CONTEST))
    for result in results:
        times = [_time(ms) for ms in (result.ms, result.ms_min, result.ms_max, result.first_ms)]
        counts = [str(result.dispatches), str(result.submits), f"{result.loss_error:.0e}"]
        lines.append(_line([result.name, result.library, *times, f"{result.ratio:.2f}", *counts], _CONTEST))
    lines += ["", f"first: the first step, with compilation.  ratio: ms next to {peer}, median of the rounds."]
    lines += ["error: the largest difference of a loss from PyTorch's, or from pywebgpu's where that is missing."]
    return "\n".join(line.rstrip() for line in lines)


def _line(cells: list[str], columns: tuple[tuple[str, int], ...]) -> str:
    (_, width), *others = columns
    return cells[0].ljust(width) + "".join(cell.rjust(n) for cell, (_, n) in zip(cells[1:], others, strict=True))


def _cells(measurement: Measurement) -> dict[str, str]:
    cells = {
        "workload": measurement.name,
        "ms": _time(measurement.ms),
        "min": _time(measurement.ms_min),
        "max": _time(measurement.ms_max),
        "first": _time(measurement.first_ms),
        "host": _time(measurement.host_ms),
        "disp": str(measurement.dispatches),
        "subm": str(measurement.submits),
        "bufs": str(measurement.buffers_created),
        "pipes": str(measurement.pipelines_created),
        "ffi": str(measurement.ffi_calls),
        "MB": f"{measurement.peak_bytes / 1e6:.1f}",
    }
    if measurement.peers:
        fastest = min(peer["ms"] for peer in measurement.peers.values())
        cells |= {"torch": _time(fastest), "ratio": f"{measurement.ms / fastest:.2f}"}
    return cells


def _host(measurement: Measurement) -> str:
    times = [_time(ms) for ms in (measurement.record_ms, measurement.key_ms, measurement.run_ms)]
    return (
        f"{measurement.name}: {measurement.ops} ops, {measurement.op_us:.1f} us each; record {times[0]}, "
        f"key {times[1]}, run {times[2]}; {measurement.dispatch_us:.2f} us a dispatch"
    )


def _peer(workload: str, name: str, peer: dict[str, Any]) -> str:
    times = f"{_time(peer['ms'])} ({_time(peer['ms_min'])} to {_time(peer['ms_max'])})"
    rest = f"{peer['threads']} threads" if "threads" in peer else f"{peer['device']}, {peer['peak_bytes'] / 1e6:.1f} MB"
    return f"{workload}: {name} {times}; PyTorch {peer['version']}, {rest}"


def _time(ms: float) -> str:
    return f"{ms:.0f}" if ms >= 1000 else f"{ms:.2f}"


def _disagreements(measurements: list[Measurement]) -> list[str]:
    """A line for each workload whose losses are not PyTorch's."""
    lines = []
    for measurement in measurements:
        peer: dict[str, Any] = next(iter(measurement.peers.values()), {})
        for when, key in (("first", "loss_first"), ("last", "loss_last")):
            ours, theirs = getattr(measurement, key), peer.get(key)
            if ours is None or theirs is None:
                continue
            if not abs(ours - theirs) <= AGREE * max(abs(theirs), AGREE):  # So written, it tells of NaN as well.
                lines.append(f"{measurement.name}: the {when} loss is {ours:.6g}, and PyTorch's is {theirs:.6g}")
    return lines
