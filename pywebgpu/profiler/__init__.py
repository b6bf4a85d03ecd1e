"""Where the time and the memory of a program go, by PyTorch's names: `profile`, `record_function`, `schedule`."""

from pywebgpu.profiler.session import ProfilerAction as ProfilerAction
from pywebgpu.profiler.session import ProfilerActivity as ProfilerActivity
from pywebgpu.profiler.session import profile as profile
from pywebgpu.profiler.session import record_function as record_function
from pywebgpu.profiler.session import schedule as schedule
from pywebgpu.profiler.session import supported_activities as supported_activities
from pywebgpu.profiler.session import tensorboard_trace_handler as tensorboard_trace_handler
from pywebgpu.support import lazy as _lazy

__all__ = [
    "ProfilerAction", "ProfilerActivity", "profile", "record_function", "schedule", "supported_activities",
    "tensorboard_trace_handler",
]  # fmt: skip

__getattr__ = _lazy.absent(__name__)
