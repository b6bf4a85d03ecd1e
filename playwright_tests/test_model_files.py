"""Models that the page keeps: checked, from addresses whose answers break off, shown and deleted."""

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from playwright_tests.steps import LOADED, STEPPED
from tests import tiny_chat


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_chat.write(tmp_path_factory.mktemp("models") / "tiny.gguf")


@dataclass
class Source:
    """A server of another origin, whose first answer breaks off in the middle; each is of the next of `versions`."""

    data: bytes
    versions: list[str]
    has_length: bool = True
    address: str = ""
    ranges: list[str] = field(default_factory=list)


@pytest.fixture
def serve(model: Path) -> Iterator[Callable[[list[str], bool], Source]]:
    servers = []

    def start(versions: list[str], has_length: bool) -> Source:
        source = Source(model.read_bytes(), versions, has_length)
        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), _handler(source)))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        source.address = f"http://127.0.0.1:{servers[-1].server_port}/far/tiny.gguf"
        return source

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def _handler(source: Source) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            data, is_first = source.data, not source.ranges
            source.ranges.append(self.headers.get("Range", ""))
            start = int(source.ranges[-1].removeprefix("bytes=").removesuffix("-") or 0)
            self.send_response(206 if start else 200)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Access-Control-Expose-Headers", "ETag")
            self.send_header("ETag", source.versions.pop(0))  # Empty is as none.
            name, value = (
                ("Content-Length", str(len(data) - start)) if source.has_length else ("Transfer-Encoding", "chunked")
            )
            self.send_header(name, value)
            self.end_headers()
            part = data[: len(data) // 2] if is_first else data[start:]
            self.wfile.write(part if source.has_length else b"%x\r\n%s\r\n" % (len(part), part))
            if not is_first and not source.has_length:
                self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()
            time.sleep(1 if is_first else 0)  # What came is read before the connection breaks.
            self.close_connection = True

        def log_message(self, *_: object) -> None: ...

    return Handler


def _status(page: Page, text: str, timeout: float = STEPPED) -> None:
    expect(page.locator("#chat-status")).to_contain_text(text, timeout=timeout)


def _download(page: Page, source: str) -> None:
    page.get_by_label("or an address").fill(source)
    page.get_by_role("button", name="Download").click()


# What the origin's file system has of language models.
NAMES = """navigator.storage.getDirectory().then(async (root) => {
  const models = await (await root.getDirectoryHandle("models")).getDirectoryHandle("gguf");
  return Array.fromAsync(models.keys());
})"""
# Keeps a file of an address in a worker without Python. Returns what went wrong, or the bytes that came.
KEEP = """([page, source]) => new Promise((resolve) => {
  const code = `import { keepModel, keptFiles } from "${page}model_files.mjs";
    const request = { kind: "test", name: "tiny", sha256: "", progress: () => true, digest: () => "0",
                      sources: [{ name: "tiny.gguf", address: "${source}" }] };
    keepModel(request).then(async () => postMessage(await (await keptFiles("test", "tiny"))["tiny.gguf"].arrayBuffer()),
                            (error) => postMessage(error.message))`;
  const worker = new Worker(URL.createObjectURL(new Blob([code], { type: "text/javascript" })), { type: "module" });
  worker.onmessage = ({ data }) => {
    worker.terminate();
    resolve(typeof data === "string" ? data : [...new Uint8Array(data)]);
  };
})"""


@pytest.mark.parametrize("has_length", [True, False], ids=["length", "no length"])
@pytest.mark.parametrize(
    ("versions", "ranges"),
    [(['"1"', '"1"'], ["", "rest"]), (['"1"', '"2"', '"2"'], ["", "rest", ""]), (["", ""], ["", ""])],
    ids=["same", "changed", "unknown"],
)
def test_a_download_goes_on_where_it_broke_off(
    page: Page,
    address: str,
    serve: Callable[[list[str], bool], Source],
    versions: list[str],
    ranges: list[str],
    has_length: bool,
    troubles: list[str],
) -> None:
    source = serve([*versions], has_length)
    half = len(source.data) // 2
    page.goto(f"{address}#gallery")
    text = f"ended at {half} of {len(source.data)} bytes" if has_length else f"ended at {half} bytes"
    assert text in page.evaluate(KEEP, [address, source.address])
    assert bytes(page.evaluate(KEEP, [address, source.address])) == source.data
    assert source.ranges == [f"bytes={half}-" if each else "" for each in ranges]
    troubles.clear()  # The answer that broke off.


def test_a_server_of_the_page_says_itself_whether_a_file_is_another(page: Page, address: str, model: Path) -> None:
    data, asked = model.read_bytes(), list[tuple[str | None, str | None]]()

    def answer(route: Route) -> None:
        headers = route.request.headers
        asked.append((headers.get("range"), headers.get("if-range")))
        about = {"Content-Length": str(len(data)), "Last-Modified": "Sat, 01 Jan 2022 00:00:00 GMT"}
        route.fulfill(status=200, body=data[: len(data) // 2] if len(asked) == 1 else data, headers=about)

    page.route("**/near/tiny.gguf", answer)
    page.goto(f"{address}#gallery")
    near = f"{address}near/tiny.gguf"
    assert "what came is kept" in page.evaluate(KEEP, [address, near])
    assert bytes(page.evaluate(KEEP, [address, near])) == data
    assert asked == [(None, None), (f"bytes={len(data) // 2}-", "Sat, 01 Jan 2022 00:00:00 GMT")]


def test_what_came_is_shown_and_deleted(
    page: Page, address: str, serve: Callable[[list[str], bool], Source], troubles: list[str]
) -> None:
    source = serve(['"1"', '"1"'], True)
    page.goto(f"{address}#chat")
    _download(page, source.address)
    kept = page.locator("#chat .kept-models li")
    expect(kept).to_contain_text("so far", timeout=LOADED)
    _status(page, "what came is kept")
    _download(page, source.address)
    _status(page, "Tiny")
    expect(kept).to_contain_text(hashlib.sha256(source.data).hexdigest())
    kept.get_by_role("button", name="Delete").click()
    expect(kept).to_have_count(0)
    assert page.evaluate(NAMES) == []
    troubles.clear()  # The answer that broke off.


def test_a_file_is_compared_with_its_checksum(page: Page, address: str, model: Path) -> None:
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    page.goto(f"{address}#chat")
    page.get_by_label("SHA-256").fill("0" * 64)
    kept = page.locator("#chat .kept-models li")
    for keep in (True, False):
        page.get_by_label("Keep it in this browser").set_checked(keep)
        page.get_by_label("A file of this device").set_input_files(model)
        _status(page, f"its SHA-256 is {digest}, not {'0' * 64}", LOADED)
        expect(kept).to_have_count(0)
        expect(page.get_by_role("button", name="Send")).to_be_disabled()
    page.get_by_label("SHA-256").fill(digest.upper())
    page.get_by_label("A file of this device").set_input_files(model)
    _status(page, "Tiny")
