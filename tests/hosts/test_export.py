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


def play(folder: Path, script: str = PLAY) -> Any:
    command = [*devices.node_command(), "--input-type=module", "-e", script, str(ROOT / "js_bridge"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


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


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What native Python exports."""
    if devices.why_no_webgpu():
        pytest.skip(devices.why_no_webgpu())
    folder = tmp_path_factory.mktemp("exported")
    exporting.main(str(folder))
    return folder


def test_player_goes_on_as_native_python(exported: Path) -> None:
    wanted, found = followed(exported), play(exported)
    assert found["losses"] == pytest.approx(wanted["losses"], abs=1e-5)
    assert found["scores"] == pytest.approx(flat(wanted["scores"]), abs=1e-5)


def test_python_goes_on_from_its_own_export(exported: Path) -> None:
    wanted = followed(exported)
    player = torch.load_program(exported, "webgpu")
    batches = [dict(zip(("x", "y", "scale"), batch, strict=True)) for batch in wanted["batches"]]
    assert [player.step("training", batch).item() for batch in batches] == wanted["losses"]
    assert player.run("inference", {"x": batches[0]["x"]}).tolist() == wanted["scores"]
    assert player.params.get("3.weight").tolist() == wanted["weight"]


PLAY_PACKED = """
import { pathToFileURL } from "node:url";
const [bridge, folder] = process.argv.slice(1).map((path) => `${pathToFileURL(path)}/`);
const { offerWebGPU } = await import(`${bridge}dawn.mjs`);
await offerWebGPU();
const { load } = await import(`${bridge}player.mjs`);
const player = await load(folder);
const elements = (value) => typeof value === "number" ? [value] : [...value.data].map(Number);
const plain = (value) => Array.isArray(value) ? value.map(elements) : elements(value);
const first = plain(await player.run("step", { x: [1, 2, 3, 4, 5], flags: [1, 0, 1, 0, 7] }));
player.params.set({ "bytes.middle": [100, 101], half: [0.1, -65520, 3, 2, 1] });
const second = plain(await player.run("step", { x: [0, 0, 0, 0, 0], flags: [0, 0, 0, 0, 0] }));
const all = Object.entries(await player.params.all()).map(([name, value]) => [name, plain(value)]);
const shown = (_, n) => Number.isFinite(n) || typeof n !== "number" ? n : String(n);
console.log(JSON.stringify([first, second, Object.fromEntries(all)], shown));
process.exit();
"""


@pytest.mark.skipif(bool(devices.why_no_webgpu()), reason=devices.why_no_webgpu())
def test_values_that_share_words_are_played(tmp_path: Path) -> None:
    """Of sizes that fill no word, in parts that begin inside of one."""
    half = torch.tensor([0.5, 1, 2, 3, 4], device="webgpu").half()
    mask = torch.tensor([True, False, True, True, False], device="webgpu")
    many = torch.arange(7, device="webgpu").to(torch.uint8)

    @torch.compile
    def step(x: Any, flags: Any) -> Any:
        half.add_(x)
        mask.logical_xor_(flags)
        many.add_(1)
        return half[1:], mask, many[1:6:2], half.bfloat16() / 4, half.sum()

    def given(x: list[float], flags: list[bool]) -> tuple[Any, Any]:
        return torch.tensor(x, device="webgpu").half(), torch.tensor(flags, device="webgpu")

    def numbers(found: Any) -> list[list[float]]:
        return [
            [number if abs(number) < 1e9 else "-Infinity" for number in map(float, value.reshape(-1).tolist())]
            for value in found
        ]

    step.warmup(*given([0] * 5, [False] * 5))
    names = {"half": half, "mask": mask, "bytes": {"all": many, "middle": many[3:5]}}
    torch.save_program(str(tmp_path), {"step": step}, names)
    found = play(tmp_path, PLAY_PACKED)
    wanted = [numbers(step(*given([1, 2, 3, 4, 5], [True, False, True, False, True])))]
    many[3:5] = torch.tensor([100, 101], device="webgpu").to(torch.uint8)
    half.copy_(torch.tensor([0.1, -65520, 3, 2, 1], device="webgpu"))
    wanted.append(numbers(step(*given([0] * 5, [False] * 5))))
    assert found[:2] == wanted
    kept = {"half": half, "mask": mask, "bytes.all": many, "bytes.middle": many[3:5]}
    assert found[2] == dict(zip(kept, numbers(kept.values()), strict=True))
