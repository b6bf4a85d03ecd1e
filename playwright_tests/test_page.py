"""The page itself: what it says where something is missing, how it fits a phone, and how keys move through it."""

import pytest
from playwright.sync_api import Browser, Page, expect

from playwright_tests.conftest import photograph
from playwright_tests.load import Traffic
from playwright_tests.steps import LOADED, SHIFTS, STEPPED, TINY, begin, press, state
from playwright_tests.test_editor import finish, run
from pywebgpu.hosts import site

MISSING = {
    "webgpu": ("delete Navigator.prototype.gpu", "WebGPU is missing in this browser", "Chrome"),
    "adapter": ("navigator.gpu.requestAdapter = async () => null", "WebGPU finds no GPU here", "graphics acceleration"),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("what", MISSING)
def test_page_says_what_is_missing(page: Page, address: str, what: str, troubles: list[str]) -> None:
    """It would train on the CPU, but for NumPy, which these tests' Pyodide lacks: then nothing asks to train."""
    script, title, advice = MISSING[what]
    page.add_init_script(script)
    page.goto(address)
    expect(page.get_by_role("heading", name=title)).to_be_visible()
    expect(page.locator("#missing")).to_contain_text(advice)
    expect(page.locator("#samples")).to_contain_text("It wrote elsewhere: a model trained before")
    state(page, "absent", LOADED)
    expect(page.locator("#trouble")).to_contain_text("it trains by NumPy")
    expect(page.get_by_role("button", name="Start")).to_be_hidden()
    expect(page.get_by_role("group")).to_have_count(0)
    expect(page.locator("#size")).to_have_value("tiny")  # what a CPU can train
    page.get_by_role("tab", name="My GPU").click()
    expect(page.locator("#measure-status")).to_have_text(f"There is nothing to test: {title}.")
    expect(page.get_by_role("button", name="Test my GPU")).to_be_hidden()
    troubles[:] = [one for one in troubles if "numpy" not in one and "404" not in one]


TABS = {
    "train": "#samples",
    "gallery": ".piece",
    "editor": ".cm-content",
    "chat": "#chat-log",
    "tune": "#tune-plot",
    "search": "#search-question",
    "gpu": "#measure",
}


@pytest.mark.parametrize(("tab", "shown"), TABS.items())
def test_page_fits_a_phone(page: Page, address: str, tab: str, shown: str) -> None:
    """Each tab opens from its top, and nothing moves while it loads."""
    page.add_init_script(SHIFTS)
    page.set_viewport_size({"width": 320, "height": 700})
    page.goto(f"{address}#{tab}")
    expect(page.locator(shown).first).to_be_visible()
    expect(page.get_by_role("tab", name="My GPU")).to_be_in_viewport()
    expect(page.locator("[role=status]:visible", has_text="Loading")).to_have_count(0, timeout=LOADED)
    assert page.evaluate("shifted") < 0.05
    page.get_by_label("Your own").evaluate("radio => { radio.click() }")
    widths = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert widths[0] <= widths[1]
    if tab == "gpu":
        card = page.locator("#card")
        press(page, "Test my GPU")
        expect(page.locator("#measure-status")).to_have_text("Done", timeout=LOADED)
        for rate in ("steps/s", "GFLOP/s", "GB/s"):
            assert rate in str(card.get_attribute("aria-label"))
        known = {
            "jaxjs": "jax-js",
            "tfjs": "TensorFlow.js",
            "ort": "ONNX Runtime Web",
        }  # where make peers installed them
        for folder in site.PEERS.glob("*/node_modules"):
            assert f"product in float32, {known[folder.parent.name]}" in str(card.get_attribute("aria-label"))
        photograph(page, "7-my-gpu")


def test_keys_reach_everything(page: Page, address: str) -> None:
    page.goto(address)
    page.keyboard.press("Tab")
    expect(page.get_by_role("tab", name="Train")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Gallery")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Editor")).to_be_focused()
    expect(page.get_by_role("tabpanel", name="Editor")).to_be_visible()
    expect(page.locator(".cm-content")).to_be_visible()
    page.locator(".cm-content").focus()
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(page.locator("#output")).to_be_focused()


def test_a_keyboard_is_enough_to_train(page: Page, address: str) -> None:
    begin(page, f"{address}{TINY}&steps=2000")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Start")).to_be_focused()
    page.keyboard.press("Enter")
    state(page, "training", STEPPED)
    expect(page.get_by_role("button", name="Pause")).to_be_focused()
    page.keyboard.press("Space")
    state(page, "paused", STEPPED)
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Reset")).to_be_focused()
    page.keyboard.press("Space")
    state(page, "idle", STEPPED)
    page.keyboard.press("Tab")
    expect(page.get_by_label("Verse, made by a grammar")).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Tab")
    expect(page.get_by_label("A file in UTF-8")).to_be_focused()


def test_controls_have_names(page: Page, address: str) -> None:
    page.goto(address)
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("#train input, #train select, #train textarea, button")]
            .filter((field) => !field.labels?.length && !field.textContent.trim() && !field.ariaLabel)
            .map((field) => field.outerHTML)"""
    )
    assert nameless == []


def test_page_is_isolated_and_quiet(page: Page, address: str) -> None:
    """Python can be interrupted, nothing comes from elsewhere, it is little, and nothing moves while it loads."""
    page.add_init_script(SHIFTS)
    traffic = Traffic(page)
    begin(page, address)
    assert page.evaluate("globalThis.crossOriginIsolated")
    assert [url for url in traffic.sizes if not url.startswith((address, "data:", "blob:"))] == []
    assert any(url.endswith("/training.gz") for url in traffic.sizes)
    assert not any(url.endswith("/rest.xz") for url in traffic.sizes)  # Training imports nothing of it.
    assert traffic.besides_python < 300_000
    assert page.evaluate("shifted") < 0.05
    expect(page.locator("#samples")).to_contain_text("It wrote elsewhere")  # This adapter is a slow one.
    written = page.evaluate(
        """async () => {
          const { kept } = JSON.parse(document.getElementById("config").text);
          return (await import("./first.mjs")).write(kept["player.mjs"], () => undefined, 5);
        }"""
    )
    assert len(written) == len("The ") + 5
    expect(page.locator("#samples")).to_contain_text("Writing now, on this GPU")


def test_second_visit_needs_no_network(browser: Browser, address: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    begin(page, f"{address}{TINY}&steps=2")
    kept = "'kept' in document.documentElement.dataset"
    page.wait_for_function(kept, timeout=LOADED)
    page.goto(f"{address}#editor")
    page.reload()
    page.wait_for_function(kept, timeout=LOADED)
    context.set_offline(True)
    page.reload()
    finish(page, LOADED)
    run(page, "import pywebgpu as torch\nprint('sum', torch.arange(4.0).sum().item())")
    expect(page.locator("#output")).to_contain_text("sum 6.0", timeout=STEPPED)
    begin(page, f"{address}{TINY}&steps=3")
    press(page, "Start")
    state(page, "done", STEPPED)
    context.close()
