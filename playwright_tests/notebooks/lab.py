"""JupyterLab in a page, as a person uses it: cells are written and run one after the other."""

from playwright.sync_api import Locator, Page, expect

STARTS = 120_000  # ms: Pyodide and IPython, on a busy machine
RUNS = 60_000  # ms: a cell
TAKEN = 5_000  # ms: until a cell is queued


class Lab:
    """A notebook of a JupyterLab."""

    def __init__(self, page: Page, address: str) -> None:
        self.page, self._address = page, address

    @property
    def cells(self) -> Locator:
        return self.page.locator(".jp-Notebook .jp-CodeCell")

    def new(self) -> None:
        """Opens an empty notebook from the launcher."""
        self.page.goto(f"{self._address}/lab/index.html")
        self.page.locator(".jp-LauncherCard[data-category=Notebook]").first.click()
        self._wait()

    def open(self, name: str) -> None:
        self.page.goto(f"{self._address}/lab/index.html?path={name}")
        self._wait()

    def _wait(self) -> None:
        """Until there is a kernel: JupyterLab drops a cell that is run before, and says nothing."""
        self.cells.first.wait_for()
        kernel = self.page.locator(".jp-Notebook-ExecutionIndicator")
        expect(kernel).to_have_attribute("data-status", "idle", timeout=STARTS)

    def run(self, source: str) -> int:
        """Writes the last cell, which is empty, and runs it; another comes behind it. Returns its number, from 1."""
        number = self.cells.count()
        self.cells.last.locator(".cm-content").click()
        self.page.keyboard.insert_text(source)
        self.page.keyboard.press("Shift+Enter")
        expect(self.cells).to_have_count(number + 1)
        try:
            expect(self._prompt(number)).not_to_have_text("[ ]:", timeout=TAKEN)
        except AssertionError:  # Dropped: a kernel says that it is idle before it takes cells.
            self.cells.nth(number - 1).locator(".cm-content").click()
            self.page.keyboard.press("Shift+Enter")
        return number

    def _prompt(self, number: int) -> Locator:
        return self.cells.nth(number - 1).locator(".jp-InputPrompt")

    def shown(self, number: int, timeout: float = RUNS) -> Locator:
        """What the cell shows, once it ran."""
        expect(self._prompt(number)).to_have_text(f"[{number}]:", timeout=timeout)
        return self.cells.nth(number - 1).locator(".jp-OutputArea").first

    def run_all(self) -> None:
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
