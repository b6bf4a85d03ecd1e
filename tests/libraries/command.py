"""`python -m tests libraries [NAME ...] [--device cpu] [--host native] [--write]`: PyTorch's libraries, here and there.

Each library is installed as it is, without what it depends on, into one virtual environment outside of the repository,
which has no PyTorch; a folder of links lends it the PyTorch that tests compare with. Its scripts run in both,
unmodified, and what they print is compared, numbers by a tolerance. --write writes docs/guides/libraries.md's table.
In hosts where Python is Pyodide (in_pyodide.py) what they print is compared with the same.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.libraries import in_pyodide
from tests.libraries.records import COMMON, LIBRARIES, Library

ROOT = Path(__file__).parents[2]
SCRIPTS = Path(__file__).parent / "scripts"
PAGE = ROOT / "docs" / "guides" / "libraries.md"
RESULTS = Path(__file__).parent / "results.json"
MARK = "<!-- the table that python -m tests libraries --write writes -->\n"
NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")
TOLERANCE = {"cpu": 1e-4, "webgpu": 1e-3}  # of a printed number, or of 1 where it is smaller
LIMIT = 600  # seconds of a script


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a script on a device of a host. error: the last line that it raised, or the first that differs."""

    library: str
    version: str
    script: str
    device: str
    imports: bool
    trains: bool
    numbers: bool
    error: str = ""
    seconds: float = 0.0
    host: str = "native"

    @property
    def passed(self) -> bool:
        return self.numbers


def cache() -> Path:
    """The folder of the environment, outside of the repository."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("PYWEBGPU_LIBRARIES") or home / "pywebgpu" / "libraries")


def prepare(libraries: Sequence[Library]) -> Path:
    """Installs what is not there yet; returns the environment's Python."""
    folder = cache()
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        pip(python, COMMON)
    shared = [library for library in libraries if not library.alone.startswith(library.name)]
    wanted = [f"{library.name}{library.versions}" for library in shared]
    wanted += [name for library in libraries for name in library.needs.split()]
    noted = folder / "installed.json"
    known = set(json.loads(noted.read_text())) if noted.exists() else set()
    if missing := sorted(set(wanted) - known):
        pip(python, ["--no-deps", *missing])
        noted.write_text(json.dumps(sorted(known | set(missing))))
    for library in libraries:
        if library.alone and not alone(library).exists():
            pip(python, ["--no-deps", "--target", str(alone(library)), *library.alone.split()])
    return python


def alone(library: Library) -> Path:
    """The folder of what one library sees."""
    return cache() / "alone" / library.name


def pip(python: Path, names: Sequence[str]) -> None:
    subprocess.run([python, "-m", "pip", "install", "-q", *names], check=True)


def lent() -> Path:
    """A folder of links to the PyTorch that runs these tests, without what lies beside it."""
    folder = cache() / "pytorch"
    folder.mkdir(parents=True, exist_ok=True)
    spec = importlib.util.find_spec("torch")
    site = Path(str(spec and spec.origin)).parents[1]
    for path in (*site.glob("torch-*.dist-info"), *(site / name for name in ("torch", "torchgen", "functorch"))):
        link = folder / path.name
        if path.exists() and not link.exists():
            link.unlink(missing_ok=True)  # It may lead to an environment that is gone.
            link.symlink_to(path)
    return folder


def printed(python: Path, script: str, path: Sequence[Path], *command: str) -> tuple[list[str], str, float]:
    """The lines that a script printed, what it raised, and its seconds."""
    folder = cache() / "work" / script / (command[-1] if command else "pytorch")
    folder.mkdir(parents=True, exist_ok=True)
    offline = dict.fromkeys(("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY"), "1")
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    paths = os.pathsep.join(str(part) for part in (*path, ROOT / "tests" / "scripts"))
    environment = os.environ | offline | threads | {"PYTHONPATH": paths, "PYTHONWARNINGS": "ignore"}
    environment |= {"PYTHONPYCACHEPREFIX": ""} | {"MPLBACKEND": "agg", "TQDM_DISABLE": "1"}
    if command[-1:] != ("webgpu",):
        environment["CUDA_VISIBLE_DEVICES"] = ""
    start = time.monotonic()
    try:
        done = subprocess.run(
            [python, *command, SCRIPTS / f"{script}.py"], cwd=folder, env=environment, text=True, timeout=LIMIT,
            capture_output=True, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return [], f"no end after {LIMIT} s", LIMIT
    errors = "" if done.returncode == 0 else done.stderr.strip() or f"exit status {done.returncode}"
    return done.stdout.splitlines(), errors, time.monotonic() - start


def by_pytorch(python: Path, library: Library, script: str) -> tuple[list[str], str, float]:
    """What a script prints under PyTorch; kept until the script or the library changes.

    A file of the script's name says it for a library whose kernels do not load beside the PyTorch of these tests.
    """
    kept = SCRIPTS / f"{script}.txt"
    if kept.exists():
        return kept.read_text().splitlines(), "", 0.0
    sources = [SCRIPTS / f"{script}.py", ROOT / "tests" / "scripts" / "seeding.py"]
    content = b"".join(path.read_bytes() for path in sources) + metadata_version(python, library.name).encode()
    path = cache() / "printed" / f"{script}-{hashlib.sha256(content).hexdigest()[:16]}.json"
    if path.exists():
        lines, raised, seconds = json.loads(path.read_text())
        return lines, raised, seconds
    printing = printed(python, script, [lent(), alone(library)])
    if not printing[1]:
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(printing))
    return printing


def differences(wanted: Sequence[str], lines: Sequence[str], tolerance: float) -> list[str]:
    """The lines that differ by more than numbers' rounding."""
    wrong = []
    for theirs, ours in zip(wanted, lines, strict=False):
        pairs = zip(map(float, NUMBER.findall(theirs)), map(float, NUMBER.findall(ours)), strict=False)
        far = any(abs(a - b) > tolerance * max(1.0, abs(a)) for a, b in pairs)
        if far or NUMBER.sub("#", theirs) != NUMBER.sub("#", ours):
            wrong.append(f"PyTorch prints {theirs!r}, and here it is {ours!r}")
    if len(wanted) != len(lines):
        wrong.append(f"PyTorch prints {len(wanted)} lines, and here there are {len(lines)}")
    return wrong


def tried(python: Path, library: Library, script: str, device: str, host: str, *, verbose: bool) -> Result:
    """A script under PyTorch and here."""
    wanted, broken, theirs = by_pytorch(python, library, script)
    if host == "native":
        command = ("-m", "pywebgpu", "run", "--device", device)
        lines, raised, ours = printed(python, script, [ROOT, alone(library)], *command)
    else:
        wheels = in_pyodide.prepare(cache(), library.requirements)
        start = time.monotonic()
        lines, raised = in_pyodide.run(host, device, SCRIPTS / f"{script}.py", wheels, cache())
        ours = time.monotonic() - start
    version = metadata_version(python, library.name)
    if broken:
        error = f"PyTorch: {broken.splitlines()[-1]}"
    elif raised:
        error = raised.splitlines()[-1]
    else:
        error = next(iter(differences(wanted, lines, TOLERANCE[device])), "")
    if verbose:
        print(*lines, sep="\n")
        print(broken, raised, *differences(wanted, lines, TOLERANCE[device]), sep="\n")
        print(f"{ours:.1f} s, under PyTorch {theirs:.1f} s")
    has_started = bool(lines) and lines[0] == "imported"
    has_ended = not raised
    said = (has_started, has_ended, not error)
    return Result(library.name, version, script, device, *said, error, round(ours, 1), host)


def metadata_version(python: Path, name: str) -> str:
    found = [path.name.split("-")[1] for path in _installed(python, name)]
    return found[0].removesuffix(".dist") if found else "?"


def _installed(python: Path, name: str) -> Iterator[Path]:
    pattern = f"{_stem(name)}-*.dist-info"
    yield from python.parents[1].glob(f"lib/*/site-packages/{pattern}")
    yield from (cache() / "alone").glob(f"*/{pattern}")


def _stem(name: str) -> str:
    return "".join(f"[{letter.lower()}{letter.upper()}]" if letter.isalpha() else "[-_.]" if letter in "-_." else letter
                   for letter in name)  # fmt: skip


def table(results: Sequence[Result]) -> str:
    """Library by version by device, for the page."""
    words = {True: "yes", False: "**no**"}
    head = [
        "| library | version | host | device | imports | trains | numbers | where it fails |",
        "|---|---|---|---|---|---|---|---|",
    ]
    rows = []
    advice = {library.name: library.advice for library in LIBRARIES}
    for name, host, device in dict.fromkeys((result.library, result.host, result.device) for result in results):
        parts = [result for result in results if (result.library, result.host, result.device) == (name, host, device)]
        wrong = "; ".join(f"{part.script}: `{part.error[:120]}`" for part in parts if not part.passed)
        says = [all(part.imports for part in parts), all(part.trains for part in parts), all(p.numbers for p in parts)]
        cells = [name, parts[0].version, host, device, *(words[said] for said in says)]
        rows.append(
            "| " + " | ".join([*cells, " ".join(filter(None, (wrong.replace("|", "/"), advice.get(name))))]) + " |"
        )
    return "\n".join([*head, *rows]) + "\n"


def write(results: Sequence[Result]) -> None:
    """Keeps the results of the other libraries, and writes the page's table."""
    known = [Result(**fields) for fields in json.loads(RESULTS.read_text())] if RESULTS.exists() else []
    merged = {(result.library, result.host, result.device, result.script): result for result in (*known, *results)}
    order = {(library.name, script): at for at, (library, script) in enumerate(_all())}
    kept = [result for result in merged.values() if (result.library, result.script) in order]
    kept.sort(key=lambda result: (order[result.library, result.script], result.host, result.device))
    kept.sort(key=lambda result: next(at for at, library in enumerate(LIBRARIES) if library.name == result.library))
    RESULTS.write_text(json.dumps([asdict(result) for result in kept], indent=1) + "\n")
    before, _, _ = PAGE.read_text().partition(MARK)
    PAGE.write_text(before + MARK + "\n" + table(kept))


def _all() -> list[tuple[Library, str]]:
    return [(library, script) for library in LIBRARIES for script in library.programs]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests libraries", description=__doc__)
    parser.add_argument("names", nargs="*", help="libraries or scripts; all if none is named")
    parser.add_argument("--device", default="cpu", choices=list(TOLERANCE))
    parser.add_argument("--host", default="native", choices=["native", *in_pyodide.HOSTS])
    parser.add_argument("--write", action="store_true", help="write the page's table")
    parser.add_argument("--verbose", action="store_true", help="all that the scripts print and raise")
    options = parser.parse_args(arguments)
    names = set(options.names)
    pairs = [
        (library, script)
        for library, script in _all()
        if not names or {library.name, script, script.removeprefix("use_")} & names
    ]
    if options.device == "webgpu" and not names:
        pairs = [pair for pair in pairs if pair[0].webgpu]
    if options.host != "native" and not names:
        pairs = [pair for pair in pairs if pair[0].in_pyodide]
    if not pairs:
        parser.error(f"there are {', '.join(library.name for library in LIBRARIES)}")
    python = prepare([library for library, _ in dict.fromkeys(pairs)])
    if options.host != "native" and (reason := in_pyodide.why_missing(options.host)):
        parser.error(reason)
    results = []
    for library, script in pairs:
        result = tried(python, library, script, options.device, options.host, verbose=options.verbose)
        results.append(result)
        if options.write:
            write([result])
        marks = " ".join(
            f"{name} {'yes' if getattr(result, name) else 'NO'}" for name in ("imports", "trains", "numbers")
        )
        words = f"{script:32} {result.version:10} {options.host} {options.device:6} {marks} {result.seconds:6.1f} s"
        print(f"{words}  {result.error[:160]}", flush=True)
    n_passed = sum(result.passed for result in results)
    print(f"{n_passed} passed, {len(results) - n_passed} failed")
    return 0 if n_passed == len(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
