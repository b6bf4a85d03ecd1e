"""What a server makes once for each version of the library, because it takes seconds, and keeps on this user's disk.

Pages do without what is not ready: they start later.
"""

import subprocess
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pywebgpu.settings import settings
from pywebgpu.support import atomic
from pywebgpu.support.installation import InstallationError

MOST = 18  # files that are kept, of six for each version


def is_ready(name: str, version: str) -> bool:
    """Whether it was made, by this server or an earlier one. Where nothing may be kept, nothing is ready."""
    return bool(settings.cache) and _file(name, version).is_file()


def ready(name: str, version: str) -> bytes | None:
    """What was made."""
    with suppress(OSError):
        return _file(name, version).read_bytes() if settings.cache else None
    return None


def keep(name: str, version: str, make: Callable[[], bytes]) -> None:
    """Makes it where it is missing, if the machine has what that needs."""
    if not settings.cache or is_ready(name, version):
        return
    file = _file(name, version)
    try:
        content = make()
        file.parent.mkdir(parents=True, exist_ok=True)
        atomic.write(file, content)
        files = sorted(file.parent.iterdir(), key=lambda path: path.stat().st_mtime)
        for old in files[:-MOST]:
            old.unlink(missing_ok=True)
    except InstallationError:
        return
    except (OSError, subprocess.SubprocessError) as error:
        warnings.warn(f"pages start later, since {name} was not made: {error}", stacklevel=2)


def _file(name: str, version: str) -> Path:
    return Path(settings.cache) / "pages" / f"{version}-{name}"
