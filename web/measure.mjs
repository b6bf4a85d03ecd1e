/** The My GPU tab: runs workloads on this device's GPU, and makes a card of what came of it. */

import { lack } from "./environment.mjs";
import { button, element, startWorker } from "./page.mjs";

/** of: what a peer did as well. @typedef {{ name: string, value: number, unit: string, of?: string }} Result */

const CONTENT = `
  <div class="bar">
    <button type="button" id="measure" class="primary">Test my GPU</button>
    <button type="button" id="copy-card" hidden>Copy as text</button>
    <button type="button" id="save-card" hidden>Save as a picture</button>
    <span id="measure-status" role="status"></span>
  </div>
  <p class="hint" id="measure-hint">Models train for a second each, then matrices are multiplied and memory is copied: the workloads of pywebgpu bench, in this browser.</p>
  <canvas id="card" role="img" aria-label="No result yet"></canvas>`;
// Six rows, and as many more as there are; on a phone its words stay legible.
const [WIDTH, HEIGHT, SCALE, LINE, ROWS] = [innerWidth < 700 ? 400 : 640, 336, 2, 30, 6];
/** @type {{ peers: string[] }} other libraries that this server has */
const { peers } = JSON.parse(element("config", HTMLScriptElement).text);

element("gpu", HTMLElement).innerHTML = CONTENT;
const card = element("card", HTMLCanvasElement);
/** @type {Worker | null} */
let worker = null;
let adapter = "This device's GPU";
/** @type {Result[]} */
let results = [];
/** @type {(start: unknown) => void} what waits for the weights that a workload begins with */
let begun = () => undefined;

button("measure").addEventListener("click", () => {
  results = [];
  show();
  button("measure").disabled = true;
  say("Loading Python …");
  if (worker) worker.postMessage({ do: "measure" });
  else worker = startWorker("measuring", hear);
});
button("copy-card").addEventListener("click", async () => {
  await navigator.clipboard?.writeText(words()).then(() => say("The text is copied."), () => say("The clipboard is closed to this page."));
});
button("save-card").addEventListener("click", () => {
  card.toBlob((blob) => {
    if (!blob) return;
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: "pywebgpu.png" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  });
});

/** @param {any} message */
function hear(message) {
  if (message.is === "ready") {
    adapter = message.adapter.name + (message.adapter.is_software ? " (software)" : "");
    worker?.postMessage({ do: "measure" });
  } else if (message.is === "measuring") say(`${message.name} …`);
  else if (message.is === "measured") {
    results.push(message);
    show();
  } else if (message.is === "start") begun(message.start);
  else if (message.is === "finished") void finish();
  else if (message.is === "broken") {
    worker?.terminate();
    worker = null;
    button("measure").disabled = false;
    say(message.text);
  }
}

async function finish() {
  const { measurePeers } = await import("./peers.mjs");
  const wrong = await measurePeers(peers, results, {
    begin: (name) => new Promise((resolve) => {
      begun = resolve;
      worker?.postMessage({ do: "start", name });
    }),
    doing: (text) => say(`${text} …`),
    found: (result) => {
      results.splice(results.findLastIndex(({ name, of }) => (of ?? name) === result.of) + 1, 0, result);
      show();
    },
  });
  button("measure").disabled = button("copy-card").hidden = button("save-card").hidden = false;
  say(["Done", ...wrong].join("; "));
}

/** @param {string} text */
function say(text) {
  element("measure-status", HTMLElement).textContent = text;
}

/** @param {Result} result */
const amount = ({ value, unit }) => `${value.toLocaleString("en", { maximumSignificantDigits: 3 })} ${unit}`;

function browser() {
  const brands = /** @type {any} */ (navigator).userAgentData?.brands?.filter((/** @type {any} */ { brand }) => !/not/i.test(brand));
  return brands?.length ? `${brands.at(-1).brand} ${brands.at(-1).version}` : (/(Firefox|Version)\/(\d+)/.exec(navigator.userAgent)?.[0].replace("Version", "Safari") ?? "");
}

const about = () => `${browser()}, ${new Date().toISOString().slice(0, 10)}`;
const words = () => [`pywebgpu on ${adapter}`, ...results.map((result) => `${result.of ? `  ${result.of}, ` : ""}${result.name}: ${amount(result)}`), about()].join("\n");

/** Draws what is known so far. */
function show() {
  const height = HEIGHT + LINE * Math.max(0, results.length - ROWS);
  [card.width, card.height] = [SCALE * WIDTH, SCALE * height];
  const pen = /** @type {CanvasRenderingContext2D} */ (card.getContext("2d"));
  pen.scale(SCALE, SCALE);
  pen.fillStyle = "#14161a";
  pen.fillRect(0, 0, WIDTH, height);
  pen.fillStyle = "#7f9bff";
  pen.fillRect(0, 0, 6, height);
  const line = (/** @type {string} */ text, /** @type {number} */ x, /** @type {number} */ y, color = "#e6e8ec", font = "18px system-ui", align = "left") => {
    Object.assign(pen, { fillStyle: color, font, textAlign: align });
    pen.fillText(text, x, y, WIDTH - 64);
  };
  line("pywebgpu", 32, 44, "#7f9bff", "700 18px system-ui");
  line(adapter, 32, 78, "#ffffff", "600 22px system-ui");
  results.forEach((result, at) => {
    const isOurs = !result.of;
    line(result.name, isOurs ? 32 : 56, 122 + LINE * at, isOurs ? "#e6e8ec" : "#a3abb8");
    line(amount(result), WIDTH - 32, 122 + LINE * at, isOurs ? "#ffffff" : "#a3abb8", `${isOurs ? 600 : 400} 18px system-ui`, "right");
  });
  if (!results.length) line("What it reaches will stand here.", 32, 122, "#a3abb8");
  line(about(), 32, height - 22, "#a3abb8", "14px system-ui");
  card.ariaLabel = !results.length ? "No result yet" : words().replaceAll("\n", "; ");
}

show();
void lack().then((missing) => {
  if (!missing) return;
  button("measure").hidden = card.hidden = element("measure-hint", HTMLElement).hidden = true;
  say(`There is nothing to test: ${missing.title}.`);
});
