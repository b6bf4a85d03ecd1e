/** The Chat tab: a language model from a file, an address, or what this browser keeps; it answers word by word. */

import { lack } from "./environment.mjs";
import { ask, isBusy, opened, stop, watch, words } from "./language.mjs";
import { ModelPicker } from "./model_picker.mjs";
import { button, element, input, size } from "./page.mjs";

const CONTENT = `
  <div class="bar" id="chat-bar">
    <span id="chat-status" role="status">A model is a GGUF file of the Llama family: SmolLM2, Llama, Mistral, Qwen.</span>
  </div>
  <div id="chat-panel" class="panel">
    <form id="chat-model" class="column">
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
/** The answer that is written. @type {HTMLElement | null} */
let answer = null;
/** The next message is the first of a conversation. */
let isNew = true;

const picker = new ModelPicker(element("chat-model", HTMLFormElement), "gguf", (command, text) => {
  status(text);
  ask({ do: "open model", ...command }, hear);
});
element("chat", HTMLElement).addEventListener("dragover", (event) => event.preventDefault());
element("chat", HTMLElement).addEventListener("drop", (event) => {
  event.preventDefault();
  if (event.dataTransfer?.files.length && !isBusy()) picker.openFiles([event.dataTransfer.files[0]]);
});
element("chat-say", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault();
  if (isBusy()) stop();
  else say(text.value.trim());
});
text.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  if (!isBusy()) say(text.value.trim());
});
button("chat-begin").addEventListener("click", begin);
watch((what) => {
  if (what === "model") begin();
  update();
});
update();

/** A conversation from its beginning. */
function begin() {
  log.replaceChildren();
  isNew = true;
  text.focus();
}

/** @param {string} message */
function say(message) {
  const [temperature, topP] = [input("chat-temperature"), input("chat-top-p")];
  if (!message || !temperature.reportValidity() || !topP.reportValidity()) return;
  const settings = { system: element("chat-system", HTMLTextAreaElement).value.trim(), sampling: { temperature: temperature.valueAsNumber, top_p: topP.valueAsNumber } };
  append("user", message);
  answer = append("assistant", "");
  text.value = "";
  status("Reading …");
  ask({ do: "say", tab: "chat", text: message, begin: isNew ? settings : null }, hear);
  isNew = false;
}

/** @param {string} role @param {string} words */
function append(role, words) {
  const paragraph = Object.assign(document.createElement("p"), { className: role, textContent: words });
  log.append(paragraph);
  log.scrollTop = log.scrollHeight;
  return paragraph;
}

/** What can be pressed now. */
function update() {
  const [isWorking, isOpen] = [isBusy(), Boolean(opened())];
  const send = button("chat-send");
  send.textContent = isWorking ? "Stop" : "Send";
  send.disabled = text.disabled = !isWorking && !isOpen;
  button("chat-begin").disabled = isWorking || !isOpen;
  element("chat-panel", HTMLElement).classList.toggle("has-results", isOpen);
}

/** @param {string} words */
function status(words) {
  element("chat-status", HTMLElement).textContent = words;
}

/** @param {{ tokens: number, seconds: number }} message */
const speed = ({ tokens, seconds }) => `${tokens} tokens, ${(tokens / Math.max(seconds, 1e-9)).toFixed(1)} tokens/s`;

/** @param {any} message */
function hear(message) {
  const general = words(message);
  if (general) status(general);
  if (message.is === "piece" && answer) {
    const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    answer.textContent += message.text;
    if (isAtEnd) log.scrollTop = log.scrollHeight;
    status(speed(message));
  } else if (message.is === "said") {
    status(`${speed(message)}, ${size(message.memory)} on the GPU`);
    text.focus();
  } else if (message.is === "failed" && answer && !answer.textContent) answer.remove();
}

void lack().then((missing) => {
  if (missing) element("chat-panel", HTMLElement).hidden = true;
  if (missing) status(`A language model needs WebGPU: ${missing.title}.`);
});
