"""The Chat tab: a language model from a file, kept, from an address that breaks off, and what it answers."""

import math
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

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
    kept = page.locator("#chat-models li")
    expect(kept).to_contain_text("tiny.gguf")
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


@pytest.fixture
def breaking(model: Path) -> Iterator[tuple[str, list[str]]]:
    """A server of the model whose first answer breaks off in the middle, and the ranges that it was asked for."""
    data, asked = model.read_bytes(), list[str]()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.headers.get("Range", ""))
            start = int(asked[-1].removeprefix("bytes=").removesuffix("-") or 0)
            self.send_response(206 if start else 200)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Content-Length", str(len(data) - start))
            self.end_headers()
            self.wfile.write(data[start:] if start else data[: len(data) // 2])
            self.wfile.flush()
            time.sleep(0 if start else 1)  # What came is read before the connection breaks.

        def do_OPTIONS(self) -> None:
            self.send_response(204)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Access-Control-Allow-Headers", "Range")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/far/tiny.gguf", asked
    server.shutdown()
    server.server_close()


def test_a_download_goes_on_where_it_broke_off(
    page: Page, address: str, model: Path, breaking: tuple[str, list[str]], troubles: list[str]
) -> None:
    source, asked = breaking
    page.goto(f"{address}#chat")
    page.get_by_label("or an address").fill(source)
    page.get_by_role("button", name="Download").click()
    expect(page.locator("#chat-models li")).to_contain_text("so far", timeout=LOADED)
    _status(page, "what came is kept")
    page.get_by_role("button", name="Download").click()
    _status(page, "Tiny")
    assert asked[0] == ""
    assert 0 < int(asked[-1].removeprefix("bytes=").removesuffix("-")) <= model.stat().st_size // 2
    troubles.clear()  # The answer that broke off.
