/** Programs of these pages run in the editor of the site that the pages are part of: in place, in a frame, or alone. */

import { packed } from "../../sharing.mjs";

const EDITOR = new URL("../../index.html", import.meta.url);

for (const block of document.querySelectorAll("div.highlight-python:not(.still)")) {
  const program = block.querySelector("pre")?.innerText ?? "";
  const bar = Object.assign(document.createElement("div"), { className: "runs" });
  const run = Object.assign(document.createElement("button"), { type: "button", textContent: "Run" });
  const open = Object.assign(document.createElement("a"), { textContent: "Open in the editor", href: EDITOR.href });
  bar.append(run, open);
  block.after(bar);
  void address(program).then((link) => (open.href = link));
  run.addEventListener("click", async () => {
    const frame = document.createElement("iframe");
    frame.title = "An editor with this program";
    frame.src = await address(program);
    run.disabled = true; // The frame has a button of its own, and nothing runs before it is pressed.
    bar.after(frame);
    frame.focus();
  });
}

/** @param {string} program */
async function address(program) {
  const link = new URL(EDITOR);
  link.searchParams.set("program", await packed(program));
  link.hash = "editor";
  return link.href;
}
