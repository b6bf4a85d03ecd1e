"""What goes wrong around the page: a lost GPU, a Python that cannot be suspended, a download that fails."""

import re

from playwright.sync_api import Page, Route, expect

from playwright_tests.steps import LOADED, STEPPED, TINY, begin, press, shown_loss, state, steps_done, wait_for_step
from playwright_tests.test_editor import finish, run

# The device of the worker, so that the test can destroy it.
TAKE_DEVICE = """() => {
  const request = GPUAdapter.prototype.requestDevice;
  GPUAdapter.prototype.requestDevice = async function (...given) {
    return (globalThis.device = await request.apply(this, given));
  };
}"""
NO_JSPI = "delete WebAssembly.Suspending; delete WebAssembly.promising;\n"


def test_a_lost_gpu_is_told_and_the_run_goes_on(page: Page, address: str, troubles: list[str]) -> None:
    with page.expect_worker() as starting:
        page.goto(f"{address}{TINY}&steps=2000")
    starting.value.evaluate(TAKE_DEVICE)
    state(page, "idle", LOADED)
    press(page, "Start")
    wait_for_step(page, 1)
    starting.value.evaluate("device.destroy()")
    expect(page.locator("#trouble")).to_contain_text("Start begins anew", timeout=STEPPED)
    state(page, "idle", STEPPED)

    page.get_by_label("Every … steps").fill("10")
    press(page, "Start")
    page.locator("#samples article").first.wait_for(timeout=STEPPED)
    wait_for_step(page, 12)
    starting.value.evaluate("device.destroy()")
    state(page, "lost", STEPPED)
    told = page.locator("#trouble").inner_text()
    copied = int(re.findall(r"A copy of the run after (\d+) steps is left: Resume goes on from there", told)[0])
    assert copied % 10 == 0
    with page.expect_download() as download:
        press(page, "Download")
    assert download.value.suggested_filename == f"chargpt-{copied}.safetensors"
    press(page, "Resume")
    state(page, "training", STEPPED)
    expect(page.locator("#trouble")).to_be_hidden()
    wait_for_step(page, copied + 5)
    assert any("the device is gone" in trouble for trouble in troubles)
    troubles.clear()


def test_all_works_where_python_cannot_be_suspended(page: Page, address: str) -> None:
    """As in a browser without JSPI: training awaits; a program is told to."""

    def without_jspi(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=NO_JSPI + answer.text())

    page.add_init_script(NO_JSPI)
    page.route("**/worker.mjs", without_jspi)
    begin(page, f"{address}{TINY}&steps=40")
    press(page, "Start")
    wait_for_step(page, 2)
    first = shown_loss(page)
    state(page, "done", STEPPED)
    assert shown_loss(page) < first
    expect(page.locator("#samples p").first).to_contain_text("The ", timeout=STEPPED)
    with page.expect_download() as download:
        press(page, "Download")
    page.locator("#checkpoint").set_input_files(download.value.path())
    state(page, "done", STEPPED)
    assert steps_done(page) == 40
    expect(page.locator("#trouble")).to_be_hidden()

    page.get_by_role("tab", name="Gallery").click()
    expect(page.locator("#pieces")).to_contain_text("stop where they first read")
    page.get_by_role("tab", name="Editor").click()
    expect(page.locator("#await")).to_be_visible()
    finish(page, LOADED)
    run(page, "x = torch.arange(4.0)\nx.sum().item()\n".replace("x =", "import pywebgpu as torch\nx ="))
    expect(page.locator("#output")).to_contain_text("use: await x.item_async()", timeout=STEPPED)
    finish(page)
    run(page, "import pywebgpu as torch\nawait torch.arange(4.0).sum().item_async()\n")
    expect(page.locator("#output")).to_contain_text("6.0", timeout=STEPPED)
    finish(page)


def test_a_failed_download_is_told_and_can_be_tried_again(page: Page, address: str, troubles: list[str]) -> None:
    page.route("**/pyodide.asm.wasm", lambda route: route.abort())
    page.goto(f"{address}{TINY}")
    expect(page.locator("#trouble")).to_contain_text("Python cannot be loaded from", timeout=LOADED)
    state(page, "broken", LOADED)
    page.unroute_all()
    page.route("**/training.gz", lambda route: route.abort())  # Without the snapshot it takes longer.
    press(page, "Try again")
    state(page, "idle", LOADED)
    expect(page.locator("#trouble")).to_be_hidden()
    troubles.clear()
