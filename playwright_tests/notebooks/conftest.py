"""What these tests share: folders that are served as they are, and a page that says what it asked of others."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route

from tests import wheel

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "test-results"
NO_JSPI = "delete WebAssembly.Suspending; delete WebAssembly.promising;\n"
TYPES = {".mjs": "text/javascript", ".wasm": "application/wasm"}


class Files(SimpleHTTPRequestHandler):
    """A plain server of files, as any static host is."""

    protocol_version = "HTTP/1.1"
    extensions_map = SimpleHTTPRequestHandler.extensions_map | TYPES

    is_isolated = False

    def end_headers(self) -> None:
        if self.is_isolated:
            self.send_header("Cross-Origin-Opener-Policy", "same-origin")
            self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def log_message(self, *rest: object) -> None:
        """Says nothing."""


class IsolatedFiles(Files):
    """The same for pages that may share memory with their workers."""

    is_isolated = True


@pytest.fixture(scope="session")
def serve() -> Iterator[Callable[..., str]]:
    """Serves a folder, and says where."""
    servers = []

    def start(folder: Path, kind: type[Files] = Files) -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(kind, directory=str(folder)))
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://localhost:{server.server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, as users get it."""
    return wheel.build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def pages(browser: Browser) -> Callable[[str], AbstractContextManager[Page]]:
    """Opens a page of its own, which may ask nothing of other machines. A screenshot of its end is in test-results/."""

    @contextmanager
    def opened(name: str) -> Iterator[Page]:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        outside: list[str] = []

        def refuse(route: Route) -> None:
            outside.append(route.request.url)
            route.abort()

        context.route(re.compile(r"^https?://(?!localhost[:/])"), refuse)
        page = context.new_page()
        page.set_default_timeout(60_000)
        yield page
        RESULTS.mkdir(exist_ok=True)
        page.screenshot(path=RESULTS / f"{name}.png")
        context.close()
        assert outside == []

    return opened


def without_jspi(page: Page) -> None:
    """From now on each Python of the page starts as in a browser that cannot suspend it."""

    def answer(route: Route) -> None:
        found = route.fetch()
        route.fulfill(response=found, body=NO_JSPI + found.text())

    page.context.route(re.compile(r"/pyodide\.m?js$"), answer)


@pytest.fixture
def page(pages: Callable[[str], AbstractContextManager[Page]], request: pytest.FixtureRequest) -> Iterator[Page]:
    with pages(request.node.name) as found:
        yield found
