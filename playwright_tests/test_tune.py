"""The Fine-tune tab: an adapter learns a text, writes before and after, is stopped, downloaded and removed."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Download, Page, expect

from playwright_tests.conftest import photograph, violations
from playwright_tests.steps import LOADED, STEPPED
from pywebgpu.models import lora
from pywebgpu.models.llama import Llama
from tests import tiny_chat

TEXT = "the cat sat on the mat. " * 40


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_chat.write(tmp_path_factory.mktemp("models") / "tiny.gguf")


def _status(page: Page, text: str | re.Pattern[str], timeout: float = STEPPED) -> None:
    expect(page.locator("#tune-status")).to_contain_text(text, timeout=timeout)


def test_an_adapter_learns_a_text(page: Page, address: str, model: Path, tmp_path: Path) -> None:
    page.goto(f"{address}#tune")
    tab = page.locator("#tune")
    tab.get_by_label("A file of this device").set_input_files(model)
    _status(page, "parameters", LOADED)
    (tmp_path / "own.txt").write_text(TEXT, "utf-8")
    tab.get_by_label("A file in UTF-8").set_input_files(tmp_path / "own.txt")
    expect(tab.get_by_label("or paste it")).to_have_value(TEXT)
    for label, value in {"Steps": "30", "Tokens a step": "16", "Learning rate": "0.05"}.items():
        tab.get_by_label(label).fill(value)
    tab.get_by_role("button", name="Start").click()
    _status(page, "Step ")
    first = page.locator("#tune-described").inner_text()
    _status(page, "and an adapter of")
    losses = [float(text.split(": ")[1].rstrip(".")) for text in (first, page.locator("#tune-described").inner_text())]
    assert losses[1] < losses[0] - 0.5
    before, after = (page.locator(f"#tune-{when}").inner_text() for when in ("before", "after"))
    assert before.startswith("The")
    assert after.startswith("The")
    assert before != after
    photograph(page, "tune")
    assert not violations(page)

    files = list[Path]()
    page.on("download", lambda download: files.append(_saved(download, tmp_path)))
    tab.get_by_role("button", name="Download the adapter").click()
    page.wait_for_timeout(1000)
    assert {path.name for path in files} == {lora.WEIGHTS, lora.CONFIG}
    assert json.loads((tmp_path / lora.CONFIG).read_text())["r"] == 8
    here = Llama.from_file(model, "cpu")
    lora.load(here, tmp_path, "cpu")
    assert any(layer.lora_B.weight.any() for _, layer in lora.layers(here))

    tab.get_by_role("button", name="Remove it").click()
    expect(tab.get_by_role("button", name="Remove it")).to_be_disabled()
    tab.get_by_label("Steps").fill("100000")
    tab.get_by_role("button", name="Start").click()
    _status(page, "Step ")
    assert page.locator("#tune-before").inner_text() == before
    tab.get_by_role("button", name="Stop").click()
    _status(page, "and an adapter of")
    page.get_by_role("tab", name="Chat").click()
    page.get_by_label("Message").fill("Hi!")
    page.get_by_label("Message").press("Enter")
    expect(page.locator("#chat-status")).to_contain_text("on the GPU", timeout=STEPPED)


def _saved(download: Download, folder: Path) -> Path:
    path = folder / download.suggested_filename
    download.save_as(path)
    return path


def test_what_cannot_be_learnt_is_told(page: Page, address: str, model: Path) -> None:
    page.goto(f"{address}#tune")
    tab = page.locator("#tune")
    tab.get_by_label("A file of this device").set_input_files(model)
    _status(page, "parameters", LOADED)
    tab.get_by_label("or paste it").fill("Too short.")
    tab.get_by_role("button", name="Start").click()
    _status(page, "a row needs 65")
