"""`python -m tests [WHAT] [pytest arguments]`: the one command that tests this project.

unit        what runs without a word: unit, golden, and the oracle and fuzz tests on device cpu; under a minute
check       ruff, mypy, the import contract, the code in the docs
lint        ruff and mypy
gpu         oracle and fuzz on device webgpu: a GPU, or a software Vulkan driver
node        the bridge, the Node host, and the tables of cases there: python -m tests node [AREA...] [-k PATTERN]
browser     the pages in a headless Chromium, on its software adapter
all         unit, lint and gpu, each to its end; node and browser, the young hosts, have commands of their own
golden      the golden files; with --update, writes them anew
bench       the workloads of `python -m pywebgpu bench`
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.devices import node_command, prepare_environment, why_no_node, why_no_webgpu

ROOT = Path(__file__).parent.parent
CONTRACT = ("tests/unit/test_layers.py", "tests/unit/test_docs.py", "tests/unit/test_wheel.py")
# Unit tests with an argument `device`.
ON_DEVICES = tuple(f"tests/unit/test_{name}.py" for name in ("realize", "schedule", "not_finite"))

Stage = Callable[[list[str]], bool]


def unit(arguments: list[str]) -> bool:
    return pytest(["tests/unit", "tests/golden", "tests/oracle", "tests/fuzz", "--device=cpu"], arguments)


def gpu(arguments: list[str]) -> bool:
    missing = why_no_webgpu()
    if missing and not os.environ.get("CI"):
        print(f"not tested on device webgpu: {missing}")
        return True
    return pytest(["tests/oracle", "tests/fuzz", *ON_DEVICES, "--device=webgpu"], arguments)


def browser(arguments: list[str]) -> bool:
    """One page at a time: each keeps all cores busy."""
    return pytest(["playwright_tests", "-n0"], arguments)


def node(arguments: list[str]) -> bool:
    """Node's own tests, then pytest's of the host, then the tables; with arguments the tables only."""
    missing = why_no_node()
    if missing:
        print(f"not tested on Node: {missing}")
        return not os.environ.get("CI")
    tables = run([sys.executable, "-m", "tests.hosts.conformance", *arguments])
    if arguments:
        return tables
    scripts = run([*node_command(), "--test", "js_bridge/test/"])
    return pytest(["tests/hosts", "-n0"], []) and scripts and tables


def check(arguments: list[str]) -> bool:
    clean = lint([])
    return pytest([*CONTRACT], arguments) and clean


def lint(arguments: list[str]) -> bool:
    commands = (["ruff", "check"], ["ruff", "format", "--check"], ["mypy"])
    failed = [command for command in commands if not run([sys.executable, "-m", *command, *arguments])]
    return not failed


def golden(arguments: list[str]) -> bool:
    wanted = ["--update-golden" if argument == "--update" else argument for argument in arguments]
    return pytest(["tests/golden"], wanted)


def bench(arguments: list[str]) -> bool:
    return run([sys.executable, "-m", "pywebgpu", "bench", *arguments])


def everything(arguments: list[str]) -> bool:
    """Each stage runs to its end, also after another one failed: one run shows all that is wrong."""
    results = {}
    for name, stage in (("unit", unit), ("check", lint), ("gpu", gpu)):
        start = time.monotonic()
        passed = stage([] if stage is lint else arguments)
        results[name] = f"{'passed' if passed else 'FAILED'} in {time.monotonic() - start:.0f} s"
    for name, result in results.items():
        print(f"{name:7} {result}")
    return not any(result.startswith("FAILED") for result in results.values())


STAGES: dict[str, Stage] = {
    "unit": unit,
    "check": check,
    "lint": lint,
    "gpu": gpu,
    "node": node,
    "browser": browser,
    "all": everything,
    "golden": golden,
    "bench": bench,
}


def pytest(where: list[str], arguments: list[str]) -> bool:
    prepare_environment()
    # One process a core is enough: threads inside each would only wait for one another.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    status = call([sys.executable, "-m", "pytest", "-q", "-n", "auto", *where, *arguments])
    # 5 is "no test ran", which is right where the caller's own -k picked tests of another stage.
    return status == 0 or (status == 5 and bool(arguments))


def run(command: list[str]) -> bool:
    return call(command) == 0


def call(command: list[str]) -> int:
    name = "python" if command[0] == sys.executable else Path(command[0]).name
    print("$", " ".join([name, *command[1:]]), flush=True)
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def main(arguments: list[str]) -> int:
    if arguments[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    named = bool(arguments) and arguments[0] in STAGES
    stage = STAGES[arguments[0]] if named else unit
    return 0 if stage(arguments[1:] if named else arguments) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
