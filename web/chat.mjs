/** The Chat tab: a language model from a file, an address, or what this browser keeps; it answers word by word. */

import { lack } from "./environment.mjs";
import { keepLoaded } from "./keeping.mjs";
import { dropModel, keptModel, keptModels } from "./model_files.mjs";
import { button, element, input, size, startWorker } from "./page.mjs";

const CONTENT = `
  <div class="bar" id="chat-bar">
    <span id="chat-status" role="status">A model is a GGUF file of the Llama family: SmolLM2, Llama, Mistral, Qwen.</span>
  </div>
  <div id="chat-panel">
    <form id="chat-model">
      <fieldset id="chat-source">
        <legend>Model</legend>
        <label>A file of this device <input type="file" id="chat-file" accept=".gguf" /></label>
        <label class="choice"><input type="checkbox" id="chat-keep" checked /> Keep it in this browser</label>
        <label>or an address <input type="url" id="chat-address" placeholder="https://…/model.gguf" autocomplete="off" /></label>
        <button type="submit" id="chat-fetch">Download</button>
        <div id="chat-kept" hidden>
          <p>Kept in this browser:</p>
          <ul id="chat-models"></ul>
        </div>
      </fieldset>
      <fieldset id="chat-settings">
        <legend>Answers</legend>
        <label>Who the model is <textarea id="chat-system" rows="2"></textarea></label>
        <div class="numbers">
          <label>Temperature <input type="number" id="chat-temperature" min="0" max="5" step="0.05" value="0" required /></label>
          <label>Top p <input type="number" id="chat-top-p" min="0.05" max="1" step="0.05" value="1" required /></label>
        </div>
        <button type="button" id="chat-begin" disabled>Begin anew</button>
      </fieldset>
    </form>
    <div id="chat-talk">
      <div id="chat-log" role="log" aria-label="Conversation" tabindex="0"></div>
      <form id="chat-say" class="bar">
        <textarea id="chat-text" rows="2" aria-label="Message" placeholder="Message" disabled></textarea>
        <button type="submit" id="chat-send" class="primary" disabled>Send</button>
      </form>
    </div>
  </div>`;

element("chat", HTMLElement).innerHTML = CONTENT;
const log = element("chat-log", HTMLElement);
const text = element("chat-text", HTMLTextAreaElement);
/** @type {Worker | null} */
let worker = null;
/** Messages for a worker whose Python still loads. @type {Record<string, unknown>[]} */
let waiting = [];
let isReady = false;
/** What the worker does now, which Stop ends. @type {"" | "opening" | "saying"} */
let doing = "";
let isOpen = false;
/** The answer that is written. @type {HTMLElement | null} */
let answer = null;

element("chat-model", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault();
  const address = input("chat-address").value.trim();
  if (address) open({ do: "fetch", address }, `Downloading ${address} …`);
});
input("chat-file").addEventListener("change", () => {
  const file = input("chat-file").files?.[0];
  if (file) openFile(file);
});
element("chat", HTMLElement).addEventListener("dragover", (event) => event.preventDefault());
element("chat", HTMLElement).addEventListener("drop", (event) => {
  event.preventDefault();
  const file = event.dataTransfer?.files[0];
  if (file && !doing) openFile(file);
});
element("chat-say", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault();
  if (doing) ask({ do: "stop" });
  else if (text.value.trim()) say(text.value.trim());
});
text.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  if (!doing && text.value.trim()) say(text.value.trim());
});
button("chat-begin").addEventListener("click", begin);

/** @param {File} file */
function openFile(file) {
  open({ do: input("chat-keep").checked ? "keep" : "open", blob: file }, `Opening ${file.name} …`);
}

/** @param {Record<string, unknown>} command @param {string} words */
function open(command, words) {
  if (doing) return;
  work("opening");
  isOpen = false;
  status(words);
  ask(command);
}

/** To the worker, which starts with the first message. @param {Record<string, unknown>} command */
function ask(command) {
  worker ??= startWorker("chatting", hear);
  if (isReady) worker.postMessage(command);
  else waiting.push(command);
}

function begin() {
  log.replaceChildren();
  const [temperature, topP] = [input("chat-temperature"), input("chat-top-p")];
  if (!temperature.reportValidity() || !topP.reportValidity()) return;
  const sampling = { temperature: temperature.valueAsNumber, top_p: topP.valueAsNumber };
  ask({ do: "begin", system: element("chat-system", HTMLTextAreaElement).value.trim(), sampling });
  text.focus();
}

/** @param {string} words */
function say(words) {
  append("user", words);
  answer = append("assistant", "");
  text.value = "";
  work("saying");
  status("Reading …");
  ask({ do: "say", text: words });
}

/** @param {string} role @param {string} words */
function append(role, words) {
  const paragraph = Object.assign(document.createElement("p"), { className: role, textContent: words });
  log.append(paragraph);
  log.scrollTop = log.scrollHeight;
  return paragraph;
}

/** @param {typeof doing} what */
function work(what) {
  doing = what;
  const send = button("chat-send");
  send.textContent = what ? "Stop" : "Send";
  send.disabled = text.disabled = !what && !isOpen;
  element("chat-source", HTMLFieldSetElement).disabled = Boolean(what);
  button("chat-begin").disabled = Boolean(what) || !isOpen;
  element("chat-panel", HTMLElement).classList.toggle("has-model", isOpen);
}

/** @param {string} words */
function status(words) {
  element("chat-status", HTMLElement).textContent = words;
}

/** @param {{ tokens: number, seconds: number }} message */
const speed = ({ tokens, seconds }) => `${tokens} tokens, ${(tokens / Math.max(seconds, 1e-9)).toFixed(1)} tokens/s`;

/** @param {any} message */
function hear(message) {
  if (message.is === "ready") {
    isReady = true;
    for (const command of waiting) worker?.postMessage(command);
    waiting = [];
  } else if (message.is === "loaded") void keepLoaded(message.addresses).catch(console.info);
  else if (message.is === "loading") status(`Loading ${message.what} …`);
  else if (message.is === "fetching") {
    status(`${size(message.came)}${message.total ? ` of ${size(message.total)}` : ""}`);
  } else if (message.is === "kept") void showKept();
  else if (message.is === "opening") status(`Opening ${message.name} …`);
  else if (message.is === "opened") {
    isOpen = true;
    work("");
    begin();
    status(`${message.name}: ${message.parameters.toLocaleString("en")} parameters, ${size(message.memory)} on the GPU`);
  } else if (message.is === "piece" && answer) {
    const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    answer.textContent += message.text;
    if (isAtEnd) log.scrollTop = log.scrollHeight;
    status(speed(message));
  } else if (message.is === "said") {
    work("");
    status(`${speed(message)}, ${size(message.memory)} on the GPU`);
    text.focus();
  } else if (message.is === "failed" || message.is === "broken") {
    if (message.is === "broken") {
      worker?.terminate();
      [worker, isReady, isOpen, waiting] = [null, false, false, []];
    }
    if (answer && !answer.textContent) answer.remove();
    work("");
    status(message.text);
  }
}

/** Lists what is kept. */
async function showKept() {
  const kept = await keptModels().catch(() => []);
  element("chat-kept", HTMLElement).hidden = !kept.length;
  element("chat-models", HTMLElement).replaceChildren(...kept.map(row));
}

/** @param {import("./model_files.mjs").Kept} kept */
function row({ name, size: bytes, isWhole }) {
  const item = document.createElement("li");
  const words = Object.assign(document.createElement("span"), {
    textContent: `${name}, ${size(bytes)}${isWhole ? "" : " so far: download it again to go on"}`,
  });
  const use = Object.assign(document.createElement("button"), { type: "button", textContent: "Open", hidden: !isWhole });
  use.addEventListener("click", async () => open({ do: "open", blob: await keptModel(name) }, `Opening ${name} …`));
  const drop = Object.assign(document.createElement("button"), { type: "button", textContent: "Delete" });
  drop.addEventListener("click", async () => {
    await dropModel(name);
    await showKept();
  });
  item.append(words, use, drop);
  return item;
}

void showKept();
void lack().then((missing) => {
  if (missing) element("chat-panel", HTMLElement).hidden = true;
  if (missing) status(`A language model needs WebGPU: ${missing.title}.`);
});
