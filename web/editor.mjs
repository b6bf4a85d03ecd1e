/** The Editor tab: CodeMirror, a worker that runs what is written, and a button that stops it. */

import { autocompletion } from "@codemirror/autocomplete";
import { EditorView, keymap } from "@codemirror/view";

import { canSuspend } from "./environment.mjs";
import { Files } from "./files.mjs";
import { pieces, source } from "./gallery.mjs";
import { keepLoaded } from "./keeping.mjs";
import { button, element, share, startWorker } from "./page.mjs";
import { programState, programView } from "./program_view.mjs";
import { packed, unpacked } from "./sharing.mjs";
import { Terminal } from "./terminal.mjs";
import { question, widget } from "./widgets.mjs";

const BESIDE = 1100; // pixels from which on the output stands beside the program: see editor.css
const PATIENCE = 2000; // milliseconds after which a program that does not stop is ended with its Python
const SHARED = "shared.py"; // what a link brings
const THINKING = 1500; // milliseconds that Python may take to complete a name
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

const output = new Terminal(element("output", HTMLElement));
const status = element("editor-status", HTMLElement);
/** @type {Worker | null} */
let worker = null;
/** @type {Uint8Array | null} */
let interrupts = null;
let isReady = false;
let isRunning = false;
let isWaiting = false; // for somebody, and for nothing that could be interrupted
/** @type {string | null} what runs as soon as Python is there */
let wanted = null;
/** @type {Promise<void>} the program of the gallery that was asked for last is there */
let opened = Promise.resolve();
let ending = 0;
/** @type {(found: { start: number, names: string[] }) => void} */
let completed = () => undefined;

const view = programView(element("code", HTMLElement));
const files = new Files(element("files", HTMLElement), example, () => view.setState(stateOf(files.text)));
files.show();
view.setState(stateOf(files.text));
const asked = new URLSearchParams(location.search).get("program");
if (asked) await unpacked(asked).then((text) => files.open(SHARED, text)).catch(() => undefined);

/** @param {string} doc */
function stateOf(doc) {
  return programState(doc, "Program in Python", [
    autocompletion({ override: [complete] }),
    keymap.of([{ key: "Mod-Enter", run: () => (run(), true) }]),
    EditorView.updateListener.of(({ docChanged, state }) => {
      if (docChanged) files.edit(state.doc.toString());
    }),
  ]);
}

/** The names that Python knows for what is written, while it runs nothing. @param {import("@codemirror/autocomplete").CompletionContext} context */
async function complete(context) {
  const before = context.matchBefore(/[\w.]*/)?.text ?? "";
  if (!isReady || isRunning || (!before && !context.explicit) || /^\d/.test(before)) return null;
  const answer = new Promise((/** @type {(found: { start: number, names: string[] } | null) => void} */ resolve) => {
    completed = resolve;
    setTimeout(resolve, THINKING, null);
  });
  worker?.postMessage({ do: "complete", before, source: view.state.doc.toString() });
  const found = await answer;
  if (!found?.names.length) return null;
  return { from: context.pos - before.length + found.start, options: found.names.map((label) => ({ label })), validFor: /^\w*$/ };
}

/** Opens a program of the gallery; what is known under its name and edited stays. @param {string} name */
export function openPiece(name) {
  return (opened = openFile(name));
}

/** @param {string} name */
async function openFile(name) {
  const file = `${name}.py`;
  try {
    files.open(file, files.texts[file] === undefined ? await source(name) : undefined);
  } catch (error) {
    show(error instanceof Error ? error.message : String(error));
  }
}

element("await", HTMLElement).hidden = canSuspend;
button("run").addEventListener("click", run);
button("stop").addEventListener("click", stop);
button("add-file").addEventListener("click", () => files.add());
button("drop-file").addEventListener("click", () => files.drop());
button("share-program").addEventListener("click", async () => {
  const link = new URL(location.pathname, location.origin);
  link.searchParams.set("program", await packed(view.state.doc.toString()));
  link.hash = "editor";
  await share(link);
});
button("clear").addEventListener("click", () => output.clear());
const examples = element("examples", HTMLSelectElement);
void pieces()
  .then((all) => examples.append(...all.map(({ name, title }) => new Option(title, name))))
  .catch(console.info);
examples.addEventListener("change", () => {
  if (examples.value) location.hash = `gallery/${examples.value}`;
  examples.value = "";
});
examples.disabled = button("clear").disabled = button("share-program").disabled = false; // until now nobody listened
begin();

/** Starts a worker; the page can be interrupted only where memory may be shared. */
function begin() {
  isReady = false;
  worker = startWorker("editing", hear);
  interrupts = globalThis.crossOriginIsolated ? new Uint8Array(new SharedArrayBuffer(1)) : null;
  show("Loading Python …");
}

async function run() {
  await opened; // Who chooses an example and presses Run at once means the example.
  if (isRunning || wanted !== null) return;
  wanted = files.current;
  if (!worker) begin();
  else if (isReady) start();
  else show("Loading Python …");
}

function start() {
  if (wanted === null) return;
  if (interrupts) interrupts[0] = 0;
  finish();
  worker?.postMessage({ do: "run", name: wanted, files: files.texts, ...(interrupts && { interrupts }) });
  wanted = null;
  isRunning = true;
  show("Running …");
  if (innerWidth < BESIDE) element("output-heading", HTMLElement).scrollIntoView();
}

function stop() {
  if (!isRunning) {
    wanted = null;
    show(isReady ? "Stopped" : "Loading Python …");
    return;
  }
  show("Stopping …");
  worker?.postMessage({ do: "stop" });
  if (interrupts || isWaiting) {
    if (interrupts && !isWaiting) interrupts[0] = SIGINT;
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
  finish();
  say("\nstopped; Python starts anew\n");
  begin();
}

/** @param {any} message */
function hear(message) {
  if (message.is === "output") say(message.text);
  else if (message.is === "shown") output.show(message.id, message.html);
  else if (message.is === "widget") output.add(widget(message, (value) => tell({ do: "set", id: message.id, value })));
  else if (message.is === "asked") ask();
  else if (message.is === "waiting") {
    isWaiting = true;
    show("Waiting for you; Stop ends it");
  }
  else if (message.is === "completions") completed(message);
  else if (message.is === "loaded") void keepLoaded(message.addresses).catch(console.info);
  else if (message.is === "loading") show(`Loading ${message.what} …`);
  else if (message.is === "ready") {
    isReady = true;
    show("Ready");
    start();
  } else if (message.is === "finished") {
    clearTimeout(ending);
    isRunning = false;
    finish();
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
  output.say(text);
}

/** @param {{ do: string, [name: string]: unknown }} message to the program */
function tell(message) {
  worker?.postMessage(message);
  isWaiting = false;
  if (isRunning) show("Running …");
}

/** A line of text for input(). */
function ask() {
  const form = question((text) => tell({ do: "answer", text }));
  isWaiting = true;
  output.add(form);
  form.querySelector("input")?.focus();
  show("Waiting for your answer");
}

/** Nobody listens any longer to what a program has asked for. */
function finish() {
  isWaiting = false;
  for (const one of output.element.querySelectorAll(".widget")) {
    if (one instanceof HTMLFormElement) one.remove();
    else one.toggleAttribute("inert", true);
  }
}

/** @param {string} text */
function show(text) {
  status.textContent = text;
  button("run").disabled = isRunning || wanted !== null;
  button("stop").disabled = !isRunning && wanted === null;
}
