"""Python's collector, while calls are recorded."""

import gc
import threading


class _Kept:
    """While any thread records, nothing is collected by itself: a look at the youngest then finds all cycles that the
    call leaves, and no callback of the collector runs in it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_inside = 0
        self._before = (0, 0, 0)

    def __enter__(self) -> None:
        with self._lock:
            if self._n_inside == 0:
                self._before = gc.get_threshold()
                gc.set_threshold(0)
            self._n_inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                gc.set_threshold(*self._before)


kept = _Kept()
