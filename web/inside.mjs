/** What is inside the model while it learns: where it looks, what it expects next, its weights, its characters, and its source. */

import { Drift, legend } from "./drift.mjs";
import { button, element } from "./page.mjs";

/**
 * maps: of each head, a byte for each pair of characters, the looking one first.  sizes: part, weights, gradients.
 * embedding: a float32 for each letter and each of its numbers.
 * @typedef {{ step: number, text: string, heads: number, maps: string, next: [string, number][], sizes: [string, number, number][],
 *   letters: string[], embedding: string,
 *   cost: { dispatches: number, submits: number }, ms: number }} Look
 */

const CONTENT = `
  <p id="inside-cost">Attention, probabilities, weights and embeddings of your model appear here once it trains.</p>
  <div id="inside-panes" hidden>
  <div class="panes">
    <section><h2>Next character</h2><p id="inside-text"></p><ol id="inside-next"></ol></section>
    <section><h2>Weights and gradients</h2>
      <table id="inside-sizes"><thead><tr><th scope="col">part</th><th scope="col">weights</th><th scope="col">gradients</th></tr></thead><tbody></tbody></table>
      <p>Roots of mean squares; a bar is a share of the largest.</p>
    </section>
  </div>
  <section><h2>Attention</h2><div id="inside-maps"></div>
    <p>A row for each character of the text above, from its first; what it looks at is dark. Nothing looks ahead.</p>
  </section>
  <section id="inside-embedding"><h2>Embeddings</h2><div id="inside-drift"></div>
    <p class="kinds">${legend}</p><p id="inside-since"></p>
  </section>
  </div>`;

export class Inside {
  #drift = new Drift();

  constructor() {
    const style = Object.assign(document.createElement("link"), { rel: "stylesheet", href: new URL("inside.css", import.meta.url).href });
    document.head.append(style);
    this.place = element("inside-content", HTMLElement);
    this.place.innerHTML = CONTENT;
  }

  /** @param {Look} look */
  show({ step, text, heads, maps, next, sizes, letters, embedding, cost, ms }) {
    element("inside-panes", HTMLElement).hidden = false;
    const count = (/** @type {number} */ n, /** @type {string} */ word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : word === "dispatch" ? "es" : "s"}`;
    const took = ms ? `: ${count(cost.dispatches, "dispatch")}, ${count(cost.submits, "submit")}, ${ms.toFixed(ms < 10 ? 1 : 0)} ms` : "";
    element("inside-cost", HTMLElement).textContent = `Step ${step.toLocaleString("en")}${took}`;
    element("inside-text", HTMLElement).textContent = next.length ? `After “${shown(text)}” it expects` : "This model has no attention as the demo's has it.";
    element("inside-next", HTMLElement).replaceChildren(...next.map(([letter, share]) => bar("li", shown(letter), `${(100 * share).toFixed(1)} %`, share)));
    this.#showSizes(sizes);
    this.#showDrift(step, letters, new Float32Array(unpacked(embedding).buffer));
    const bytes = unpacked(maps);
    const length = text.length;
    const figures = Array.from({ length: bytes.length / length ** 2 || 0 }, (_, head) =>
      map(bytes.subarray(head * length ** 2, (head + 1) * length ** 2), text, `Layer ${Math.floor(head / heads) + 1}, head ${(head % heads) + 1}`),
    );
    element("inside-maps", HTMLElement).replaceChildren(...figures);
  }

  /** @param {number} step @param {string[]} letters @param {Float32Array} values */
  #showDrift(step, letters, values) {
    element("inside-embedding", HTMLElement).hidden = !letters.length;
    if (!letters.length) return;
    const place = element("inside-drift", HTMLElement);
    const embedding = { letters, width: values.length / letters.length, values };
    const { svg, since } = this.#drift.draw(embedding, step, shown, Math.min(Math.max(place.clientWidth, 240), 720));
    place.innerHTML = svg;
    element("inside-since", HTMLElement).textContent =
      `Characters along the two directions in which their embeddings differ most: those used alike come together. A trail begins where one was at step ${since.toLocaleString("en")}.`;
  }

  /** @param {[string, number, number][]} sizes */
  #showSizes(sizes) {
    const largest = [1, 2].map((at) => Math.max(...sizes.map((size) => Number(size[at])), 1e-30));
    const rows = sizes.map(([part, ...values]) => {
      const row = document.createElement("tr");
      row.append(Object.assign(document.createElement("th"), { scope: "row", textContent: part }));
      values.forEach((value, at) => row.append(bar("td", value.toPrecision(2), "", value / largest[at])));
      return row;
    });
    element("inside-sizes", HTMLTableElement).tBodies[0].replaceChildren(...rows);
  }
}

/** @param {string} packed base64 */
const unpacked = (packed) => Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));

/** Spaces and ends of lines, where they can be seen. @param {string} text */
const shown = (text) => text.replaceAll(" ", "␣").replaceAll("\n", "↵");

/** A line over a bar of its share. @param {string} kind @param {string} name @param {string} value @param {number} share */
function bar(kind, name, value, share) {
  const line = document.createElement(kind);
  line.style.setProperty("--share", `${(100 * share).toFixed(1)}%`);
  line.append(Object.assign(document.createElement("span"), { textContent: name }), ` ${value}`);
  return line;
}

/** @param {Uint8Array} shares @param {string} text @param {string} name */
function map(shares, text, name) {
  const length = text.length;
  const figure = document.createElement("figure");
  const canvas = Object.assign(document.createElement("canvas"), { width: length, height: length });
  const pixels = new ImageData(length, length);
  const [red, green, blue] = matchMedia("(prefers-color-scheme: dark)").matches ? [127, 155, 255] : [42, 66, 170];
  shares.forEach((share, at) => pixels.data.set([red, green, blue, share], 4 * at));
  canvas.getContext("2d")?.putImageData(pixels, 0, 0);
  const last = shares.subarray(-length);
  const most = last.indexOf(Math.max(...last));
  canvas.role = "img";
  canvas.ariaLabel = `${name}: the last character looks most at “${shown(text[most])}”, ${length - 1 - most} before it`;
  figure.append(canvas, Object.assign(document.createElement("figcaption"), { textContent: name }));
  return figure;
}

/** The model's source, to be changed. */
export class ModelSource {
  #original = "";
  /** @type {import("@codemirror/view").EditorView | null} */
  #view = null;

  /** @param {() => void} apply */
  constructor(apply) {
    button("apply").addEventListener("click", apply);
    button("original").addEventListener("click", () => this.#set(this.#original));
  }

  /** What the user made of it; null while it is the demo's. */
  get changed() {
    const text = this.#view?.state.doc.toString();
    return text === undefined || text === this.#original ? null : text;
  }

  /** Shows the model of a run that was kept; null is the demo's. @param {string | null} source */
  choose(source) {
    if (!this.#view) return;
    this.#set(source ?? this.#original);
  }

  /** @param {string | null} source the run's */
  async open(source) {
    if (this.#view) return;
    const [{ programState, programView }, answer] = await Promise.all([import("./program_view.mjs"), fetch(new URL("model.txt", location.href))]);
    this.#original = await answer.text();
    this.#view ??= programView(element("model-code", HTMLElement), programState(source ?? this.#original, "The model's source, in Python"));
    button("apply").disabled = button("original").disabled = false;
  }

  /** @param {string} text */
  #set(text) {
    this.#view?.dispatch({ changes: { from: 0, to: this.#view.state.doc.length, insert: text } });
  }
}
