"""The Train tab: a model learns, can be stopped, kept, taken up again, and fed another text."""

import importlib
import json
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from playwright_tests.conftest import photograph, violations
from playwright_tests.steps import (
    LOADED,
    SHIFTS,
    STEPPED,
    TINY,
    begin,
    pause,
    press,
    shown_loss,
    state,
    steps_done,
    wait_for_step,
)

ROOT = Path(__file__).parents[1]
SENTENCE = "The quick brown fox jumps over the lazy dog. "


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
    page.add_init_script(SHIFTS)
    begin(page, f"{address}{TINY}&steps=80")
    photograph(page, "1-opened")
    page.get_by_role("button", name="Start").press("Enter")
    wait_for_step(page, 3)
    first = shown_loss(page)
    browser.start_tracing(page=page, categories=["toplevel", "disabled-by-default-devtools.timeline"])
    state(page, "done", STEPPED)
    assert longest_task(browser.stop_tracing()) <= 50
    assert page.evaluate("shifted") < 0.05
    assert shown_loss(page) < first - 0.5
    expect(page.locator("#samples article").first).to_contain_text("After 80 steps")
    expect(page.locator("#samples p").first).to_contain_text("The ", timeout=STEPPED)
    expect(page.locator("#adapter")).to_contain_text("SwiftShader", ignore_case=True)
    expect(page.locator("#adapter")).to_contain_text("Python's memory")
    page.get_by_text("The model's source").click()
    page.get_by_text("See inside").click()
    expect(page.locator("#inside-drift svg")).to_be_visible(timeout=STEPPED)
    nobody_is_shut_out(page)
    press(page, "Reset")
    state(page, "idle", LOADED)
    expect(page.locator("#step")).to_have_text("\u2013")
    press(page, "Start")
    wait_for_step(page, 2)
    kept = pause(page)
    expect(page.locator("#kept-runs li")).to_have_count(2, timeout=STEPPED)
    page.reload()
    state(page, "idle", LOADED)
    expect(page.locator("#step")).to_have_text("\u2013")
    page.locator("#kept-runs li").first.get_by_role("button", name="Go on").click()
    state(page, "paused", STEPPED)
    assert steps_done(page) == kept
    page.locator("#kept-runs li").nth(1).get_by_role("button", name="Go on").click()
    state(page, "done", STEPPED)
    page.get_by_text("See inside").click()
    press(page, "Train further")
    wait_for_step(page, 82)
    expect(page.locator("#inside-maps canvas")).to_have_count(2, timeout=STEPPED)  # one layer of two heads
    expect(page.locator("#inside-cost")).to_contain_text("1 submit")
    expect(page.locator("#inside-drift text").filter(has_text=re.compile("^[aeiou]$"))).to_have_count(5)
    expect(page.locator("#inside-since")).to_contain_text(re.compile(r"at step 8\d"))
    page.locator("#inside").scroll_into_view_if_needed()
    photograph(page, "2-inside")
    page.set_viewport_size({"width": 320, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def nobody_is_shut_out(page: Page) -> None:
    """By axe-core's rules, of each tab, in light and dark."""
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type] - one of its words
        tabs = {
            "gallery": ".piece img",
            "editor": "#code .cm-content",
            "gpu": "#measure",
            "train": "#model-code .cm-content",
        }
        for tab, shown in tabs.items():
            page.locator(f"#tab-{tab}").click()
            expect(page.locator(shown).first).to_be_visible(timeout=LOADED)
            assert violations(page) == [], (scheme, tab)


def test_checkpoint_goes_around(page: Page, address: str, tmp_path: Path) -> None:
    """Trains, pauses, resumes, downloads; after a reload the checkpoint opens, and training goes on."""
    page.goto(f"{address}{TINY}&steps=3000&start")
    wait_for_step(page, 10)
    paused = pause(page)
    page.wait_for_timeout(1000)
    assert steps_done(page) == paused
    press(page, "Resume")
    wait_for_step(page, paused + 5)
    kept, loss = pause(page), shown_loss(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)

    begin(page, f"{address}{TINY}")
    page.locator("#checkpoint").set_input_files({"name": "no.safetensors", "mimeType": "", "buffer": b"no checkpoint"})
    expect(page.locator("#trouble")).to_contain_text("it is no file of torch.save and no safetensors file")
    page.get_by_label("Your own").check()
    page.get_by_label("or paste it").fill(SENTENCE * 20)
    page.locator("#checkpoint").set_input_files(file)
    expect(page.locator("#trouble")).to_contain_text("trained on another text")
    page.get_by_label("Documentation of Python").check()
    page.locator("#checkpoint").set_input_files(file)
    expect(page.locator("#trouble")).to_contain_text("trained on another text")
    page.get_by_label("Verse, made by a grammar").check()
    page.locator("#checkpoint").set_input_files(file)
    state(page, "paused", STEPPED)
    expect(page.locator("#trouble")).to_be_hidden()
    assert (steps_done(page), shown_loss(page)) == (kept, loss)
    assert page.locator("[name=steps]").input_value() == "3000"
    press(page, "Resume")
    wait_for_step(page, kept + 2)

    with demo() as train:
        run = native_run(train, **train.read_checkpoint(str(file))["settings"])
        run.restore(train.read_checkpoint(str(file)))
        assert run.step == kept
        run.advance()


def test_native_checkpoint_goes_on(page: Page, address: str, tmp_path: Path) -> None:
    """What another host saved goes on here with that host's losses."""
    file = str(tmp_path / "native.safetensors")
    with demo() as train:
        run = native_run(train, layers=1, heads=2, width=16, context=16, batch=4, steps=12)
        for _ in range(6):
            run.advance()
        run.save(file, None)
        losses = [*run.losses, *(run.advance() for _ in range(6))]
    begin(page, address)
    page.locator("#checkpoint").set_input_files(file)
    state(page, "paused", STEPPED)
    assert steps_done(page) == 6
    assert page.locator("[name=width]").input_value() == "16"
    press(page, "Resume")
    state(page, "done", STEPPED)
    assert shown_loss(page) == pytest.approx(smooth(losses), abs=2e-3)


def smooth(losses: list[float], decay: float = 0.9) -> float:
    """As plot.mjs has it: where a running mean would be if it did not lag."""
    mean, again, weight = 0.0, 0.0, 1.0
    for loss in losses:
        weight *= decay
        mean += (1 - decay) * (loss - mean)
        again += (1 - decay) * (mean / (1 - weight) - again)
    return (2 * mean - again) / (1 - weight)


@contextmanager
def demo() -> Iterator[ModuleType]:
    """The demo's own code on this machine."""
    sys.path.insert(0, str(ROOT / "demos" / "chargpt"))
    try:
        yield importlib.import_module("train")
    finally:
        sys.path.pop(0)


def native_run(train: ModuleType, **settings: float) -> Any:
    """A run on the page's own verse."""
    chosen = train.Settings(**settings)
    text = importlib.import_module("texts").verse()
    return train.Run(train.Corpus(text, context=chosen.context, seed=chosen.seed), chosen, "cpu")


def test_no_model_is_lost_unasked(page: Page, address: str) -> None:
    """What still trains is kept before it goes; where nothing can be kept, the visitor is asked."""
    page.goto(f"{address}{TINY}&steps=3000&start")
    wait_for_step(page, 3)
    press(page, "Reset")
    kept = page.locator("#kept-runs li")
    expect(kept).to_have_count(1, timeout=STEPPED)
    expect(kept).not_to_contain_text(re.compile("^0 steps"))

    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(f"{dialog.type} {dialog.message}"), dialog.dismiss()))
    page.add_init_script("StorageManager.prototype.getDirectory = async () => { throw new Error('closed') }")
    page.goto(f"{address}{TINY}&steps=6")
    state(page, "idle", LOADED)
    press(page, "Start")
    state(page, "done", STEPPED)
    press(page, "Reset")
    state(page, "done", STEPPED)
    assert "which learnt for 6 steps" in asked.pop()
    page.evaluate("location.reload()")
    page.wait_for_timeout(500)
    assert asked.pop().startswith("beforeunload")
    state(page, "done", STEPPED)


def test_own_text_is_learnt(page: Page, address: str, tmp_path: Path) -> None:
    """A first visitor has a model of a text of theirs within a minute, whatever they try first."""
    opened = time.monotonic()
    page.goto(f"{address}{TINY}&steps=4")
    page.get_by_label("Your own").check()
    state(page, "idle", LOADED)

    page.get_by_label("or paste it").fill("short")
    press(page, "Start")
    expect(page.locator("#text-wrong")).to_contain_text("needs 34", timeout=LOADED)
    expect(page.get_by_label("or paste it")).to_be_focused()
    state(page, "idle", LOADED)
    photograph(page, "3-too-short")

    file = tmp_path / "fox.txt"
    file.write_text(SENTENCE * 20, encoding="utf-8")
    page.get_by_label("A file in UTF-8").set_input_files(file)
    expect(page.locator("#count")).to_have_text("900 characters")
    press(page, "Start")
    state(page, "done", STEPPED)
    expect(page.locator("#text-wrong")).to_be_hidden()
    expect(page.locator("#adapter")).to_contain_text("900 characters, 29 different ones")
    expect(page.locator("#samples p").first).to_contain_text("The ", timeout=STEPPED)
    assert time.monotonic() - opened < 60
    photograph(page, "4-own-model")

    press(page, "Reset")
    page.get_by_label("or paste it").fill("ab" * 100)
    page.locator("#prompt").fill("€ab")
    expect(page.locator("#count")).to_have_text("200 characters")
    press(page, "Start")
    expect(page.locator("#adapter")).to_contain_text("200 characters, 2 different ones", timeout=STEPPED)
    state(page, "done", STEPPED)
    expect(page.locator("#prompt-lacks")).to_contain_text("has no “€”: left out", timeout=STEPPED)
    expect(page.locator("#spoken")).to_contain_text("It writes: ab", timeout=STEPPED)


def test_sizes_and_wrong_settings(page: Page, address: str) -> None:
    begin(page, f"{address}{TINY}")
    size = page.get_by_label("Size")
    expect(size).to_have_value("custom")
    size.select_option("medium")
    expect(page.get_by_label("Width")).to_have_value("192")
    expect(page.locator("#parameters")).to_have_text("about 2,700,000 parameters")
    size.select_option("tiny")
    page.get_by_label("Layers").fill("1")
    expect(size).to_have_value("custom")
    for name, wrong, right in (("heads", "3", "2"), ("steps", "0", "2")):
        field = page.locator(f"[name={name}]")
        page.locator("fieldset details").evaluate("details => { details.open = true }")
        field.fill(wrong)
        press(page, "Start")
        assert field.evaluate("field => field.validationMessage")
        expect(page.locator("html")).to_have_attribute("data-state", "idle")
        field.fill(right)
    press(page, "Start")
    state(page, "training", STEPPED)
    expect(size).to_be_disabled()
    state(page, "done", STEPPED)
    expect(page.locator("#adapter")).to_contain_text(re.compile(r"1\d,\d{3} parameters"))
    page.get_by_text("The model's source").click()
    page.locator("#model-code .cm-content").press("Control+End")
    page.keyboard.type("nope")
    press(page, "Apply and train")
    expect(page.locator("#model-wrong")).to_have_text(
        re.compile(r"Line \d+: NameError: name 'nope' is not defined"), timeout=LOADED
    )
    press(page, "Original")
    press(page, "Apply and train")
    state(page, "done", STEPPED)
    expect(page.locator("#model-wrong")).to_be_hidden()
