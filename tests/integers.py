"""All arithmetic of int64 checked, as under PYWEBGPU_CHECK_INTEGERS=1, for as long as a block lasts."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from pywebgpu import settings
from pywebgpu.compiler.passes import checks
from pywebgpu.runtime import disk_cache, program_cache


@contextmanager
def checked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No Program that was compiled without is met in it, nor one of it afterwards."""
    with monkeypatch.context() as patch:
        for reader in (checks, disk_cache):
            patch.setattr(reader, "settings", replace(settings.settings, check_integers=True, cache=""))
        program_cache.clear()
        yield
    program_cache.clear()
