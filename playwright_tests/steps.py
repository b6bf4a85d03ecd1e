"""What tests of the Train tab do and wait for."""

from playwright.sync_api import Page, expect

LOADED, STEPPED = 90_000, 90_000  # milliseconds for Python to load, and for a first step, on a busy machine
TINY = "?layers=1&heads=2&width=16&context=16&batch=4&rate=0.01"

# How much of the page moved by itself, as browsers count it.
SHIFTS = """globalThis.shifted = 0;
const add = (list) => list.getEntries().forEach((entry) => (shifted += entry.hadRecentInput ? 0 : entry.value));
new PerformanceObserver(add).observe({ type: "layout-shift", buffered: true });"""


def begin(page: Page, address: str) -> None:
    """Opens a page and waits until it could train."""
    page.goto(address)
    state(page, "idle", LOADED)


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


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).click()


def pause(page: Page) -> int:
    """Pauses, and returns how many steps are done."""
    press(page, "Pause")
    state(page, "paused", STEPPED)
    return steps_done(page)
