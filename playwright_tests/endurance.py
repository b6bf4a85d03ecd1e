"""Trains for long in the page, and holds that no memory grows: the GPU's, Python's, the worker's and the page's own.

python -m playwright_tests.endurance [STEPS]
"""

import sys
import time
from collections.abc import Sequence
from typing import Any

from playwright.sync_api import Page, Worker

from playwright_tests.steps import STEPPED, TINY, press, shown_loss, state, steps_done, wait_for_step
from pywebgpu.hosts import chromium, site
from tests.hosts import memory

SAMPLES = 30  # moments at which memory is looked at
LISTEN = """() => {
  const send = self.postMessage;
  self.postMessage = (message, options) => {
    if (message.is === "memory") self.told = message;
    send.call(self, message, options);
  };
}"""
WATCH = """() => {
  globalThis.longest = 0;
  const watch = (list) => list.getEntries().forEach(({ duration }) => (longest = Math.max(longest, duration)));
  new PerformanceObserver(watch).observe({ type: "longtask" });
}"""


def sample(page: Page, worker: Worker) -> dict[str, Any]:
    told = worker.evaluate("self.told")
    measured = page.evaluate("performance.measureUserAgentSpecificMemory()")
    heaps = {"Window": 0, "DedicatedWorkerGlobalScope": 0}
    for part in measured["breakdown"]:
        for place in part["attribution"]:
            heaps[place["scope"]] = heaps.get(place["scope"], 0) + part["bytes"]
    return {
        "step": steps_done(page),
        "GPU": told["device"]["device_bytes"],
        "tensors": told["device"]["live_bytes"],
        "WebAssembly": told["heap"],
        "JavaScript": heaps["DedicatedWorkerGlobalScope"],
        "page": heaps["Window"],
    }


def main(arguments: Sequence[str]) -> bool:
    steps = int(arguments[0]) if arguments else memory.STEPS
    with (
        chromium.served(site.Site(site.find_folders(cdn=False))) as address,
        chromium.launched(software=True) as browser,
    ):
        page = browser.new_page()
        with page.expect_worker() as starting:
            page.goto(f"{address}{TINY}&steps={steps}")
        worker = starting.value
        worker.evaluate(LISTEN)
        state(page, "idle", STEPPED)
        press(page, "Start")
        wait_for_step(page, 5)
        page.evaluate(WATCH)
        first, start, samples = shown_loss(page), time.monotonic(), []
        for at in range(1, SAMPLES + 1):
            wait_for_step(page, at * steps // SAMPLES)
            samples.append(sample(page, worker))
        seconds, longest = time.monotonic() - start, page.evaluate("longest")
        print(f"{steps} steps in {seconds:.0f} s, loss {first:.3f} to {shown_loss(page):.3f}")
    for name, (early, late) in memory.growth(samples).items():
        print(f"  {name:12} {early / 1e6:10.3f} MB in the first half, {late / 1e6:10.3f} MB in the second")
    own = [sample["page"] / 1e6 for sample in samples]
    early, late = min(own[: len(own) // 2]), min(own[len(own) // 2 :])
    print(f"  {'the page':12} {early:10.3f} MB in the first half, {late:10.3f} MB in the second")
    print(f"  longest task of the page's thread: {longest:.0f} ms")
    for line in memory.grown(samples):
        print(f"FAILED {line}")
    return not memory.grown(samples)


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
