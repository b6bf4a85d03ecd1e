"""The Editor tab: programs run, show what they print and what goes wrong, and can be stopped."""

import re

from playwright.sync_api import Page, expect

from playwright_tests.conftest import photograph
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
# What scrolls inside the output, which scrolls itself in both directions.
SCROLLERS = "all => all.filter(one => /auto|scroll/.test(getComputedStyle(one).overflow)).map(one => one.outerHTML)"
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


DAY_ONE = """\
import os
import sys
import helper
os.environ["STEPS"] = "3"
name = input("Your name? ")
print("\\x1b[31mred\\x1b[0m", name, helper.VALUE)
for n in range(3):
    print(f"\\r{n} of 3", end="", file=sys.stderr)
"""
TORCH = """\
import torch
from torch import nn
from pywebgpu.display import Live

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Linear(3, 1).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
x = torch.rand(64, 3, device=device)
y = x.sum(dim=1, keepdim=True)
with Live("A line through points") as live:
    for _ in range(25):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        live.log(loss=loss.item())
print(device, "learnt" if loss.item() < 1 else loss.item())
"""
WRONG_SHAPE = "import pywebgpu as torch\ntorch.ones(2, 3) @ torch.ones(2)\n"
ABSENT = "import scipy\n"


def test_editor_runs_day_one_programs(page: Page, address: str, troubles: list[str]) -> None:
    """Questions, colours, progress, several files, names to choose from, tracebacks, missing packages, drawings."""
    output = page.locator("#output")
    page.route("https://cdn.jsdelivr.net/**", lambda route: route.abort())
    page.on("dialog", lambda dialog: dialog.accept("helper.py"))
    page.goto(f"{address}#editor")
    finish(page, LOADED)
    press(page, "New file")
    page.locator(".cm-content").fill("VALUE = 'from a file'")
    press(page, "editor.py")
    run(page, DAY_ONE)
    page.get_by_label("Answer").fill("Ada")
    page.get_by_label("Answer").press("Enter")
    expect(output).to_contain_text("Ada from a file")
    expect(output.locator(".ansi-red")).to_have_text("red")
    expect(output).to_contain_text("2 of 3")
    expect(output).not_to_contain_text("1 of 3")
    finish(page)

    page.locator(".cm-content").fill("import pywebgpu as torch\n")
    page.locator(".cm-content").press("Control+End")
    page.keyboard.type("torch.nn.functional.cross_ent")
    expect(page.locator(".cm-tooltip-autocomplete")).to_contain_text("cross_entropy", timeout=STEPPED)

    run(page, WRONG_SHAPE)
    expect(output).to_contain_text('File "editor.py", line 2')
    assert len(output.inner_text().splitlines()) < 12
    run(page, ABSENT)
    expect(output).to_contain_text("serve --pyodide FOLDER", timeout=STEPPED)
    expect(output).to_contain_text("ModuleNotFoundError")
    finish(page)
    run(page, TORCH)
    expect(output).to_contain_text("cuda learnt", timeout=STEPPED)
    expect(output.get_by_role("img")).to_be_visible()
    finish(page)
    photograph(page, "5-pasted-script")
    troubles.clear()  # The packages that could not be fetched.

    page.goto(f"{address}#gallery")
    expect(page.locator(".piece")).to_have_count(8)
    page.get_by_role("link", name=re.compile("^Digits")).click()
    expect(page.locator(".cm-content")).to_contain_text("A convolutional network", ignore_case=True)
    press(page, "Clear output")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#editor-status")).to_have_text(re.compile("Waiting for you"), timeout=STEPPED)
    expect(output).to_contain_text("This is a")
    before = output.locator(".shown").last.inner_html()
    board = page.locator(".board")
    board.click(position={"x": 60, "y": 120})
    changed = "before => [...document.querySelectorAll('.shown')].at(-1).innerHTML !== before"
    page.wait_for_function(changed, arg=before)
    before = output.locator(".shown").last.inner_html()
    board.focus()
    for key in ("Delete", "ArrowUp", "Shift+ArrowDown", "Shift+ArrowDown", "Space"):
        page.keyboard.press(key)
    page.wait_for_function(changed, arg=before)
    photograph(page, "6-drawn")
    press(page, "Stop")
    finish(page, 10_000)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


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
    examples = page.get_by_label("Examples")
    expect(examples.locator("option")).to_have_count(1 + 10)
    examples.select_option("kernels")
    expect(page.locator(".cm-content")).to_contain_text("what each kernel reads")
    press(page, "Run")
    expect(page.locator("#output")).to_contain_text("step 4: loss 0.", timeout=STEPPED)
    expect(page.locator("#output")).to_contain_text("dispatches", timeout=STEPPED)
    finish(page)
    photograph(page, "7-kernels")
    assert page.locator("#output *").evaluate_all(SCROLLERS) == []
    examples.select_option("boundary")
    expect(page).to_have_url(re.compile("#gallery/boundary"))
    finish(page)
