/** The Editor tab: CodeMirror, a worker that runs what is written, and a button that stops it. */

import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";

import { canSuspend } from "./environment.mjs";
import { atFrame, button, element, share, startWorker } from "./page.mjs";
import { packed, unpacked } from "./sharing.mjs";

const PATIENCE = 2000; // milliseconds after which a program that does not stop is ended with its Python
const KEPT = 200_000; // characters of output
const SIGINT = 2;
const EXAMPLE = `import pywebgpu as torch
from pywebgpu import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

for step in range(200):
    x = torch.rand(64, 2) * 2 - 1
    target = (x[:, :1] * x[:, 1:] > 0).float()  # Do both coordinates have the same sign?
    loss = nn.functional.binary_cross_entropy_with_logits(model(x), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step:3}: loss {loss.item():.3f}")

model(torch.tensor([[0.5, 0.5], [0.5, -0.5]])).sigmoid().tolist()
`;
/** What only waits by the way is awaited where Python cannot be suspended. */
const example = canSuspend ? EXAMPLE : EXAMPLE.replace("loss.item()", "await loss.item_async()").replace(/^(model.*)tolist/m, "await $1tolist_async");

const asked = new URLSearchParams(location.search).get("program");
const KEPT_PROGRAM = "program"; // in this browser's storage
const begun = (asked && (await unpacked(asked).catch(() => ""))) || localStorage.getItem(KEPT_PROGRAM) || example;
const output = element("output", HTMLPreElement);
const status = element("editor-status", HTMLElement);
/** @type {Worker | null} */
let worker = null;
/** @type {Uint8Array | null} */
let interrupts = null;
let isReady = false;
let isRunning = false;
/** @type {string | null} what runs as soon as Python is there */
let wanted = null;
let ending = 0;
let waiting = "";

element("code", HTMLElement).replaceChildren();
const view = new EditorView({
  parent: element("code", HTMLElement),
  state: EditorState.create({
    doc: begun,
    extensions: [
      lineNumbers(),
      history(),
      drawSelection(),
      indentOnInput(),
      bracketMatching(),
      closeBrackets(),
      highlightActiveLine(),
      indentUnit.of("    "),
      python(),
      syntaxHighlighting(classHighlighter),
      keymap.of([{ key: "Mod-Enter", run: () => (run(), true) }, ...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, indentWithTab]),
      EditorView.updateListener.of(({ docChanged, state }) => {
        if (docChanged) localStorage.setItem(KEPT_PROGRAM, state.doc.toString());
      }),
      EditorView.contentAttributes.of({ "aria-label": "Program in Python", tabindex: "0" }),
    ],
  }),
});

element("await", HTMLElement).hidden = canSuspend;
button("run").addEventListener("click", run);
button("stop").addEventListener("click", stop);
button("example").addEventListener("click", () => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: example } }));
button("share-program").addEventListener("click", async () => {
  const link = new URL(location.pathname, location.origin);
  link.searchParams.set("program", await packed(view.state.doc.toString()));
  link.hash = "editor";
  await share(link);
});
button("clear").addEventListener("click", () => {
  waiting = "";
  output.textContent = "";
});
begin();

const write = atFrame(() => {
  const atEnd = output.scrollHeight - output.scrollTop - output.clientHeight < 40;
  output.append(waiting);
  waiting = "";
  const all = output.textContent ?? "";
  if (all.length > KEPT) output.textContent = `…\n${all.slice(-KEPT / 2)}`;
  if (atEnd) output.scrollTop = output.scrollHeight;
});

/** Starts a worker; the page can be interrupted only where memory may be shared. */
function begin() {
  isReady = false;
  worker = startWorker("editing", hear);
  interrupts = globalThis.crossOriginIsolated ? new Uint8Array(new SharedArrayBuffer(1)) : null;
  show("Loading Python …");
}

function run() {
  if (isRunning || wanted !== null) return;
  wanted = view.state.doc.toString();
  if (!worker) begin();
  else if (isReady) start();
  else show("Loading Python …");
}

function start() {
  if (wanted === null) return;
  if (interrupts) interrupts[0] = 0;
  worker?.postMessage({ do: "run", source: wanted, ...(interrupts && { interrupts }) });
  wanted = null;
  isRunning = true;
  show("Running …");
}

function stop() {
  if (!isRunning) {
    wanted = null;
    show(isReady ? "Stopped" : "Loading Python …");
    return;
  }
  show("Stopping …");
  if (interrupts) {
    interrupts[0] = SIGINT;
    clearTimeout(ending);
    ending = setTimeout(restart, PATIENCE);
  } else {
    restart();
  }
}

/** Ends Python itself. */
function restart() {
  worker?.terminate();
  isRunning = false;
  say("\nstopped; Python starts anew\n");
  begin();
}

/** @param {any} message */
function hear(message) {
  if (message.is === "output") say(message.text);
  else if (message.is === "ready") {
    isReady = true;
    show("Ready");
    start();
  } else if (message.is === "finished") {
    clearTimeout(ending);
    isRunning = false;
    show("Ready");
  } else if (message.is === "broken") {
    clearTimeout(ending);
    worker?.terminate();
    worker = wanted = null;
    isRunning = isReady = false;
    say(`${message.text}\n`);
    show("Python could not be started; Run tries again");
  }
}

/** @param {string} text */
function say(text) {
  waiting += text;
  write();
}

/** @param {string} text */
function show(text) {
  status.textContent = text;
  button("run").disabled = isRunning || wanted !== null;
  button("stop").disabled = !isRunning && wanted === null;
}
