/** Programs of these pages run in the editor of the site that the pages are part of: in place, in a frame, or alone. */

import { packed } from "../../sharing.mjs";

const EDITOR = new URL("../../index.html", import.meta.url);
const [ALONE, PIECES] = [".highlight-python:not(.still, .piece)", ".highlight-python.piece"];

for (const block of document.querySelectorAll(ALONE)) offer(block, text(block));
// A tutorial shows one program in pieces: it runs as a whole, below the last one.
const pieces = [...document.querySelectorAll(PIECES)];
if (pieces.length) offer(/** @type {Element} */ (pieces.at(-1)), pieces.map(text).join("\n\n"));
const back = { className: "to-page", href: EDITOR.href, textContent: "Train in this browser" };
document.querySelector(".sidebar-brand")?.after(Object.assign(document.createElement("a"), back));

/** @param {Element} block */
function text(block) {
  return block.querySelector("pre")?.innerText ?? "";
}

/** Puts buttons below a block. @param {Element} block @param {string} program */
function offer(block, program) {
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
