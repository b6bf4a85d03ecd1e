/**
 * What a program in the editor shows on the page and is told by it: sliders, drawings, answers, packages. The worker's end;
 * Python finds it as the global `pywebgpuPage` (pywebgpu/display/widgets.py) and as methods of its port.
 */

/** @typedef {(message: Record<string, unknown>) => void} Tell */

export class Interplay {
  /** @type {Map<string, string>} what was last set, as JSON, by widget */
  #values = new Map();
  #isNew = false;
  #count = 0;
  /** @type {((text: string | null) => void) | null} */
  #answer = null;
  /** @type {((goesOn: boolean) => void) | null} */
  #wake = null;

  /** @param {Tell} tell @param {() => import("pyodide").PyodideAPI} python */
  constructor(tell, python) {
    this.say = tell;
    this.python = python;
    Object.assign(self, { pywebgpuPage: this });
  }

  /** Takes a message of the page if it is for a program that runs. @param {Record<string, any>} message */
  hear(message) {
    if (message.do === "set") {
      this.#values.set(message.id, JSON.stringify(message.value));
      this.#isNew = true;
      this.#wake?.(true);
    } else if (message.do === "answer") this.#answer?.(message.text);
    else if (message.do === "stop") {
      this.#wake?.(false);
      this.#answer?.(null);
    } else return false;
    return true;
  }

  /** A program begins: nothing of the last one is left. */
  begin() {
    this.#values.clear();
    this.#isNew = false;
  }

  place() {
    return `shown-${++this.#count}`;
  }

  /** @param {string} id @param {string} html */
  show(id, html) {
    this.say({ is: "shown", id, html });
  }

  /** @param {string} json */
  add(json) {
    this.say({ is: "widget", ...JSON.parse(json) });
  }

  /** @param {string} id */
  value(id) {
    return this.#values.get(id) ?? "";
  }

  /** Settles once messages that wait have been heard. */
  turn() {
    return new Promise((resolve) => self.setTimeout(resolve));
  }

  /** Whether something was set since this was asked last, once it is; not when the program is to stop. */
  async changed() {
    let goesOn = true;
    if (!this.#isNew) {
      this.say({ is: "waiting" });
      goesOn = await new Promise((resolve) => (this.#wake = resolve));
      this.#wake = null;
    }
    this.#isNew = false;
    return goesOn;
  }

  /** What somebody answers; null when the program is to stop. @returns {Promise<string | null>} */
  async ask() {
    this.say({ is: "asked" });
    const text = await new Promise((/** @type {(text: string | null) => void} */ resolve) => (this.#answer = resolve));
    this.#answer = null;
    return text;
  }

  /** Loads the packages of Pyodide's that a program imports; returns what went wrong. @param {string} source */
  async packages(source) {
    const wrong = /** @type {string[]} */ ([]);
    const options = { messageCallback: () => undefined, errorCallback: (/** @type {string} */ text) => wrong.push(text) };
    await this.python().loadPackagesFromImports(source, options).catch((error) => wrong.push(error.message));
    return wrong.join("\n");
  }
}
