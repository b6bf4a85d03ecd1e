"""The Train tab: a model learns, can be stopped, kept, taken up again, and fed another text."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from playwright.sync_api import Browser, Page, expect

from playwright_tests.conftest import LOADED, STEPPED, TINY

ROOT = Path(__file__).parents[1]
SENTENCE = "The quick brown fox jumps over the lazy dog. "


def state(page: Page, wanted: str, timeout: float) -> None:
    expect(page.locator("html")).to_have_attribute("data-state", wanted, timeout=timeout)


def steps_done(page: Page) -> int:
    text = page.locator("#step").inner_text().split(" ")[0].replace(",", "")
    return int(text) if text.isdecimal() else 0


def wait_for_step(page: Page, step: int) -> None:
    done = "step => parseInt(document.getElementById('step').textContent.replaceAll(',', '')) >= step"
    page.wait_for_function(done, arg=step, timeout=STEPPED)


def shown_loss(page: Page) -> float:
    return float(page.locator("#loss").inner_text())


def longest_task(trace: bytes) -> float:
    """The milliseconds that the page's own thread worked at its longest task; waiting for a busy core is not work."""
    events = json.loads(trace)["traceEvents"]
    mains = {
        (e["pid"], e["tid"]) for e in events if e["name"] == "thread_name" and e["args"]["name"] == "CrRendererMain"
    }
    tasks = [
        e["tdur"] for e in events if (e["pid"], e["tid"]) in mains and e["name"].endswith("RunTask") and "tdur" in e
    ]
    assert len(tasks) > 10
    return float(max(tasks)) / 1000


def test_demo_trains_and_its_loss_falls(browser: Browser, page: Page, address: str) -> None:
    page.goto(f"{address}{TINY}&steps=80")
    state(page, "idle", LOADED)
    page.get_by_role("button", name="Start").press("Enter")
    wait_for_step(page, 3)
    first = shown_loss(page)
    browser.start_tracing(page=page, categories=["toplevel", "disabled-by-default-devtools.timeline"])
    state(page, "done", STEPPED)
    assert longest_task(browser.stop_tracing()) <= 50
    assert shown_loss(page) < first - 0.5
    expect(page.locator("#samples article").first).to_contain_text("After 80 steps")
    expect(page.locator("#samples p").first).to_contain_text("The ", timeout=STEPPED)
    expect(page.locator("#adapter")).to_contain_text("SwiftShader", ignore_case=True)
    expect(page.locator("#adapter")).to_contain_text("Python's memory")
    page.get_by_role("button", name="Reset").click()
    state(page, "idle", LOADED)
    expect(page.locator("#step")).to_have_text("\u2013")


def test_checkpoint_goes_around(page: Page, address: str, tmp_path: Path) -> None:
    """Trains, pauses, resumes, downloads; after a reload the checkpoint opens, and training goes on."""
    page.goto(f"{address}{TINY}&steps=3000&start")
    wait_for_step(page, 10)
    page.get_by_role("button", name="Pause").click()
    state(page, "paused", STEPPED)
    paused = steps_done(page)
    page.wait_for_timeout(1000)
    assert steps_done(page) == paused
    page.get_by_role("button", name="Resume").click()
    wait_for_step(page, paused + 5)
    page.get_by_role("button", name="Pause").click()
    state(page, "paused", STEPPED)
    kept, loss = steps_done(page), shown_loss(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)

    page.goto(f"{address}{TINY}")
    state(page, "idle", LOADED)
    page.locator("#checkpoint").set_input_files({"name": "no.safetensors", "mimeType": "", "buffer": b"no checkpoint"})
    expect(page.locator("#trouble")).to_contain_text("Cannot read the checkpoint: the header has")
    page.get_by_label("Your own").check()
    page.get_by_label("or paste it").fill(SENTENCE * 20)
    page.locator("#checkpoint").set_input_files(file)
    expect(page.locator("#trouble")).to_contain_text("trained on another text")
    page.get_by_label("Documentation of Python").check()
    page.locator("#checkpoint").set_input_files(file)
    state(page, "paused", STEPPED)
    expect(page.locator("#trouble")).to_be_hidden()
    assert (steps_done(page), shown_loss(page)) == (kept, loss)
    assert page.locator("[name=steps]").input_value() == "3000"
    page.get_by_role("button", name="Resume").click()
    wait_for_step(page, kept + 2)

    assert native_losses(file) == kept


def native_losses(file: Path) -> int:
    """Opens a checkpoint with the demo's own code on this machine; returns how many steps it has done."""
    sys.path.insert(0, str(ROOT / "demos" / "chargpt"))
    try:
        train = load("train")
        state = train.read_checkpoint(str(file), "cpu")
        corpus = train.Corpus(load("data").python_documentation(), context=16, seed=1)
        run = train.Run(corpus, train.settings_of(state), "cpu")
        run.restore(state)
        run.advance()
        return run.step - 1
    finally:
        sys.path.pop(0)


def load(name: str) -> ModuleType:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    return importlib.import_module(name)


def test_own_text_is_learnt(page: Page, address: str, tmp_path: Path) -> None:
    page.goto(f"{address}{TINY}&steps=4")
    page.get_by_label("Your own").check()
    state(page, "idle", LOADED)

    page.get_by_label("or paste it").fill("short")
    page.get_by_role("button", name="Start").click()
    expect(page.locator("#trouble")).to_contain_text("needs 34", timeout=LOADED)
    state(page, "idle", LOADED)

    file = tmp_path / "fox.txt"
    file.write_text(SENTENCE * 20, encoding="utf-8")
    page.get_by_label("A file in UTF-8").set_input_files(file)
    expect(page.locator("#count")).to_have_text("900 characters")
    page.get_by_role("button", name="Start").click()
    state(page, "done", STEPPED)
    expect(page.locator("#trouble")).to_be_hidden()
    page.locator("#machine").evaluate("details => { details.open = true }")
    expect(page.locator("#adapter")).to_contain_text("900 characters, 29 different ones")


@pytest.mark.parametrize("name", ["heads", "steps"])
def test_wrong_settings_are_told_before_anything_runs(page: Page, address: str, name: str) -> None:
    page.goto(f"{address}{TINY}")
    state(page, "idle", LOADED)
    field = page.locator(f"[name={name}]")
    page.locator("fieldset details").evaluate("details => { details.open = true }")
    field.fill({"heads": "3", "steps": "0"}[name])
    page.get_by_role("button", name="Start").click()
    assert field.evaluate("field => field.validationMessage")
    expect(page.locator("html")).to_have_attribute("data-state", "idle")
