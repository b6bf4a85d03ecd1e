"""The site of `make lite` in a browser: from an empty notebook to a trained model, and notebooks that come with it."""

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from playwright_tests.notebooks.conftest import without_jspi
from playwright_tests.notebooks.lab import STARTS, Lab
from tests import notebooks
from tools import notebook_site

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "test-results"
MISSING = "" if importlib.util.find_spec("jupyterlite_pyodide_kernel") else "no JupyterLite: make notebooks installs it"
CELLS = (
    """import pywebgpu as torch

torch.get_default_device()""",
    """points = torch.randn(256, 2)
inside = (points.square().sum(1) < 1).long()
model = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
model""",
    """from pywebgpu.display import Live

optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
with Live("in the circle, or not") as live:
    for _ in range(60):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(points), inside)
        loss.backward()
        optimizer.step()
        live.log(loss=loss)""",
    """right = (model(points).argmax(1) == inside).float().mean().item()
print("right" if right > 0.9 else right)""",
)

WIDGETS = """import ipywidgets
import pywebgpu as torch

values, label = torch.ones(3), ipywidgets.Label("nothing yet")


def read(button):
    label.value = f"read {values.sum().item()}"


async def read_async(button):
    label.value = f"awaited {await values.sum().item_async()}"


def plain(button):
    try:
        read(button)
    except RuntimeError as error:
        label.value = str(error)


wrapped, asynchronous = torch.webgpu.handler(read), torch.webgpu.handler(read_async)
buttons = []
for name, handler in {"plain": plain, "wrapped": wrapped, "async": asynchronous}.items():
    buttons.append(ipywidgets.Button(description=name))
    buttons[-1].on_click(handler)
ipywidgets.VBox([*buttons, label])"""
# A step keeps nothing of those before: of a chain as long as the loop the kernels would be written before it stops.
STOPPED = """import itertools

import pywebgpu as torch
from pywebgpu.display import stoppable

steps = stoppable(itertools.count())
{loop} _ in steps:
    counted = torch.ones(3) * steps.step
print("stopped", steps.stopped and steps.step == await counted[0].item_async())"""


# Where Python cannot wait, each with what it shows.
AWAITED = {
    "import pywebgpu as torch\n\ntorch.ones(3)": "await torch.webgpu.init()",
    "await torch.webgpu.init()\nx = torch.ones(3) * 2\nx": "not read: await x.cpu_async()",
    "await x.tolist_async()": "[2.0, 2.0, 2.0]",
}


@pytest.fixture(scope="module")
def address(built: Path, tmp_path_factory: pytest.TempPathFactory, serve: Callable[[Path], str]) -> str:
    if MISSING:
        pytest.skip(MISSING)
    site = tmp_path_factory.mktemp("lite") / "site"
    notebook_site.build(built, site, ROOT / "build" / "kernel")
    return serve(site)


@pytest.fixture(scope="module")
def lab(pages: Callable[[str], AbstractContextManager[Page]], address: str) -> Iterator[Lab]:
    """An empty notebook, to which tests add cells."""
    with pages("jupyterlite") as page:
        found = Lab(page, address)
        found.new()
        yield found


def test_an_empty_notebook_becomes_a_trained_model_in_four_cells(lab: Lab) -> None:
    device, model, plot, right = (lab.run(source) for source in CELLS)
    expect(lab.shown(device, STARTS)).to_contain_text("webgpu")
    expect(lab.shown(model)).to_contain_text("Sequential")
    expect(lab.shown(plot).get_by_role("img", name="loss over steps")).to_be_visible()
    expect(lab.shown(right)).to_contain_text("right")
    lab.page.screenshot(path=RESULTS / "jupyterlite-four-cells.png")


def test_handlers_of_widgets_say_what_to_do_and_wait_when_wrapped(lab: Lab) -> None:
    buttons = lab.shown(lab.run(WIDGETS), STARTS)
    advice = "handler(function), or make the handler async"
    for name, said in {"plain": advice, "wrapped": "read 3.0", "async": "awaited 3.0"}.items():
        buttons.get_by_role("button", name=name).click()
        expect(buttons.locator(".widget-label").last).to_contain_text(said)


@pytest.mark.parametrize("loop", ["for", "async for"])
def test_a_stop_button_ends_a_loop_between_two_steps(lab: Lab, loop: str) -> None:
    cell = lab.run(STOPPED.format(loop=loop))
    lab.page.get_by_role("button", name="Stop", exact=True).click(timeout=STARTS)
    expect(lab.shown(cell)).to_contain_text("stopped True")


def test_without_jspi_cells_say_what_to_await(page: Page, address: str) -> None:
    without_jspi(page)
    lab = Lab(page, address)
    lab.new()
    for source, said in AWAITED.items():
        expect(lab.shown(lab.run(source), STARTS)).to_contain_text(said)


@pytest.mark.parametrize("name", ["2-train-a-gpt", "6-port-a-script"])
def test_notebooks_that_come_with_it_run(page: Page, address: str, name: str) -> None:
    lab = Lab(page, address)
    lab.open(f"{name}.ipynb")
    lab.run_all()
    lab.shown(len(notebooks.cells(ROOT / "notebooks" / f"{name}.ipynb")), STARTS)
    said = page.locator('[data-mime-type="application/vnd.jupyter.stderr"]')
    assert said.all_inner_texts() == []
