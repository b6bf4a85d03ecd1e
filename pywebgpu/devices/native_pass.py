"""A compute pass on wgpu-py, encoded by the driver's own functions: wgpu-py's methods take five times as long.

Each of those looks for an error before and after. What goes wrong here is told by the end of the pass, or by `finish`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wgpu import GPUBindGroup, GPUComputePassEncoder, GPUComputePipeline

try:  # These are not in wgpu-py's public interface.
    from wgpu.backends.wgpu_native import ffi, lib

    _set_pipeline: Any = lib.wgpuComputePassEncoderSetPipeline
    _set_bind_group: Any = lib.wgpuComputePassEncoderSetBindGroup
    _dispatch: Any = lib.wgpuComputePassEncoderDispatchWorkgroups
    _none: Any = ffi.NULL
except (ImportError, AttributeError):
    _set_pipeline = None

Grid = tuple[int, int, int]


def dispatch(
    computing: GPUComputePassEncoder,
    pipelines: Sequence[GPUComputePipeline],
    groups: Sequence[GPUBindGroup],
    grids: Iterable[Grid],
) -> None:
    """Encodes a dispatch for each pipeline with its bind group and its grid. The caller keeps all of them."""
    steps: Any = zip(pipelines, groups, grids, strict=True)
    if _set_pipeline is None:
        for pipeline, group, grid in steps:
            computing.set_pipeline(pipeline)
            computing.set_bind_group(0, group)
            computing.dispatch_workgroups(*grid)
        return
    own: Any = computing
    encoder, current = own._internal, None
    for pipeline, group, (x, y, z) in steps:
        if pipeline is not current:
            current = pipeline
            _set_pipeline(encoder, pipeline._internal)
        _set_bind_group(encoder, 0, group._internal, 0, _none)
        _dispatch(encoder, x, y, z)
