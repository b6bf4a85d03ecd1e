"""torch.cpu: what programs that run on any device ask of this one. It has one queue, and no other."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from types import MappingProxyType, TracebackType

from pywebgpu.support import lazy
from pywebgpu.torch_api import webgpu


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1."""
    return 1


def current_device() -> str:
    """ "cpu"."""
    return "cpu"


def set_device(device: object) -> None:
    """Nothing to choose: there is one."""


def synchronize(device: object = None) -> None:
    """Runs all that is pending on device cpu."""
    webgpu.synchronize("cpu")


def get_capabilities() -> Mapping[str, str]:
    """The architecture of the processor. Which of its instructions are used is NumPy's matter, and not told."""
    return MappingProxyType({"architecture": platform.machine()})


class Event:
    """A moment that has always come."""

    def query(self) -> bool:
        return True

    def record(self, stream: object = None) -> None: ...

    def synchronize(self) -> None: ...

    def wait(self, stream: object = None) -> None: ...


class Stream:
    """A name for the one queue."""

    def __init__(self, priority: int = -1) -> None: ...

    def wait_stream(self, stream: object) -> None: ...

    def record_event(self) -> None: ...

    def wait_event(self, event: object) -> None: ...


_streams = [Stream()]  # the default one, and those of the blocks around


def current_stream(device: object = None) -> Stream:
    """That of the innermost block."""
    return _streams[-1]


class StreamContext:
    """Has current_stream give `stream` inside a `with` block; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            _streams.append(self.stream)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.stream is not None:
            _streams.pop()


def stream(stream: Stream | None) -> StreamContext:
    """As StreamContext."""
    return StreamContext(stream)


__getattr__ = lazy.absent(__name__)
