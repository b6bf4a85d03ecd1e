"""PYWEBGPU_PROFILE: a whole process is profiled, without a change of its program."""

import atexit
import sys

from pywebgpu.profiler.session import profile


def start(where: str) -> None:
    """Records until the process ends; then prints tables, or writes a file where `where` is not 1."""
    session = profile(profile_memory=True)
    session.start()
    atexit.register(_finish, session, where)  # Runs before the devices close, which was registered earlier.


def _finish(session: profile, where: str) -> None:
    session.stop()
    if where != "1":
        session.export_chrome_trace(where)
        return
    for key in ("phase", "module", "op", "kernel"):
        table = session.key_averages(group_by=key).table(
            sort_by="device_time_total", row_limit=20, header=f"\nby {key}"
        )
        print(table, file=sys.stderr)
