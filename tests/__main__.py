"""`python -m tests [WHAT] [pytest arguments]`: the one command that tests this project.

unit        what runs without a word: unit, golden, oracle and fuzz tests on device cpu
check       before a commit: lint, then unit, golden and oracle tests on device cpu
lint        ruff, mypy, codespell, and tsc for the JavaScript
gpu         oracle, fuzz and unit tests with a device, on webgpu: a GPU, or software Vulkan drivers
node        the bridge, the Node host, and cases of every table there
notebooks   JupyterLite and other hosts of notebooks and pages in Chromium; `make notebooks` installs them
browser     the pages in a headless Chromium on its software adapter, and cases of every table there
inside      tests that run in native Python, Node and Chromium, by the plugin that users have
site        all of `make site` in a folder of its own, and a walk through it below a path of a plain server
conformance the tables of cases on all hosts against PyTorch, as one table: [--hosts cpu,native,node,chromium] [--all]
opdb        PyTorch's own samples, into docs/conformance.md: [--device webgpu] [--dtype float16] [--most 8] [--errors]
torch       PyTorch's own unit tests, unmodified, into docs/conformance.md: [FILES] [--device webgpu] [--reference]
threads     20 threads that train side by side, 1,000 steps each, on device cpu: [--device webgpu] [--steps 1000]
scripts     twelve programs as people write them, under PyTorch and here: [--device webgpu]
libraries   libraries written for PyTorch, unmodified, here and under PyTorch: [NAME ...] [--device cpu] [--write]
loops       training loops as people write them, timed on device cpu next to PyTorch: [NAME ...]
names       which public names of PyTorch are here, and why others are not
soak        3,000 training steps in a host, with flat memory: [--host node] [--steps 3000 | --shapes 500]
all         unit, lint, gpu, node and browser, each to its end; what both of them hold hosts to is held once: [--whole]
interrupts  567 interrupts at random moments of a training loop, with no step lost: [--count 567] [--device webgpu]
fuzz-steps  random compiled steps against eager ones and PyTorch: [--count 20000] [--device cpu] [--seed S] [--jobs N]
fuzz-files  100,000 damaged files, each loaded or refused within a second and 256 MB: [--count 100000] [--seed 0]
touched     how many files an addition touches, by examples that are made in a copy and computed
golden      the golden files; with --update, writes them anew
bench       the workloads of `python -m pywebgpu bench`

The stages take the runs that stand for the others (the marks one_in and long, tests/README.md); --whole takes all, and
so does -k, which picks tests by name.
"""

import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

from pywebgpu.hosts.chromium import why_missing as why_no_chromium
from tests.devices import SOFTWARE, node_command, prepare_environment, why_no_node, why_no_webgpu

ROOT = Path(__file__).parent.parent
WHOLE = "--whole"

SPELLED = ["README.md", "CONTRIBUTING.md", "GLOSSARY.md", "CHANGELOG.md", "demos", "js_bridge", "pywebgpu", "tools"]
SPELLED += [*sorted(str(path) for path in (ROOT / "docs").glob("*.md")), "docs/guides", "docs/inside", "docs/start"]
SPELLED += sorted(str(path) for path in (ROOT / "web").glob("*.*"))

# They need 16-bit floats, bindings that start anywhere, or a compiler that takes many branches.
_NAMES = (
    "oracle/test_windows",
    "oracle/test_half",
    "oracle/test_amp",
    "fuzz/test_aliasing",
    "unit/test_kernels_of_gpus",
)
NEED_LAVAPIPE = [f"tests/{name}.py" for name in _NAMES]

Stage = Callable[[list[str]], bool]


def unit(arguments: list[str]) -> bool:
    return pytest(["tests/unit", "tests/golden", "tests/oracle", "tests/fuzz", "--device=cpu"], arguments)


def gpu(arguments: list[str]) -> bool:
    """On a GPU all in one run. Where CPUs play it, by the driver that compiles fastest, but for what needs another."""
    missing = why_no_webgpu()
    if missing and not os.environ.get("CI"):
        print(f"not tested on device webgpu: {missing}")
        return True
    options = ["--only-on-devices", "--device=webgpu", *arguments]
    if len(SOFTWARE) < 2:
        return pytest(["tests/oracle", "tests/fuzz", "tests/unit"], options)
    ignored = [f"--ignore={path}" for path in NEED_LAVAPIPE]
    passed = pytest(["tests/oracle", "tests/fuzz", "tests/unit", *ignored], options, driver=fastest())
    return pytest([*NEED_LAVAPIPE], options, driver="lavapipe") and passed


def browser(arguments: list[str]) -> bool:
    """The pages, and what every host is held to."""
    shared = hosts(arguments, "-k", "chromium") & inside(arguments, "chromium") & tables("chromium", arguments)
    return pages(arguments) & shared


def pages(arguments: list[str]) -> bool:
    """The pages, in a browser a core: Python in a page keeps one busy."""
    options = ["playwright_tests", "--ignore=playwright_tests/notebooks", "--dist=worksteal"]
    return pytest(options, arguments, driver=fastest())


def whole_site(arguments: list[str]) -> bool:
    """Made, and walked through."""
    with tempfile.TemporaryDirectory() as folder:
        made = run([sys.executable, "tools/static_site.py", f"{folder}/site"])
        os.environ["PYWEBGPU_SITE"] = f"{folder}/site"
        return made and pytest(["playwright_tests/test_site.py", "-n0"], arguments)


def notebooks(arguments: list[str]) -> bool:
    return pytest(["playwright_tests/notebooks", "-n0"], arguments)


def node(arguments: list[str]) -> bool:
    """Node's own tests, and what every host is held to."""
    shared = hosts(arguments, "-k", "not chromium") & inside(arguments, "native,node") & tables("node", arguments)
    return bridge() & shared


def bridge() -> bool:
    """The bridge's own tests."""
    missing = why_no_node()
    if missing:
        print(f"not tested on Node: {missing}")
        return not os.environ.get("CI")
    return run([*node_command(), "--test", "js_bridge/test/"])


def hosts(arguments: list[str], *chosen: str) -> bool:
    """The claims about hosts. The tests of a file share a worker: many ask one process several things."""
    return pytest(["tests/hosts", "--dist=loadfile", *chosen], arguments, driver=fastest())


def inside(arguments: list[str], names: str = "native,node,chromium") -> bool:
    """Tests that run in the hosts themselves, by our own plugin; arguments that pick tests pick none of these."""
    missing = {"native": why_no_webgpu(), "node": why_no_node(), "chromium": why_no_node() or why_no_chromium()}
    asked = [name for name in names.split(",") if os.environ.get("CI") or not missing[name]]
    command = [sys.executable, "-m", "pytest", "-q", "tests/in_hosts", "--pywebgpu-host", ",".join(asked)]
    return picks(arguments) or not asked or run(command)


def tables(name: str, arguments: list[str]) -> bool:
    """The tables of cases in hosts; arguments that pick tests pick none of these."""
    # Node and Chromium have the same translator and adapter, so that a case on one of them stands for both.
    return picks(arguments) or conformance(["--hosts", name, "--all" if WHOLE in arguments else "--shared"])


def conformance(arguments: list[str]) -> bool:
    return run([sys.executable, "-m", "tests.hosts.conformance", *arguments])


def soak(arguments: list[str]) -> bool:
    return run([sys.executable, "-m", "tests.hosts.memory", *arguments])


def opdb(arguments: list[str]) -> bool:
    return run([sys.executable, "-m", "tests.opdb.command", *arguments])


def upstream(arguments: list[str]) -> bool:
    return run([sys.executable, "-m", "tests.upstream.command", *arguments])


def scripts(arguments: list[str]) -> bool:
    return pytest(["tests/oracle/test_scripts.py", "-n0"], arguments)


def loops(arguments: list[str]) -> bool:
    return run([sys.executable, "-m", "tests.loops.command", *arguments])


def libraries(arguments: list[str]) -> bool:
    return run([sys.executable, "-m", "tests.libraries.command", *arguments])


def names(arguments: list[str]) -> bool:
    return run([sys.executable, "-m", "tests.names", *arguments])


def fuzz_steps(arguments: list[str]) -> bool:
    return run([sys.executable, "-m", "tests.fuzz.programs.command", *arguments])


def threads(arguments: list[str]) -> bool:
    return pytest(["tests/unit/test_threads.py", "--steps=1000", "--device=cpu"], arguments)


def interrupts(arguments: list[str]) -> bool:
    return run([sys.executable, "-m", "tests.interrupts", *arguments])


def fuzz_files(arguments: list[str]) -> bool:
    return run([sys.executable, "-m", "tests.fuzz.files", *arguments])


def check(arguments: list[str]) -> bool:
    clean = lint([])
    return pytest(["tests/unit", "tests/golden", "tests/oracle", "--device=cpu"], arguments) and clean


def lint(arguments: list[str]) -> bool:
    tools = (["ruff", "check"], ["ruff", "format", "--check"], ["mypy"])
    commands = [[sys.executable, "-m", *tool, *arguments] for tool in tools]
    types = ROOT / "node_modules" / ".bin" / "tsc"
    if types.exists() and not arguments:
        commands += [[str(types), "-p", folder] for folder in ("js_bridge", "web")]
    if find_spec("codespell_lib") and not arguments:
        commands.append([sys.executable, "-m", "codespell_lib", *SPELLED])
    failed = [command for command in commands if not run(command)]
    return not failed


def golden(arguments: list[str]) -> bool:
    wanted = ["--update-golden" if argument == "--update" else argument for argument in arguments]
    return pytest(["tests/golden"], wanted)


def bench(arguments: list[str]) -> bool:
    return run([sys.executable, "-m", "pywebgpu", "bench", *arguments])


def everything(arguments: list[str]) -> bool:
    """Each stage runs to its end, also after another one failed: one run shows all that is wrong."""
    print(f"this machine: {gauge():.0f} ms for a product of 1,024 x 1,024 matrices by NumPy on one thread", flush=True)
    stages: dict[str, Stage] = {"unit": unit, "lint": lambda _: lint([]), "gpu": gpu}
    stages |= {"bridge": lambda _: bridge(), "hosts": hosts, "inside": inside, "pages": pages}
    stages["tables"] = lambda arguments: tables("node,chromium", arguments)
    results = {}
    start_of_all = time.monotonic()
    for name, stage in stages.items():
        start = time.monotonic()
        passed = stage(arguments)
        results[name] = f"{'passed' if passed else 'FAILED'} in {time.monotonic() - start:.0f} s"
    for name, result in results.items():
        print(f"{name:7} {result}")
    print(f"all     {time.monotonic() - start_of_all:.0f} s; the product took {gauge():.0f} ms at the end")
    return not any(result.startswith("FAILED") for result in results.values())


STAGES: dict[str, Stage] = {
    "unit": unit,
    "check": check,
    "lint": lint,
    "gpu": gpu,
    "node": node,
    "browser": browser,
    "inside": inside,
    "site": whole_site,
    "notebooks": notebooks,
    "conformance": conformance,
    "opdb": opdb,
    "torch": upstream,
    "scripts": scripts,
    "libraries": libraries,
    "loops": loops,
    "names": names,
    "soak": soak,
    "fuzz-steps": fuzz_steps,
    "threads": threads,
    "interrupts": interrupts,
    "fuzz-files": fuzz_files,
    "all": everything,
    "touched": lambda _: importlib.import_module("tests.touched").main(),
    "golden": golden,
    "bench": bench,
}


def gauge() -> float:
    """Milliseconds of a product by NumPy on one thread: by it the times of two machines can be compared."""
    program = (
        "import numpy, timeit; a = numpy.ones((1024, 1024), 'float32'); "
        "print(1e3 * min(timeit.repeat(lambda: a @ a, number=1, repeat=20)))"
    )
    return float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)


def pytest(where: list[str], arguments: list[str], *, driver: str = "") -> bool:
    """Runs tests in a process a core. `driver`: the software driver of devices.SOFTWARE that plays the GPU."""
    options = [argument for argument in arguments if argument != WHOLE]
    if WHOLE not in arguments:
        options.append("--sample")
    environment = {"VK_DRIVER_FILES": SOFTWARE[driver]} if driver else {}
    status = call([sys.executable, "-m", "pytest", "-q", "-n", "auto", *where, *options], environment)
    # 5 is "no test ran", which is right where the caller's own -k picked tests of another stage.
    return status == 0 or (status == 5 and picks(arguments))


def fastest() -> str:
    """The driver that compiles kernels fastest, where tests may choose one."""
    return "swiftshader" if len(SOFTWARE) > 1 else ""


def picks(arguments: list[str]) -> bool:
    """Whether arguments pick tests."""
    return bool(set(arguments) - {WHOLE})


def run(command: list[str]) -> bool:
    return call(command) == 0


def call(command: list[str], environment: Mapping[str, str] = {}) -> int:
    name = "python" if command[0] == sys.executable else Path(command[0]).name
    settings = [f"{key}={value}" for key, value in environment.items()]
    print("$", " ".join([*settings, name, *command[1:]]), flush=True)
    return subprocess.run(command, cwd=ROOT, env=os.environ | environment, check=False).returncode


def main(arguments: list[str]) -> int:
    if arguments[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    prepare_environment()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # Hundreds of processes import the library: it is compiled once.
    # One process a core is enough: threads inside each would only wait for one another.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    named = bool(arguments) and arguments[0] in STAGES
    stage = STAGES[arguments[0]] if named else unit
    return 0 if stage(arguments[1:] if named else arguments) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
