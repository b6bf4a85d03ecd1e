"""Who loads data: workers that take turns in this process."""

from __future__ import annotations

from pywebgpu.data.loader import get_worker_info as get_worker_info
from pywebgpu.data.workers import WorkerInfo as WorkerInfo
from pywebgpu.data.workers import _generate_state as _generate_state

_worker_info: WorkerInfo | None = None
