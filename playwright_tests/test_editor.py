"""The Editor tab: programs run, show what they print and what goes wrong, and can be stopped."""

import re

from playwright.sync_api import Page, expect

from playwright_tests.steps import LOADED, STEPPED, press

TENSORS = """\
import pywebgpu as torch
x = torch.arange(6.0).reshape(2, 3).requires_grad_()
(x * x).sum().backward()
print("grad", x.grad.tolist())
torch.get_default_device()
"""
WRONG = "def f():\n    return 1 / 0\n\nf()\n"
ENDLESS = "n = 0\nprint('begun')\nwhile True:\n    n += 1\n"
WAITING = "import asyncio\nprint('asleep')\nawait asyncio.sleep(1000)\n"


def run(page: Page, program: str) -> None:
    page.get_by_role("button", name="Clear output").click()
    page.locator(".cm-content").fill(program)
    page.locator(".cm-content").press("Control+Enter")


def finish(page: Page, timeout: float = STEPPED) -> None:
    expect(page.locator("#editor-status")).to_have_text("Ready", timeout=timeout)


def test_editor_runs_programs_and_stops_them(page: Page, address: str) -> None:
    output = page.locator("#output")
    page.goto(f"{address}#editor")
    finish(page, LOADED)

    run(page, TENSORS)
    expect(output).to_contain_text("grad [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]", timeout=STEPPED)
    expect(output).to_contain_text("webgpu")
    finish(page)

    run(page, WRONG)
    expect(output).to_contain_text("ZeroDivisionError: division by zero")
    expect(output).to_contain_text('File "editor.py", line 2, in f')
    expect(output).not_to_contain_text("_pyodide")
    finish(page)

    run(page, ENDLESS)
    expect(output).to_contain_text("begun")
    page.get_by_role("button", name="Stop").click()
    expect(output).to_contain_text("stopped")
    finish(page, 1500)  # interrupted, not started anew

    run(page, WAITING)
    expect(output).to_contain_text("asleep")
    page.get_by_role("button", name="Stop").click()
    expect(output).to_contain_text("stopped", timeout=10_000)
    finish(page, LOADED)


def test_example_runs(page: Page, address: str) -> None:
    """A program comes along in a link, and runs when it is told to; what was written is there after a reload."""
    page.goto(f"{address}#editor")
    page.locator(".cm-content").fill("print('sh\u00e4red')")
    press(page, "Copy link")
    expect(page).to_have_url(re.compile("program="))
    link = page.url
    page.locator(".cm-content").fill("print('kept')")
    page.goto(f"{address}#editor")
    page.reload()
    expect(page.locator(".cm-content")).to_contain_text("kept")
    page.goto(link)
    expect(page.locator(".cm-content")).to_contain_text("sh\u00e4red")
    finish(page, LOADED)
    expect(page.locator("#output")).to_be_empty()
    press(page, "Example")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#output")).to_contain_text("step 180: loss", timeout=STEPPED)
    finish(page)
    expect(page.locator("#output")).to_contain_text("]]")
