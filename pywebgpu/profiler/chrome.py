"""Events in the trace format of Chrome, which Perfetto and chrome://tracing open."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pywebgpu.profiler.events import Event, Sample

HOST = 1  # the process of the host's spans; each device is one more


def write(path: str | Path, events: Sequence[Event], samples: Sequence[Sample], metadata: dict[str, Any]) -> None:
    """A file; gzip where its name ends with .gz."""
    text = json.dumps(as_data(events, samples, metadata), separators=(",", ":"))
    file = Path(path)
    if file.suffix == ".gz":
        file.write_bytes(gzip.compress(text.encode()))
    else:
        file.write_text(text, encoding="utf-8")


def as_data(events: Sequence[Event], samples: Sequence[Sample], metadata: dict[str, Any]) -> dict[str, Any]:
    """{"traceEvents": [...]}, with times in microseconds from the first event."""
    devices = list(dict.fromkeys([event.device for event in events if event.device] + [s.device for s in samples]))
    process = {"": HOST} | {name: HOST + 1 + details for details, name in enumerate(devices)}
    zero = min([event.start for event in events] + [1e6 * sample.time for sample in samples], default=0.0)
    index: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name or "host"}}
        for name, pid in process.items()
    ]
    for event in events:
        origin = {name: value for name, value in asdict(event.origin).items() if value}
        index.append({
            "ph": "X", "name": event.label, "cat": event.kind, "pid": process[event.device], "tid": 1,
            "ts": round(event.start - zero, 3), "dur": round(event.time, 3), "args": origin | dict(event.details),
        })  # fmt: skip
    for sample in samples:
        held = {"tensors": sample.live_bytes, "inside programs": sample.scratch_bytes}
        index.append({
            "ph": "C", "name": "memory", "pid": process[sample.device], "tid": 0,
            "ts": round(1e6 * sample.time - zero, 3), "args": held,
        })  # fmt: skip
    return {"displayTimeUnit": "ms", "otherData": metadata, "traceEvents": index}
