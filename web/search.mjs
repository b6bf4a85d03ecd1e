/** The Search tab: which passages of texts are nearest in meaning to a question. */

import { lack } from "./environment.mjs";
import { ask, isBusy, stop, watch, words } from "./language.mjs";
import { ModelPicker } from "./model_picker.mjs";
import { button, element, input, size } from "./page.mjs";

const CONTENT = `
  <div class="bar">
    <span id="search-status" role="status">A model is a BERT of sentence-transformers, such as all-MiniLM-L6-v2. No text leaves this page.</span>
  </div>
  <div id="search-panel" class="panel">
    <div class="column">
      <form id="search-model"></form>
      <fieldset id="search-source">
        <legend>Texts</legend>
        <label>Files in UTF-8, or drop them here <input type="file" id="search-files" multiple accept="text/*,.txt,.md,.csv,.json,.py,.html" /></label>
        <ul id="search-texts"></ul>
        <label>and what is pasted <textarea id="search-pasted" rows="6" spellcheck="false"></textarea></label>
        <button type="button" id="search-documentation">Add the documentation of Python</button>
      </fieldset>
    </div>
    <div>
      <form id="search-ask" class="bar">
        <input type="search" id="search-question" aria-label="Question" placeholder="Question" autocomplete="off" />
        <button type="submit" id="search-go" class="primary" disabled>Search</button>
      </form>
      <ol id="search-answers" aria-label="Answers"></ol>
    </div>
  </div>`;

element("search", HTMLElement).innerHTML = CONTENT;
const pasted = element("search-pasted", HTMLTextAreaElement);
/** @type {Map<string, string>} by name */
const texts = new Map();
let isOpen = false;
/** The texts are not those that Python has read. */
let isChanged = true;

new ModelPicker(element("search-model", HTMLFormElement), "encoder", (command, words) => {
  status(words);
  isOpen = false;
  ask({ do: "open", tab: "search", ...command }, hear);
});
input("search-files").addEventListener("change", () => void add(input("search-files").files ?? []));
pasted.addEventListener("input", () => (isChanged = true));
button("search-documentation").addEventListener("click", async () => {
  const answer = await fetch("documentation.txt");
  if (answer.ok) set("Documentation of Python", await answer.text());
});
element("search", HTMLElement).addEventListener("dragover", (event) => event.preventDefault());
element("search", HTMLElement).addEventListener("drop", (event) => {
  event.preventDefault();
  void add(event.dataTransfer?.files ?? []);
});
element("search-ask", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault();
  if (isBusy()) stop();
  else search();
});
watch(update);
update();

/** @param {Iterable<File>} files */
async function add(files) {
  for (const file of files) {
    const text = await file.text();
    set(file.name, file.type === "text/html" ? (new DOMParser().parseFromString(text, "text/html").body.textContent ?? "") : text);
  }
}

/** @param {string} name @param {string} text "": none any more */
function set(name, text) {
  texts.delete(name);
  if (text) texts.set(name, text);
  isChanged = true;
  element("search-texts", HTMLElement).replaceChildren(...Array.from(texts, ([name, { length }]) => row(name, length)));
}

/** @param {string} name @param {number} length */
function row(name, length) {
  const item = document.createElement("li");
  const drop = Object.assign(document.createElement("button"), { type: "button", textContent: "Remove", ariaLabel: `Remove ${name}` });
  drop.addEventListener("click", () => set(name, ""));
  item.append(Object.assign(document.createElement("span"), { textContent: `${name}, ${length.toLocaleString("en")} characters` }), drop);
  return item;
}

function search() {
  const question = input("search-question").value.trim();
  if (!question) return;
  element("search-panel", HTMLElement).classList.add("has-results");
  const all = [...texts, ["pasted", pasted.value]].map(([name, text]) => ({ name, text }));
  ask({ do: "ask", tab: "search", question, texts: isChanged ? all : null }, hear);
  isChanged = false;
}

/** What can be pressed now. */
function update() {
  const go = button("search-go");
  go.textContent = isBusy() ? "Stop" : "Search";
  go.disabled = !isBusy() && !isOpen;
}

/** @param {any} message */
function hear(message) {
  const general = words(message);
  if (general) status(general);
  if (message.is === "encoder") {
    isOpen = isChanged = true;
    status(`${message.name}: ${message.parameters.toLocaleString("en")} parameters, ${size(message.memory)} on the GPU`);
  } else if (message.is === "reading") status(`Reading, ${message.came.toLocaleString("en")} of ${message.total.toLocaleString("en")} passages`);
  else if (message.is === "answers") {
    status(`The nearest of ${message.passages.toLocaleString("en")} passages`);
    element("search-answers", HTMLElement).replaceChildren(...message.answers.map(answer));
  } else if (message.is === "failed") isChanged = true;
}

/** @param {{ score: number, name: string, line: number, text: string }} answer */
function answer({ score, name, line, text }) {
  const item = document.createElement("li");
  const title = Object.assign(document.createElement("h2"), { textContent: `${name}, line ${line}: ${score.toFixed(3)}` });
  item.append(title, Object.assign(document.createElement("p"), { textContent: text }));
  return item;
}

/** @param {string} words */
function status(words) {
  element("search-status", HTMLElement).textContent = words;
}

void lack().then((missing) => {
  if (missing) element("search-panel", HTMLElement).hidden = true;
  if (missing) status(`A language model needs WebGPU: ${missing.title}.`);
});
