"""torch.utils.benchmark: statements timed, and their times compared in tables."""

from pywebgpu.support import lazy as _lazy
from pywebgpu.utils.benchmark.compare import Colorize, Compare
from pywebgpu.utils.benchmark.measurement import Measurement, TaskSpec, select_unit, trim_sigfig, unit_to_english
from pywebgpu.utils.benchmark.timer import Language, Timer, timer

__all__ = [
    "Colorize", "Compare", "Language", "Measurement", "TaskSpec", "Timer", "select_unit", "timer", "trim_sigfig",
    "unit_to_english",
]  # fmt: skip

__getattr__ = _lazy.absent(__name__)
