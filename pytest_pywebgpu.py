"""pytest's plugin: `pytest --pywebgpu-host native,cpu,node,chromium` runs a program's own tests in each of these.

native is device webgpu and cpu device cpu of this Python; node and chromium are Pyodide with WebGPU, in Node and in a
headless browser. It stands beside the package so that pytest, which loads it always, does not import pywebgpu for it.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
import sys
from collections.abc import Generator
from typing import Any

import pytest

HOSTS = ("native", "cpu", "node", "chromium")
REMOTE = ("node", "chromium")
DEVICES = {"native": "webgpu", "cpu": "cpu", "node": "webgpu", "chromium": "webgpu"}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("pywebgpu", "tests in the hosts of pywebgpu")
    add = group.addoption
    add("--pywebgpu-host", default="", metavar="HOST,HOST", help=f"run each test in these: {', '.join(HOSTS)}")
    add(
        "--pywebgpu-software", action="store_true", help="chromium: the adapter that a CPU plays, though there is a GPU"
    )
    add("--pywebgpu-timeout", type=float, default=300, metavar="S", help="seconds for a test in node or chromium (300)")
    add(
        "--pywebgpu-with", action="append", default=[], metavar="NAME",
        help="a module or package, of Python alone, that tests in node and chromium import from this environment",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "pywebgpu_host(*names): of the hosts that are asked for, those for this test")
    hosts = asked(config)
    if unknown := [name for name in hosts if name not in HOSTS]:
        raise pytest.UsageError(f"--pywebgpu-host: there is no {', '.join(unknown)}; there are {', '.join(HOSTS)}")
    if {*REMOTE} & {*hosts} and sys.platform != "emscripten":
        remote = importlib.import_module("pywebgpu.hosts.remote_tests")
        config.pluginmanager.register(remote.Remote(config), "pywebgpu-remote")


def asked(config: pytest.Config) -> list[str]:
    return [name.strip() for name in str(config.getoption("--pywebgpu-host")).split(",") if name.strip()]


def host_of(item: pytest.Item) -> str:
    """Where a test runs; "" where nobody said, or where its mark leaves no host."""
    callspec = getattr(item, "callspec", None)
    host = callspec.params.get("pywebgpu_host", "") if callspec else ""
    return host if host in HOSTS else ""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    hosts = asked(metafunc.config)
    for mark in metafunc.definition.iter_markers("pywebgpu_host"):
        hosts = [name for name in hosts if name in mark.args]
    if asked(metafunc.config):
        metafunc.fixturenames.append("pywebgpu_host")
        metafunc.parametrize("pywebgpu_host", hosts, indirect=True, scope="session")


@pytest.fixture(scope="session")
def pywebgpu_host(request: pytest.FixtureRequest) -> str:
    """Where the test runs: one of HOSTS."""
    return str(getattr(request, "param", "native"))


@pytest.fixture
def pywebgpu_device() -> str:
    """The device on which new tensors are made."""
    return str(importlib.import_module("pywebgpu").get_default_device())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """New tensors are on the host's device."""
    host = host_of(item)
    if not host or (host in REMOTE and sys.platform != "emscripten"):
        return (yield)
    with importlib.import_module("pywebgpu").device(DEVICES[host]):
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> object:
    """Tests may be `async`: the awaitable forms of reading need that."""
    if not host_of(pyfuncitem) or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    run = functools.partial(pyfuncitem.obj, **{name: pyfuncitem.funcargs[name] for name in names})
    if sys.platform == "emscripten":
        importlib.import_module("pyodide.ffi").run_sync(run())
        return True
    below = asyncio._get_running_loop()  # Playwright's own fixtures leave one, which stands still meanwhile.
    asyncio._set_running_loop(None)
    try:
        asyncio.run(run())
    finally:
        asyncio._set_running_loop(below)
    return True
