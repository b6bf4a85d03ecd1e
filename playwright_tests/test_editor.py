"""The Editor tab: programs run, show what they print and what goes wrong, and can be stopped."""

from playwright.sync_api import Page, expect

from playwright_tests.steps import LOADED, STEPPED

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
    page.goto(address)
    page.get_by_role("tab", name="Editor").click()
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#output")).to_contain_text("step 180: loss", timeout=STEPPED)
    finish(page)
    expect(page.locator("#output")).to_contain_text("]]")
