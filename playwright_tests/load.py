"""From opening the page to the first training step: how long it takes, and what it downloads.

python -m playwright_tests.load [QUERY]
"""

import os
import sys
from collections.abc import Sequence

from playwright.sync_api import BrowserContext, Page, Request

from playwright_tests.steps import wait_for_step
from pywebgpu.hosts import chromium, site

SIZE = "layers=2&heads=2&width=32&context=32&batch=8"  # the page's own choice where the adapter is software
PYODIDE = f"/modules/pyodide@{site.PYODIDE}/"


class Traffic:
    """What a page, with its workers, downloads from now on. What its service worker has does not count."""

    def __init__(self, page: Page) -> None:
        self._requests: list[Request] = []
        page.context.on("requestfinished", lambda request: self._requests.append(request))

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes by address, as they went over the wire, headers included."""
        found: dict[str, int] = {}
        for request in self._requests:
            answer = request.response()
            if answer is None or answer.from_service_worker:
                continue
            sizes = request.sizes()
            bytes_here = sizes["responseBodySize"] + sizes["responseHeadersSize"]
            found[request.url] = found.get(request.url, 0) + bytes_here
        return found

    @property
    def of_python(self) -> int:
        """Pyodide, or its memory with the library in it."""
        return sum(size for address, size in self.sizes.items() if PYODIDE in address or address.endswith(".gz"))

    @property
    def besides_python(self) -> int:
        """Without the model of the first view."""
        first = sum(size for address, size in self.sizes.items() if "/first/" in address)
        return sum(self.sizes.values()) - self.of_python - first


def first_step(context: BrowserContext, address: str) -> tuple[float, Traffic]:
    """The seconds until the first step of a page that starts at once, and its downloads."""
    page = context.new_page()
    traffic = Traffic(page)
    page.goto(address)
    wait_for_step(page, 1)
    row = page.locator("#adapter div", has_text="Page load to first step").locator("dd")
    return float(row.inner_text(timeout=60_000).removesuffix(" s")), traffic


def main(arguments: Sequence[str]) -> None:
    query = arguments[0] if arguments else SIZE
    pages = site.Site(site.find_folders(cdn=False))
    pages.prepare()
    with chromium.served(pages) as address, chromium.launched(software=True) as browser:
        context = browser.new_context()
        for cache in ("cold", "warm"):
            seconds, traffic = first_step(context, f"{address}?{query}&start")
            print(
                f"{cache} cache: {seconds:.1f} s from page load to the first step; "
                f"{sum(traffic.sizes.values()) / 1e6:.2f} MB downloaded, "
                f"{traffic.besides_python / 1e3:.1f} kB of them besides Python and its snapshot",
                flush=True,
            )
            context.pages[-1].wait_for_function("'kept' in document.documentElement.dataset")
            context.pages[-1].close()


if __name__ == "__main__":
    os.environ["PW_EXPERIMENTAL_SERVICE_WORKER_NETWORK_EVENTS"] = "1"  # What the service worker fetches counts, too.
    main(sys.argv[1:])
