"""What every test may use: the device axis, golden files, the check for buffers left behind."""

import gc
import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests import devices, sampling

os.environ.setdefault("PYWEBGPU_VERIFY", "1")  # Each pass and each Program of a test is checked.
os.environ.setdefault("PYWEBGPU_TRACEBACKS", "full")  # Before pywebgpu is imported: who works on it wants its frames.
GOLDEN = Path(__file__).parent / "golden"
KNOWN_DEVICES = ("cpu", "webgpu", "null")
FREEZE_EVERY = 100  # tests
_STARTED = count()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", default="cpu", help="devices to test, with commas between: cpu, webgpu, null")
    parser.addoption("--only-on-devices", action="store_true", help="only tests that have an argument `device`")
    sampling.add_option(parser)
    parser.addoption("--steps", default="20", help="steps that each thread takes in test_threads.py")
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew; then read their diff")


def pytest_configure(config: pytest.Config) -> None:
    devices.prepare_environment()
    unknown = set(asked_devices(config)) - set(KNOWN_DEVICES)
    if unknown:
        raise pytest.UsageError(f"--device: {', '.join(sorted(unknown))}; known are {', '.join(KNOWN_DEVICES)}")
    # Elsewhere a missing adapter skips; on CI that would hide half of the tests.
    if "webgpu" in asked_devices(config) and os.environ.get("CI") and devices.why_no_webgpu():
        raise pytest.UsageError(f"--device webgpu: {devices.why_no_webgpu()}")
    sampling.set_examples(config, asked_devices(config))


def asked_devices(config: pytest.Config) -> list[str]:
    return [name.strip() for name in config.getoption("--device").split(",") if name.strip()]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Gives every test with an argument `device` one run for each device of `--device`, unless it names its own."""
    marked = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    names = [name.strip() for names in marked for name in (names.split(",") if isinstance(names, str) else names)]
    if "device" in metafunc.fixturenames and "device" not in names:
        metafunc.parametrize("device", asked_devices(metafunc.config))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--only-on-devices"):
        kept = [item for item in items if sampling.device_of(item) in asked_devices(config)]
        config.hook.pytest_deselected(items=list(set(items) - set(kept)))
        items[:] = kept
    sampling.take_sample(config, items)
    for item in items:
        if sampling.device_of(item) == "webgpu" and devices.why_no_webgpu():
            item.add_marker(pytest.mark.skip(reason=devices.why_no_webgpu()))


def pytest_runtest_logstart() -> None:
    """Tests that count what is freed collect often: what stays for the whole run is not looked through each time.

    That is what was collected of tests before any runs, and what these leave: Programs in the cache, reports.
    """
    if next(_STARTED) % FREEZE_EVERY == 0:
        gc.collect()
        gc.freeze()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """golden(name, text): the text equals the file tests/golden/<name>; `--update-golden` writes the file."""

    def check(name: str, text: str) -> None:
        file = GOLDEN / name
        if request.config.getoption("--update-golden"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
        assert file.exists(), f"tests/golden/{name} is missing: python -m tests golden --update writes it"
        stored = file.read_text(encoding="utf-8")
        assert text == stored, f"tests/golden/{name} changed: python -m tests golden --update, then read the diff"

    return check


@pytest.fixture
def default_device(device: str) -> Iterator[None]:
    """New tensors are on `device`: for tests that name none."""
    import pywebgpu  # After the environment, which prepare_environment sets.

    was = pywebgpu.get_default_device()
    pywebgpu.set_default_device(device)
    yield
    pywebgpu.set_default_device(was)


@pytest.fixture
def no_leaks(device: str) -> Iterator[None]:
    """The test ends with as many bytes on its device as it began with."""
    from pywebgpu.runtime import executor  # After the environment, which prepare_environment sets.

    executor.flush()  # What modules of tests recorded as they were imported is not this test's.
    gc.collect()
    gc.freeze()  # What random programs left takes a second to look through.
    before = devices.live_bytes(device)
    yield
    gc.collect()
    after = devices.live_bytes(device)
    assert after <= before, f"{after - before} bytes are still alive on {device}"
