"""Files are replaced whole: modes and links stay, what is no file is written to, and failures leave nothing."""

import io
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import pywebgpu as torch
from pywebgpu.compiler import serialization
from pywebgpu.io import safetensors
from pywebgpu.support import atomic
from tests.unit import compiled

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")

ROOT = Path(__file__).parents[2]
LEAF = compiled.leaf(4)
PROGRAM = compiled.only(LEAF.exp)
WRITERS: dict[str, Callable[[Path], None]] = {
    "atomic.write": lambda path: atomic.write(path, "words"),
    "torch.save": lambda path: torch.save({"a": torch.ones(3, device="cpu")}, path),
    "safetensors.save_file": lambda path: safetensors.save_file({"a": torch.ones(3, device="cpu")}, path),
    "stored.save": lambda path: serialization.save(PROGRAM, path),
    "stored.save_sealed": lambda path: serialization.save_sealed(PROGRAM, path),
}


@pytest.fixture(params=WRITERS)
def save(request: pytest.FixtureRequest) -> Callable[[Path], None]:
    return WRITERS[request.param]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_has_the_mode_of_the_umask(save: Callable[[Path], None], tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        save(tmp_path / "a")
    finally:
        os.umask(old)
    assert mode(tmp_path / "a") == 0o640
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("wanted", [0o600, 0o644, 0o666, 0o777], ids=oct)
def test_a_file_keeps_its_mode(save: Callable[[Path], None], wanted: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "a").chmod(wanted)
    save(tmp_path / "a")
    assert mode(tmp_path / "a") == wanted
    assert (tmp_path / "a").read_bytes() != b"old"


def test_a_link_stays_a_link(save: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("old")
    (tmp_path / "one").symlink_to("folder/file")
    (tmp_path / "two").symlink_to("one")
    save(tmp_path / "two")
    assert (tmp_path / "two").readlink() == Path("one")
    assert (tmp_path / "one").readlink() == Path("folder/file")
    assert (tmp_path / "folder" / "file").read_bytes() != b"old"
    assert os.listdir(tmp_path / "folder") == ["file"]


def test_a_link_to_nothing_makes_what_it_means(save: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").stat().st_size > 0


def test_a_ring_of_links_is_an_error(save: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        save(tmp_path / "a")
    assert (tmp_path / "a").is_symlink()


def test_a_device_stays_a_device(save: Callable[[Path], None], tmp_path: Path) -> None:
    """Any user may try this; root would have replaced the device."""
    (tmp_path / "link").symlink_to("/dev/null")
    before = os.stat("/dev/null")
    save(Path("/dev/null"))
    save(tmp_path / "link")
    after = os.stat("/dev/null")
    assert (after.st_ino, after.st_mode, after.st_rdev) == (before.st_ino, before.st_mode, before.st_rdev)
    assert (tmp_path / "link").is_symlink()


def test_a_fifo_is_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "fifo").read_bytes()))
    reader.start()
    torch.save({"a": torch.tensor([1.0, 2.0], device="cpu")}, tmp_path / "fifo")
    reader.join(10)
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)
    assert torch.load(io.BytesIO(found[0]), "cpu")["a"].tolist() == [1.0, 2.0]


def test_standard_output_is_written_to() -> None:
    """It means a pipe here, which has no name that could be another file's."""
    code = "import pywebgpu as torch; torch.save({'a': torch.ones(2, device='cpu')}, '/dev/stdout')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    assert torch.load(io.BytesIO(done.stdout), "cpu")["a"].tolist() == [1.0, 1.0]


@linux
def test_a_file_without_a_name_is_written_to(tmp_path: Path) -> None:
    with open(tmp_path / "a", "w+") as file:
        os.remove(tmp_path / "a")
        atomic.write(f"/proc/self/fd/{file.fileno()}", "words")
        assert file.read() == "words"
    assert os.listdir(tmp_path) == []


def test_a_folder_is_an_error(save: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        save(tmp_path / "folder")
    assert os.listdir(tmp_path) == ["folder"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")

    def interrupted() -> None:
        with atomic.replaced(tmp_path / "a") as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (tmp_path / "a").read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_the_new_file_is_unreadable_before_it_is_whole_where_the_old_one_was(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "a").chmod(0o600)
    with atomic.replaced(tmp_path / "a") as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600


def test_a_name_that_is_taken_is_not_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever guessed the name could have laid a link there."""
    monkeypatch.setattr(atomic.secrets, "token_hex", lambda n: "guessed")
    (tmp_path / "victim").write_text("mine")
    (tmp_path / ".a.guessed.tmp").symlink_to("victim")
    with pytest.raises(FileExistsError):
        atomic.write(tmp_path / "a", "words")
    assert (tmp_path / "victim").read_text() == "mine"
    assert (tmp_path / ".a.guessed.tmp").is_symlink()


@pytest.mark.parametrize("letter", ["x", "é", "\U0001f600"])
def test_the_longest_name_is_no_longer_meanwhile(letter: str, tmp_path: Path) -> None:
    path = tmp_path / (letter * (255 // len(letter.encode())))
    atomic.write(path, "words")
    assert path.read_text() == "words"


def test_threads_that_save_one_path_leave_a_whole_file(tmp_path: Path) -> None:
    contents = [bytes([65 + at]) * 100_000 for at in range(8)]

    def work(content: bytes) -> None:
        for _ in range(20):
            atomic.write(tmp_path / "a", content)
            assert (tmp_path / "a").read_bytes() in contents

    failed: list[BaseException] = []

    def guarded(content: bytes) -> None:
        try:
            work(content)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert os.listdir(tmp_path) == ["a"]


def test_processes_that_save_one_path_leave_a_whole_file(tmp_path: Path) -> None:
    code = (
        "import sys; from pywebgpu.support import atomic; "
        "[atomic.write(sys.argv[1], sys.argv[2] * 50000) for _ in range(50)]"
    )
    commands = [[sys.executable, "-c", code, str(tmp_path / "a"), letter] for letter in "abcd"]
    running = [subprocess.Popen(command, cwd=ROOT) for command in commands]
    assert [process.wait() for process in running] == [0] * 4
    found = (tmp_path / "a").read_text()
    assert found in [letter * 50000 for letter in "abcd"]
    assert os.listdir(tmp_path) == ["a"]
