"""The Search tab: a text encoder from a folder and from an address, texts from files and pasted, ranked answers."""

import http.server
import re
import threading
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from playwright_tests.conftest import photograph, violations
from playwright_tests.steps import LOADED, STEPPED
from pywebgpu.models.embedding import TextEncoder
from pywebgpu.models.search import Search, split
from tests import tiny_encoder

PARAGRAPHS = ["The cat sat on the mat.", "The dog ran on the street.", "Bread needs flour, water and salt."]
PASTED = "A dog sat on a cat."
QUESTION = "Where does the dog ran?"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder.write(tmp_path_factory.mktemp("encoders") / "tiny")


def _status(page: Page, text: str | re.Pattern[str], timeout: float = STEPPED) -> None:
    expect(page.locator("#search-status")).to_contain_text(text, timeout=timeout)


def _ask(page: Page, question: str, count: int) -> list[str]:
    page.get_by_label("Question").fill(question)
    page.get_by_label("Question").press("Enter")
    _status(page, f"The nearest of {count} passages")
    return page.locator("#search-answers p").all_inner_texts()


def test_answers_are_ranked(page: Page, address: str, encoder: Path, tmp_path: Path) -> None:
    passages = [*split(Path("own.txt"), "\n\n".join(PARAGRAPHS)), *split(Path("pasted"), PASTED)]
    expected = [
        passage.text for _, passage in Search(TextEncoder.from_file(encoder, "cpu"), passages).nearest(QUESTION)
    ]
    page.goto(f"{address}#search")
    tab = page.locator("#search")
    tab.get_by_label("A folder of this device").set_input_files(encoder)
    _status(page, "tiny: ", LOADED)
    tab.get_by_label("and what is pasted").fill(PASTED)
    (tmp_path / "own.txt").write_text("\n\n".join(PARAGRAPHS), "utf-8")
    (tmp_path / "more.html").write_text("<title>No</title><p>Salt and water.</p>", "utf-8")
    tab.get_by_label("Files in UTF-8").set_input_files([tmp_path / "own.txt", tmp_path / "more.html"])
    assert _ask(page, "Salt and water.", 5)[0] == "Salt and water."
    photograph(page, "search")
    assert not violations(page)
    tab.get_by_role("button", name="Remove more.html").click()
    assert _ask(page, QUESTION, 4) == expected
    expect(page.locator("#search-answers h2", has_text="own.txt, line 3")).to_have_count(1)

    page.reload()
    tab.locator(".kept-models li", has_text="tiny").get_by_role("button", name="Open").click()
    _status(page, "tiny: ", LOADED)
    tab.get_by_label("Question").fill("cat")
    tab.get_by_label("Question").press("Enter")
    _status(page, "there is no text")


class Handler(http.server.SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        self.send_header("Access-Control-Allow-Origin", "*")
        super().end_headers()

    def log_message(self, *_: object) -> None: ...


def test_a_model_comes_from_an_address(page: Page, address: str, encoder: Path, troubles: list[str]) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=encoder.parent))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page.goto(f"{address}#search")
    page.get_by_label("or an address").fill(f"http://127.0.0.1:{server.server_port}/tiny")
    page.get_by_role("button", name="Download").click()
    _status(page, "tiny: ", LOADED)
    page.get_by_label("and what is pasted").fill(PASTED)
    assert _ask(page, QUESTION, 1) == [PASTED]
    server.shutdown()
    server.server_close()
    troubles[:] = [trouble for trouble in troubles if "404" not in trouble]  # Files that a model may lack.
