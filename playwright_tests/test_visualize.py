"""The page of `torch.visualize`: kernels are found, drawn larger, and held against another plan's."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import pywebgpu as torch
from playwright_tests.conftest import photograph, violations
from pywebgpu import nn


@pytest.fixture
def address(tmp_path: Path) -> str:
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4)).to("null")
    x = torch.zeros(8, 16, device="null")

    def both() -> None:
        model(x).square().mean().backward()

    file = tmp_path / "page.html"
    torch.visualize({"forward alone": lambda: model(x).square().mean(), "with gradients": both}, file)
    return file.as_uri()


def test_a_plan_can_be_searched_and_compared(page: Page, address: str) -> None:
    page.goto(address)
    chosen = page.locator(".box.picked")
    page.locator("#program").select_option(label=page.locator("option").nth(1).inner_text())
    count = page.locator(".box").count()
    assert count > 3
    page.get_by_role("searchbox").fill("backward Sequential.2")
    expect(page.locator("#hits")).to_contain_text(f"of {count}")
    expect(chosen).to_be_in_viewport()
    first = chosen.get_attribute("data-step")
    page.keyboard.press("Enter")
    expect(chosen).not_to_have_attribute("data-step", str(first))

    width = page.locator("#graph svg").bounding_box()
    page.get_by_role("button", name="Larger").click()
    larger = page.locator("#graph svg").bounding_box()
    assert width is not None
    assert larger is not None
    assert larger["width"] == pytest.approx(1.25 * width["width"], rel=0.01)

    expect(page.locator("#detail h2").first).to_contain_text(f"Step {chosen.get_attribute('data-step')}")
    expect(page.locator("#detail .w-keyword").first).to_be_visible()
    expect(page.locator("#tiles")).to_contain_text("forward alone: ")
    expect(page.locator(".box.differs").first).to_be_attached()
    page.get_by_role("button", name="forward Sequential.0", exact=True).click()
    expect(page.get_by_role("searchbox")).to_have_value("forward Sequential.0")
    assert violations(page) == []
    photograph(page, "8-visualize")
