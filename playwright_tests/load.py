"""From opening the page to the first training step: how long it takes, and what it downloads.

python -m playwright_tests.load [QUERY]
"""

import sys
from collections.abc import Sequence

from playwright.sync_api import BrowserContext, Page, Request

from playwright_tests.steps import wait_for_step
from pywebgpu.hosts import chromium, site

SIZE = "layers=2&heads=2&width=32&context=32&batch=8"  # the page's own choice where the adapter is software
PYODIDE = f"/modules/pyodide@{site.PYODIDE}/"


class Traffic:
    """What a page, with its workers, downloads from now on."""

    def __init__(self, page: Page) -> None:
        self._requests: list[Request] = []
        page.on("requestfinished", lambda request: self._requests.append(request))

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes by address, as they went over the wire, headers included."""
        found: dict[str, int] = {}
        for request in self._requests:
            sizes = request.sizes()
            bytes_here = sizes["responseBodySize"] + sizes["responseHeadersSize"]
            found[request.url] = found.get(request.url, 0) + bytes_here
        return found

    @property
    def besides_pyodide(self) -> int:
        return sum(size for address, size in self.sizes.items() if PYODIDE not in address)


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
    with (
        chromium.served(site.Site(site.find_folders(cdn=False))) as address,
        chromium.launched(software=True) as browser,
    ):
        context = browser.new_context()
        for cache in ("cold", "warm"):
            seconds, traffic = first_step(context, f"{address}?{query}&start")
            largest = max(traffic.sizes.items(), key=lambda item: PYODIDE not in item[0] and item[1])
            print(
                f"{cache} cache: {seconds:.1f} s from page load to the first step; "
                f"{sum(traffic.sizes.values()) / 1e6:.2f} MB downloaded, {traffic.besides_pyodide / 1e3:.1f} kB "
                f"of them besides Pyodide (most: {largest[0].rpartition('/')[2]}, {largest[1] / 1e3:.1f} kB)",
                flush=True,
            )
            context.pages[-1].close()


if __name__ == "__main__":
    main(sys.argv[1:])
