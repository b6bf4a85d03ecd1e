"""`python -m tests torch [FILES] [--device cpu|webgpu]`: PyTorch's own unit tests on this library as torch.

FILES are paths in PyTorch's folder `test/`; all of FILES in this module where none is named. The source is fetched
through apt (source.py). Run are the tests that PyTorch passes, as reference.json.xz has them; --reference runs PyTorch
itself, the same way, and writes that file. A test that hangs or crashes is one failure. Writes docs/conformance.md's
table where whole files ran, and all failures with their frames into a file outside the repository.

    --jobs N       processes side by side (2)
    --most N       of each file the N tests whose names hash lowest (400); 0: all
    -k TEXT        tests whose names hold TEXT, or which match it as a pattern; nothing is written into docs/
    --seconds S    a test's time (60)
    --source DIR   PyTorch's source, where it lies already
    --reference    runs PyTorch
    --causes N     prints the N causes that stop the most tests (20)
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import lzma
import queue
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.opdb import report as opdb_report
from tests.upstream import processes, report, source, verdict

REFERENCE = Path(__file__).with_name("reference.json.xz")
_NAMES = {
    "autograd": "complex functional",
    "distributions": "constraints distributions transforms utils",
    "functorch": "eager_transforms vmap",
    "nn": (
        "convolution dropout embedding init lazy_modules load_state_dict module_hooks multihead_attention "
        "packed_sequence parametrization pooling pruning"
    ),
    "optim": "lrscheduler optim swa_utils",
    "": (
        "autograd binary_ufuncs comparison_utils complex dataloader dlpack foreach functional_optim fx "
        "indexing linalg masked maskedtensor modules nn numpy_interop optim "
        "reductions scatter_gather_ops segment_reductions serialization shape_ops sort_and_select "
        "sparse sparse_csr spectral_ops stateless subclass tensor_creation_ops testing torch type_info "
        "type_promotion unary_ufuncs utils view_ops"
    ),
}
FILES = [f"{folder}/test_{name}.py".lstrip("/") for folder, names in _NAMES.items() for name in names.split()]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests torch", description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--device", choices=("cpu", "webgpu"), default="cpu")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--most", type=int, default=400)
    parser.add_argument("-k", dest="only", default="")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--source", type=Path)
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("--causes", type=int, default=20)
    options = parser.parse_args(arguments)
    folder = options.source or source.folder()
    library = "torch" if options.reference else "pywebgpu"
    setting = processes.Setting(folder.resolve(), library, options.device, options.seconds)
    files = options.files or [file for file in FILES if (folder / "test" / file).exists()]
    if options.reference:
        return refer(setting, files, options)
    passed = reference()
    unknown = [file for file in files if file not in passed]
    if unknown:
        print(f"PyTorch did not run them yet, see --reference: {' '.join(unknown)}")
    excluded = list(report.exclusions())
    chosen, counts = {}, {}
    for file in files:
        names = [on_device(name, options.device) for name in passed.get(file, {}).get("passed", ())]
        names = [name for name in names if name and picked(name, options.only)]
        taken = [name for name in names if not is_excluded(f"{file}::{name}", excluded)]
        chosen[file] = sample(taken, options.most)
        counts[file] = {"passed": 0, "failed": 0, "skipped": 0, "excluded": len(names) - len(taken)}
    failures = []
    for file, result in progress(processes.run_all(setting, chosen, options.jobs), chosen):
        counts[file][result["status"]] += 1
        if result["status"] == "failed":
            kind = verdict.kind(result)
            counts[file][kind] = counts[file].get(kind, 0) + 1
            failures.append({"file": file, "test": result.pop("end"), "kind": kind} | result)
    written = source.cache() / f"failures-{options.device}.json"
    written.parent.mkdir(parents=True, exist_ok=True)
    written.write_text(json.dumps(failures, indent=1), encoding="utf-8")
    causes = Counter(f"{failure['kind']}: {verdict.cause(failure)}" for failure in failures)
    for text, number in causes.most_common(options.causes):
        print(f"{number:5} {text}")
    print(report.summary(counts))
    print(f"all failures: {written}")
    if not options.only:
        report.write(options.device, counts)
        opdb_report.write_page()
    return 1 if failures else 0


def refer(setting: processes.Setting, files: list[str], options: argparse.Namespace) -> int:
    """Runs PyTorch itself, and keeps which tests pass."""
    chosen = {}
    for file in files:
        try:
            names = [name for name in processes.listed(setting, file) if picked(name, options.only)]
        except (ImportError, queue.Empty) as error:
            print(f"{file} cannot be imported: {error}")
            continue
        chosen[file] = sample(names, options.most)
    found: dict[str, dict[str, Any]] = {
        file: {"sampled": len(names), "passed": [], "failed": 0, "skipped": 0} for file, names in chosen.items()
    }
    for file, result in progress(processes.run_all(setting, chosen, options.jobs), chosen):
        if result["status"] == "passed":
            found[file]["passed"].append(result["end"])
        else:
            found[file][result["status"]] += 1
    for file, entry in found.items():
        entry["passed"].sort()
        print(f"{file}: {len(entry['passed'])} passed, {entry['failed']} failed, {entry['skipped']} skipped")
    if not options.only:
        whole = dict(sorted((reference() | found).items()))
        REFERENCE.write_bytes(lzma.compress(json.dumps(whole, indent=0).encode(), preset=9))
    return 0


def reference() -> dict[str, dict[str, Any]]:
    """What PyTorch passes: for each file its tests."""
    return json.loads(lzma.decompress(REFERENCE.read_bytes())) if REFERENCE.exists() else {}  # type: ignore[no-any-return]


def is_excluded(name: str, patterns: list[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def on_device(name: str, device: str) -> str:
    """The name of a test of device cpu on another device; "" where there is none, or no such dtype."""
    if device == "cpu":
        return name
    group, _, test = name.partition(".")
    if test.endswith(("_float64", "_complex128")) or not group.endswith("CPU") or "_cpu" not in test:
        return ""
    return f"{group.removesuffix('CPU')}PRIVATEUSE1.{test.replace('_cpu', f'_{device}', 1)}"


def picked(name: str, text: str) -> bool:
    return text in name or fnmatch.fnmatchcase(name, text)


def sample(names: list[str], most: int) -> list[str]:
    """Those whose names hash lowest, in their order: a sample of a sample is one of the whole."""
    if not most or len(names) <= most:
        return names
    taken = set(sorted(names, key=lambda name: (zlib.crc32(name.encode()), name))[:most])
    return [name for name in names if name in taken]


def progress(results: Iterable[Any], chosen: dict[str, list[str]]) -> Iterable[Any]:
    """The results, with a line about each file whose last test ended."""
    left, start = {file: len(names) for file, names in chosen.items()}, time.monotonic()
    for file, result in results:
        left[file] -= 1
        if not left[file]:
            waiting = sum(left.values())
            print(f"{time.monotonic() - start:6.0f} s  {file} done, {waiting} tests left", file=sys.stderr, flush=True)
        yield file, result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
