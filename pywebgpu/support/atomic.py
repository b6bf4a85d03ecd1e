"""Writing files so that nobody meets half of one: a new file in the same folder, which then takes the old one's name.

Links are followed to what they mean. What is no regular file (a device, a FIFO) cannot be replaced without being
destroyed, so it is written to.
"""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from typing import BinaryIO

Path = str | os.PathLike[str]


@contextlib.contextmanager
def replaced(path: Path, *, durable: bool = False) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of `path` when the block ends and is removed when it raises.

    Mode and owner of a file that is there are kept. durable: the bytes are on the disk before the name is theirs.
    Several threads or processes that write one path leave the whole file of one of them.

    Raises: OSError.
    """
    old = _status(path)
    target = os.path.realpath(path)
    # A link of /proc may mean a file that has lost its name.
    if old is not None and not (stat.S_ISREG(old.st_mode) and _status(target)):
        with open(path, "wb") as file:
            yield file
        return
    if old is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), target)
    descriptor, partial = _create(target, old)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(partial, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(partial)
        raise


def write(path: Path, content: str | bytes) -> None:
    """Writes a whole file as `replaced` does; text as UTF-8."""
    with replaced(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def _status(path: Path) -> os.stat_result | None:
    """What the path means; None where there is nothing yet."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _create(target: str, old: os.stat_result | None) -> tuple[int, str]:
    """A new file beside the target, with the owner and the mode of `old`: its descriptor and its name."""
    folder, name = os.path.split(target)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    mode = 0o666 if old is None else stat.S_IMODE(old.st_mode)
    # The name of a file has at most 255 bytes, and a letter up to four.
    partial = os.path.join(folder, f".{name[:40]}.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(partial, flags, mode)
    if old is not None:
        status = os.fstat(descriptor)
        # Windows has neither, and a file system may refuse either.
        if (status.st_uid, status.st_gid) != (old.st_uid, old.st_gid) and hasattr(os, "fchown"):
            with contextlib.suppress(OSError):
                os.fchown(descriptor, old.st_uid, old.st_gid)
        if hasattr(os, "fchmod"):
            with contextlib.suppress(OSError):
                os.fchmod(descriptor, mode)
    return descriptor, partial
