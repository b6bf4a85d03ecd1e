"""torch._dynamo.config: switches that are kept and change nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

verbose = suppress_errors = capture_scalar_outputs = skip_fwd_side_effects_in_bwd_under_checkpoint = False
dynamic_shapes = inline_inbuilt_nn_modules = True
cache_size_limit = recompile_limit = 8


@contextlib.contextmanager
def patch(changes: dict[str, Any] | str | None = None, value: object = None, **more: Any) -> Iterator[None]:
    """A block, or a decorated function, with other values. changes: a name with its value, or several in a dict."""
    switches = globals()
    named = ({changes: value} if isinstance(changes, str) else dict(changes or {})) | more
    before = {name: switches[name] for name in named if name in switches}
    switches.update(named)
    try:
        yield
    finally:
        switches.update(before)
