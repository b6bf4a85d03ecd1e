"""An exported language model: a folder on any web server answers, and no Python is on the page."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from playwright_tests.conftest import photograph, violations
from playwright_tests.steps import LOADED, STEPPED
from playwright_tests.test_export import served
from pywebgpu.devices import open_device
from pywebgpu.exporter.chat import export_chat
from pywebgpu.io import gguf
from pywebgpu.kernels.kernel import Limits
from pywebgpu.kernels.target import Target
from pywebgpu.models.chat import Chat
from pywebgpu.models.tokenizer import Tokenizer
from tests import devices, tiny_chat

TEXTS = [
    "Hi!",
    "ab aab abab",
    "I'LL say it\u2019s 12,345.678 \u00b2\u2460",
    " \n\n\t x\u00a0y\u2003z \ufeff\u0085 end  ",
    "\u00e9\u0301 \u4f60\u597d \U0001f600\U0001f468\u200d\U0001f469",
    "<|im_start|>user<|im_end|><|im_end",
]
ENCODE = """async (texts) => {
  const { BytePairs } = await import("./byte_pairs.mjs");
  const tokenizer = new BytePairs(await (await fetch("tokenizer.json")).json());
  return texts.map((text) => tokenizer.encode(text));
}"""


@pytest.mark.skipif(bool(devices.why_no_webgpu()), reason=devices.why_no_webgpu())
def test_an_exported_model_answers(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As PYWEBGPU_PORTABLE=1: the page's adapter is another one, which may bind fewer buffers.
    monkeypatch.setattr(open_device("webgpu"), "target", Target(wgsl=True, limits=Limits()))
    model = tiny_chat.write(tmp_path / "tiny.gguf", room=128)
    talk = Chat.from_file(model, "cpu", length=128)
    expected = "".join(talk.reply("Hi!"))
    exported = export_chat(model, tmp_path / "out", length=128)
    assert exported.n_bytes < 400_000  # The cache is not in the file.
    with served(tmp_path / "out") as address:
        page.goto(address)
        expect(page.get_by_role("status")).to_have_text("Ready", timeout=LOADED)
        tokenizer = Tokenizer.from_file(gguf.File(model))
        assert page.evaluate(ENCODE, TEXTS) == [tokenizer.encode(text) for text in TEXTS]
        for _ in range(2):
            page.get_by_label("Message").fill("Hi!")
            page.get_by_label("Message").press("Enter")
            send = page.get_by_role("button", name="Send")
            expect(send).to_be_visible(timeout=STEPPED)
            expect(page.get_by_role("status")).to_contain_text("tokens/s", timeout=STEPPED)
            expect(page.locator(".assistant")).to_have_text(expected, timeout=STEPPED, use_inner_text=False)
            photograph(page, "exported-chat")
            page.get_by_role("button", name="Begin anew").click()
        assert not violations(page)
        page.get_by_label("Temperature").fill("1")
        page.get_by_label("Top p").fill("0.9")
        page.get_by_label("Message").fill("Hi!")
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_role("status")).to_contain_text("tokens/s", timeout=STEPPED)
