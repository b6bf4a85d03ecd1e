/** The runs that this browser keeps, on the page: to go on with, or to delete. */

import { element } from "./page.mjs";
import { canKeep, dropRun, keepRun, keptRuns, readRun } from "./runs.mjs";

/** @typedef {import("./runs.mjs").About} About */

export class KeptRuns {
  /** @type {Promise<unknown>} */
  #last = Promise.resolve();
  /** @type {string} the run at hand */
  #id = "";
  /** Steps of it that are kept. */
  step = 0;
  /** Nothing could be kept. */
  fails = false;

  /** @param {(about: About, checkpoint: ArrayBuffer) => void} goOn */
  constructor(goOn) {
    this.goOn = goOn;
    void this.#show();
    void canKeep().then((can) => (this.fails = !can));
  }

  /** A run begins: what is kept from now on is of this one. */
  begin() {
    this.#id = Date.now().toString(36);
    this.step = 0;
  }

  /** @param {Omit<About, "id" | "when">} about @param {Uint8Array<ArrayBuffer>} checkpoint */
  keep(about, checkpoint) {
    const whole = { ...about, id: this.#id, when: Date.now() };
    this.#last = this.#last.then(() => keepRun(whole, checkpoint)).then(() => this.#kept(whole)).catch((error) => {
      this.fails = true;
      console.info(error);
    });
  }

  /** @param {About} about */
  #kept({ id, step }) {
    this.fails = false;
    if (id === this.#id) this.step = step;
    return this.#show();
  }

  async #show() {
    const runs = await keptRuns().catch(() => []);
    element("kept", HTMLElement).hidden = !runs.length;
    element("kept-runs", HTMLElement).replaceChildren(...runs.map((about) => this.#row(about)));
  }

  /** @param {About} about */
  #row(about) {
    const row = document.createElement("li");
    const text = document.createElement("span");
    const { step, loss, parameters, when, source } = about;
    text.textContent =
      `${step.toLocaleString("en")} steps, ${Number.isFinite(loss) ? `loss ${loss.toFixed(2)}, ` : ""}` +
      `${parameters.toLocaleString("en")} parameters${source ? `, ${source}` : ""}; ${new Date(when).toLocaleString()}`;
    const go = Object.assign(document.createElement("button"), { type: "button", textContent: "Go on" });
    go.addEventListener("click", async () => {
      const checkpoint = await readRun(about.id);
      [this.#id, this.step] = [about.id, about.step];
      this.goOn(about, checkpoint);
    });
    const drop = Object.assign(document.createElement("button"), { type: "button", textContent: "Delete" });
    drop.addEventListener("click", async () => {
      if (!confirm(`Delete the run of ${step.toLocaleString("en")} steps? It is kept nowhere else.`)) return;
      await dropRun(about.id);
      await this.#show();
    });
    row.append(text, go, drop);
    return row;
  }
}
