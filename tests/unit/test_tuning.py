"""Tunings: tables as text, where they are kept, what they change, and that nothing else depends on them."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pywebgpu import settings
from pywebgpu.bench import tune
from pywebgpu.devices import tunings
from pywebgpu.kernels import templates, tuning
from pywebgpu.kernels.kernel import Limits
from pywebgpu.kernels.launch import Case, Launch, Problem
from pywebgpu.kernels.target import Features, Target
from tests.devices import why_no_webgpu

ROOT = Path(__file__).parents[2]
TABLE = {
    Case("matmul", (1, 64, 64, 16), ("float32",), "nt"): Launch("", 64, (32, 32, 16), (4, 4), 1, 1),
    Case("rows", (8, 64), (), "along"): Launch("shuffled", 64, (), (4,), 8, 1),
}
INFO = {"vendor": "A/B", "device": "a GPU: (1)", "backend_type": "Vulkan"}
SHIPPED = sorted(tuning.FOLDER.glob("*.json"))


def test_a_table_is_read_as_it_was_written() -> None:
    assert tuning.from_text(tuning.to_text(TABLE)) == TABLE
    assert tuning.from_text(tuning.to_text({})) == {}


BROKEN = {
    "nothing": "",
    "no JSON": "{",
    "a list": "[]",
    "another version": json.dumps({"version": tuning.VERSION + 1, "launches": []}),
    "no launches": json.dumps({"version": tuning.VERSION}),
    "a launch that is none": json.dumps({"version": tuning.VERSION, "launches": [["rows", [1], [], "along", [1]]]}),
    "sizes that are text": json.dumps({"version": tuning.VERSION, "launches": [["rows", ["x"], [], "", [0] * 6]]}),
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_what_is_no_table_is_as_none(text: str) -> None:
    assert tuning.from_text(text) == {}


def test_an_adapters_own_table_stands_over_the_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first, second = TABLE
    other = Launch(threads=1)
    (tmp_path / "acme-naga.json").write_text(tuning.to_text(TABLE))
    (tmp_path / "discrete.json").write_text(tuning.to_text({first: other}))
    monkeypatch.setattr(tuning, "FOLDER", tmp_path)
    known = Features(family="acme", translator="naga", kind="discrete")
    assert tuning.of(known) == TABLE
    assert tuning.of(known, tuning.to_text({second: other})) == {first: TABLE[first], second: other}
    assert tuning.of(replace(known, translator="tint")) == {first: other}, "a kind of adapter has a table, too"
    assert tuning.of(Features(family="acme", translator="tint")) == {}
    monkeypatch.setattr(tuning, "settings", replace(settings.settings, tuning=False))
    assert tuning.of(known) == {}


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: str(file.stem))
def test_tables_of_the_package_name_launches_that_there_are(file: Path) -> None:
    """Of a problem as large as its case says: what no template offers would never be taken."""
    family, _, translator = file.stem.partition("-")
    features = Features(("subgroups",), (4, 4), family=family, translator=translator)
    target = Target(True, Limits(bindings=16, shared_bytes=32 << 10, emulated=family == "swiftshader"), features)
    found = tuning.from_text(file.read_text(encoding="utf-8"))
    assert found
    for case, chosen in found.items():
        (template,) = [one for one in templates.load_all() if one.name == case.template]
        assert chosen in template.launches(Problem(case.shape_class, case.formats, case.layout), target), case


def test_tables_are_kept_by_adapter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tunings, "settings", replace(settings.settings, cache=str(tmp_path)))
    assert tunings.load(INFO) == ""
    kept = tunings.save(INFO, "text")
    assert Path(kept).parent == tmp_path / "tuning"
    assert tunings.load(INFO) == "text"
    assert tunings.load(INFO | {"device": "another"}) == ""
    monkeypatch.setattr(tunings, "settings", replace(settings.settings, cache=""))
    assert (tunings.save(INFO, "text"), tunings.load(INFO)) == ("", "")


def test_an_adapter_keeps_only_what_the_package_does_not_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _, second = TABLE
    (tmp_path / "acme-naga.json").write_text(tuning.to_text(TABLE))
    monkeypatch.setattr(tuning, "FOLDER", tmp_path)
    changed = {**TABLE, second: Launch(threads=1)}
    kept = tuning.own_text(Features(family="acme", translator="naga"), changed)
    assert tuning.from_text(kept) == {second: Launch(threads=1)}


@pytest.mark.parametrize("most", [0, 1, 2, 3, 7, 20])
def test_rounds_are_spread_over_all_launches(most: int) -> None:
    found = [Launch(threads=at) for at in range(7)]
    spread = tune._spread(found, most)
    assert spread[0] == found[0]
    assert len({*spread}) == len(spread) == min(most or 7, 7)
    assert most == 1 or spread[-1] == found[-1]


LATER = """
import json
from pywebgpu import devices
found = devices.open_device("webgpu").target
print(json.dumps([len(found.tuning), found.digest]))
"""


@pytest.mark.skipif(bool(why_no_webgpu()), reason=why_no_webgpu())
@pytest.mark.long("measures kernels of a whole step")
def test_what_was_measured_is_used_by_later_processes(tmp_path: Path) -> None:
    def run(*command: str, **changes: str) -> Any:
        environment = os.environ | {"PYWEBGPU_CACHE": str(tmp_path)} | changes
        done = subprocess.run(
            [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    shipped, before = json.loads(run("-c", LATER))
    text = run("-m", "pywebgpu", "tune", "mlp", "--rounds", "2")
    (kept,) = (tmp_path / "tuning").iterdir()
    assert str(kept) in text
    measured = tuning.from_text(kept.read_text(encoding="utf-8"))
    kept.write_text(tuning.to_text(tuning.merged([measured, TABLE])), encoding="utf-8")  # Nothing may be faster.
    count, after = json.loads(run("-c", LATER))
    assert count >= shipped + len(TABLE)
    assert after != before
    assert json.loads(run("-c", LATER, PYWEBGPU_TUNING="0"))[0] == 0
    assert json.loads(run("-c", LATER, PYWEBGPU_PORTABLE="1"))[0] == 0
