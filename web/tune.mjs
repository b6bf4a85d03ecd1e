/** The Fine-tune tab: an adapter beside the language model that is open learns the user's own text. */

import { lack } from "./environment.mjs";
import { ask, isBusy, opened, stop, watch, words } from "./language.mjs";
import { ModelPicker } from "./model_picker.mjs";
import { button, download, duration, element, input } from "./page.mjs";
import { LossPlot } from "./plot.mjs";

const CONTENT = `
  <div class="bar">
    <button type="submit" form="tune-settings" id="tune-go" class="primary" disabled>Start</button>
    <span id="tune-status" role="status">A language model learns your text by a small adapter beside it. Nothing leaves this page.</span>
  </div>
  <div id="tune-panel" class="panel">
    <div class="column">
      <form id="tune-model"></form>
      <form id="tune-settings" class="column">
        <fieldset>
          <legend>Text</legend>
          <label>A file in UTF-8 <input type="file" id="tune-file" accept="text/*,.txt,.md,.csv,.json,.py" /></label>
          <label>or paste it <textarea id="tune-text" rows="6" spellcheck="false" required></textarea></label>
        </fieldset>
        <fieldset>
          <legend>Training</legend>
          <div class="numbers">
            <label>Steps <input type="number" id="tune-steps" min="1" max="100000" value="100" required /></label>
            <label>Tokens a step <input type="number" id="tune-length" min="4" max="2048" value="64" required /></label>
            <label>Rank <input type="number" id="tune-rank" min="1" max="256" value="8" required /></label>
            <label>Learning rate <input type="number" id="tune-rate" min="0.000001" max="1" step="any" value="0.001" required /></label>
          </div>
          <label>Samples begin with <input type="text" id="tune-prompt" value="The " autocomplete="off" /></label>
        </fieldset>
      </form>
    </div>
    <div>
      <figure>
        <div id="tune-plot" role="img" aria-label="Loss by step"></div>
        <figcaption>Loss by step, in nats a token; lower is better. <span id="tune-described"></span></figcaption>
      </figure>
      <h2>What it writes</h2>
      <div class="samples">
        <article><h3>Before</h3><p id="tune-before"></p></article>
        <article><h3>After</h3><p id="tune-after"></p></article>
      </div>
      <div class="bar">
        <button type="button" id="tune-save" disabled>Download the adapter</button>
        <button type="button" id="tune-remove" disabled>Remove it from the model</button>
      </div>
      <p class="hint">peft's files: adapter_model.safetensors and adapter_config.json. Until it is removed, Chat talks with it.</p>
    </div>
  </div>`;

element("tune", HTMLElement).innerHTML = CONTENT;
const plot = new LossPlot(element("tune-plot", HTMLElement));
const text = element("tune-text", HTMLTextAreaElement);
new ModelPicker(element("tune-model", HTMLFormElement), "gguf", (command, words) => {
  status(words);
  ask({ do: "open model", ...command }, hear);
});
input("tune-file").addEventListener("change", async () => {
  text.value = (await input("tune-file").files?.[0]?.text()) ?? text.value;
});
element("tune-settings", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault();
  if (isBusy()) stop();
  else train();
});
button("tune-save").addEventListener("click", () => ask({ do: "save", tab: "tune" }, hear));
button("tune-remove").addEventListener("click", () => ask({ do: "remove", tab: "tune" }, hear));
watch(update);
update();

function train() {
  const numbers = Object.fromEntries(["steps", "length", "rank", "rate"].map((name) => [name, input(`tune-${name}`).valueAsNumber]));
  plot.clear();
  for (const id of ["tune-before", "tune-after", "tune-described"]) element(id, HTMLElement).textContent = "";
  element("tune-panel", HTMLElement).classList.add("has-results");
  status("Reading the text …");
  ask({ do: "train", tab: "tune", text: text.value, prompt: input("tune-prompt").value, settings: numbers }, hear);
}

/** What can be pressed now. */
function update() {
  const [isWorking, model] = [isBusy(), opened()];
  const go = button("tune-go");
  go.textContent = isWorking ? "Stop" : "Start";
  go.formNoValidate = isWorking;
  go.disabled = !isWorking && !model;
  button("tune-save").disabled = button("tune-remove").disabled = isWorking || !model?.added;
}

/** @param {any} message */
function hear(message) {
  const general = words(message);
  if (general) status(general);
  if (message.is === "data") status(`${message.tokens.toLocaleString("en")} tokens in ${message.rows} rows`);
  else if (message.is === "sample") element(`tune-${message.when}`, HTMLElement).textContent += message.text;
  else if (message.is === "step") {
    plot.add(message.step, [message.loss]);
    const left = ((input("tune-steps").valueAsNumber - message.step) * message.seconds) / message.step;
    status(`Step ${message.step.toLocaleString("en")}, loss ${message.loss.toFixed(3)}, ${duration(left)} left`);
    element("tune-described", HTMLElement).textContent = `Step ${message.step}: ${message.loss.toFixed(3)}.`;
  } else if (message.is === "adapter") {
    download(message.bytes, message.weights);
    download(new TextEncoder().encode(message.text), message.config);
  }
}

/** @param {string} words */
function status(words) {
  element("tune-status", HTMLElement).textContent = words;
}

void lack().then((missing) => {
  if (missing) element("tune-panel", HTMLElement).hidden = true;
  if (missing) status(`A language model needs WebGPU: ${missing.title}.`);
});
