"""The Chat tab: a language model from a file, kept, and what it answers."""

import hashlib
import math
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from playwright_tests.conftest import photograph, violations
from playwright_tests.steps import LOADED, STEPPED
from pywebgpu.io import gguf
from pywebgpu.models.chat import Chat
from tests import tiny_chat

ROOM = 100  # tokens, which the first answer fills


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_chat.write(tmp_path_factory.mktemp("models") / "tiny.gguf", room=ROOM)


def _status(page: Page, text: str | re.Pattern[str], timeout: float = STEPPED) -> None:
    expect(page.locator("#chat-status")).to_contain_text(text, timeout=timeout)


def _say(page: Page, text: str) -> str:
    page.get_by_label("Message").fill(text)
    page.get_by_label("Message").press("Enter")
    _status(page, "on the GPU")
    answer: str = page.locator("#chat-log .assistant").last.text_content() or ""
    return answer


def test_it_answers_from_a_file_and_keeps_it(page: Page, address: str, model: Path) -> None:
    expected = "".join(Chat.from_file(model, "cpu").reply("Hi!"))
    page.goto(f"{address}#chat")
    page.get_by_label("A file of this device").set_input_files(model)
    count = sum(math.prod(entry.shape) for entry in gguf.File(model).entries.values())
    _status(page, f"Tiny: {count:,} parameters", LOADED)
    assert _say(page, "Hi!") == expected
    photograph(page, "chat")
    assert not violations(page)
    page.get_by_label("Message").fill("More?")
    page.get_by_label("Message").press("Enter")
    _status(page, f"there is room for {ROOM}")
    page.get_by_role("button", name="Begin anew").click()
    assert _say(page, "Hi!") == expected
    kept = page.locator("#chat .kept-models li")
    expect(kept).to_contain_text("tiny.gguf")
    expect(kept).to_contain_text(hashlib.sha256(model.read_bytes()).hexdigest())
    page.reload()
    kept.get_by_role("button", name="Open").click()
    _status(page, "Tiny", LOADED)
    assert _say(page, "Hi!") == expected
    kept.get_by_role("button", name="Delete").click()
    expect(kept).to_have_count(0)


def test_an_answer_is_stopped(page: Page, address: str, tmp_path: Path) -> None:
    page.goto(f"{address}#chat")
    page.get_by_label("Keep it in this browser").uncheck()
    page.get_by_label("A file of this device").set_input_files(tiny_chat.write(tmp_path / "long.gguf", room=2048))
    _status(page, "Tiny", LOADED)
    page.get_by_label("Message").fill("Hi!")
    page.get_by_role("button", name="Send").click()
    _status(page, "tokens/s")
    page.get_by_role("button", name="Stop").click()
    _status(page, re.compile(r"^([1-9]|[1-9]\d|[1-4]\d\d) tokens, .* on the GPU"))  # Whole it would have 512.


def test_what_is_no_model_is_told(page: Page, address: str, tmp_path: Path) -> None:
    page.goto(f"{address}#chat")
    (tmp_path / "wrong.gguf").write_bytes(b"GGUF" + bytes(40))
    page.get_by_label("Keep it in this browser").uncheck()
    page.get_by_label("A file of this device").set_input_files(tmp_path / "wrong.gguf")
    _status(page, "version 0", LOADED)
    expect(page.get_by_role("button", name="Send")).to_be_disabled()


def test_a_kept_model_needs_no_network(browser: Browser, address: str, model: Path) -> None:
    expected = "".join(Chat.from_file(model, "cpu").reply("Hi!"))
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{address}#chat")
    page.get_by_label("A file of this device").set_input_files(model)
    _status(page, "Tiny", LOADED)
    page.wait_for_function("'kept' in document.documentElement.dataset", timeout=LOADED)
    context.set_offline(True)
    page.reload()
    page.locator("#chat .kept-models li").get_by_role("button", name="Open").click()
    _status(page, "Tiny", LOADED)
    assert _say(page, "Hi!") == expected
    for tab in ("Fine-tune", "Search"):
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tabpanel", name=tab).get_by_label("or an address")).to_be_visible()
    context.close()
