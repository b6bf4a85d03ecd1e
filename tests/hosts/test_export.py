"""What Python exports, the player runs in Node: from the same states on, the same losses."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pywebgpu as torch
from tests import devices
from tests.hosts import exporting

ROOT = Path(__file__).parents[2]
PLAY = """
import { pathToFileURL } from "node:url";
const [bridge, folder] = process.argv.slice(1).map((path) => `${pathToFileURL(path)}/`);
const { offerWebGPU } = await import(`${bridge}dawn.mjs`);
await offerWebGPU();
const { load } = await import(`${bridge}player.mjs`);
const { batches } = (await import(`${folder}followed.json`, { with: { type: "json" } })).default;
const player = await load(folder);
const losses = [];
for (const [x, y, scale] of batches) losses.push(await player.step("training", { x: x.flat(), y, scale }));
const scores = await player.run("inference", { x: batches[0][0].flat() });
const weight = await player.params.get("3.weight");
console.log(JSON.stringify({ losses, scores: [...scores.data], weight: [...weight.data], step: player.options.step }));
process.exit();
"""


@pytest.fixture(autouse=True)
def needs_node() -> None:
    if devices.why_no_node():
        pytest.skip(devices.why_no_node())


def play(folder: Path) -> dict[str, Any]:
    command = [*devices.node_command(), "--input-type=module", "-e", PLAY, str(ROOT / "js_bridge"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def flat(rows: list[list[float]]) -> list[float]:
    return [element for row in rows for element in row]


def followed(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "followed.json").read_text(encoding="utf-8"))
    return found


def test_player_goes_on_as_python_in_node(tmp_path: Path) -> None:
    """The same shaders on the same adapter: equal to the last bit."""
    script = [sys.executable, "-m", "pywebgpu", "node", "-m", "tests.hosts.exporting", str(tmp_path)]
    done = subprocess.run(script, capture_output=True, text=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    wanted, found = followed(tmp_path), play(tmp_path)
    assert found["losses"] == wanted["losses"]
    assert found["scores"] == flat(wanted["scores"])
    assert found["weight"] == flat(wanted["weight"])
    assert found["step"] == 3 + exporting.STEPS


@pytest.mark.skipif(bool(devices.why_no_webgpu()), reason=devices.why_no_webgpu())
def test_player_goes_on_as_native_python(tmp_path: Path) -> None:
    exporting.main(str(tmp_path))
    wanted, found = followed(tmp_path), play(tmp_path)
    assert found["losses"] == pytest.approx(wanted["losses"], abs=1e-5)
    assert found["scores"] == pytest.approx(flat(wanted["scores"]), abs=1e-5)


@pytest.mark.skipif(bool(devices.why_no_webgpu()), reason=devices.why_no_webgpu())
def test_python_goes_on_from_its_own_export(tmp_path: Path) -> None:
    exporting.main(str(tmp_path))
    wanted = followed(tmp_path)
    player = torch.load_program(tmp_path, "webgpu")
    batches = [dict(zip(("x", "y", "scale"), batch, strict=True)) for batch in wanted["batches"]]
    assert [player.step("training", batch).item() for batch in batches] == wanted["losses"]
    assert player.run("inference", {"x": batches[0]["x"]}).tolist() == wanted["scores"]
    assert player.params.get("3.weight").tolist() == wanted["weight"]
