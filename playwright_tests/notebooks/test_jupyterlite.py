"""The site of `make lite` in a browser: from an empty notebook to a trained model, and notebooks that come with it."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from playwright_tests.notebooks.lab import STARTS, Lab
from tools import notebook_site

ROOT = Path(__file__).parents[2]
MISSING = "" if importlib.util.find_spec("jupyterlite_pyodide_kernel") else "no JupyterLite: make lite installs it"
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


@pytest.fixture(scope="module")
def address(built: Path, tmp_path_factory: pytest.TempPathFactory, serve: Callable[[Path], str]) -> str:
    if MISSING:
        pytest.skip(MISSING)
    site = tmp_path_factory.mktemp("lite") / "site"
    notebook_site.build(built, site, ROOT / "build" / "kernel")
    return serve(site)


def test_an_empty_notebook_becomes_a_trained_model_in_four_cells(page: Page, address: str) -> None:
    lab = Lab(page, address)
    lab.new()
    for number, source in enumerate(CELLS, 1):
        lab.write(number, source)
    expect(lab.done(1, STARTS)).to_contain_text("webgpu")
    expect(lab.done(2)).to_contain_text("Sequential")
    expect(lab.done(3).get_by_role("img", name="loss over steps")).to_be_visible()
    expect(lab.done(4)).to_have_text("right")


@pytest.mark.parametrize("name", ["2-train-a-gpt", "6-port-a-script"])
def test_notebooks_that_come_with_it_run(page: Page, address: str, name: str) -> None:
    lab = Lab(page, address)
    lab.open(f"{name}.ipynb")
    last = lab.cells.count()
    lab.run_all()
    lab.done(last, STARTS)
    assert not page.locator('[data-mime-type="application/vnd.jupyter.stderr"]').all_inner_texts()
