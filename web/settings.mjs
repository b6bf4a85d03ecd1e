/** The form that says what to train: sizes, presets, what an address asks for, and how many parameters that makes. */

import { element, input } from "./page.mjs";
import sizes from "./sizes.json" with { type: "json" };

const NAMES = /** @type {const} */ (["layers", "heads", "width", "context", "steps", "batch", "rate", "seed"]);
/** @typedef {Record<typeof NAMES[number], number>} Settings */

/** @type {Record<string, Settings>} */
const SIZES = sizes;
const CHARACTERS = 70; // about as many different ones as an English text has

export class SettingsForm {
  #form = element("controls", HTMLFormElement);
  #size = element("size", HTMLSelectElement);

  constructor() {
    this.#size.addEventListener("change", () => {
      const settings = SIZES[this.#size.value];
      if (settings) this.fill(settings);
    });
    this.#form.addEventListener("input", ({ target }) => {
      if (target instanceof HTMLInputElement && NAMES.includes(/** @type {any} */ (target.name))) this.#check();
    });
  }

  /** A size by its name, with what the address asks for: ?layers=2&width=64. @param {string} name */
  begin(name) {
    const asked = new URLSearchParams(location.search);
    const own = NAMES.filter((name) => asked.has(name)).map((name) => [name, Number(asked.get(name))]);
    this.fill({ ...SIZES[name], ...Object.fromEntries(own) });
  }

  /** An address that asks for what the form says. */
  link() {
    const link = new URL(location.pathname, location.origin);
    for (const [name, value] of Object.entries(this.settings)) link.searchParams.set(name, String(value));
    return link;
  }

  /** @param {Settings} settings */
  fill(settings) {
    for (const name of NAMES) this.#field(name).value = String(settings[name]);
    this.#check();
  }

  /** @returns {Settings} */
  get settings() {
    return /** @type {Settings} */ (Object.fromEntries(NAMES.map((name) => [name, this.#field(name).valueAsNumber])));
  }

  /** Says what is wrong, and returns whether all is right. */
  isRight() {
    this.#check();
    const wrong = this.#form.querySelector("details :invalid");
    wrong?.closest("details")?.setAttribute("open", ""); // a closed part could not show its message
    return this.#form.reportValidity();
  }

  /** A run's settings are fixed. @param {boolean} isLocked */
  lock(isLocked) {
    for (const name of NAMES) this.#field(name).disabled = isLocked;
    this.#size.disabled = isLocked;
    element("text", HTMLFieldSetElement).disabled = isLocked;
  }

  /** @param {string} name */
  #field(name) {
    return /** @type {HTMLInputElement} */ (this.#form.elements.namedItem(name));
  }

  #check() {
    const { layers, heads, width, context } = this.settings;
    this.#field("heads").setCustomValidity(width % heads ? `${width} numbers cannot be shared out among ${heads} heads` : "");
    const count = 2 * CHARACTERS * width + context * width + layers * (12 * width * width + 13 * width) + 2 * width;
    const output = element("parameters", HTMLOutputElement);
    output.value = Number.isFinite(count) ? `about ${count.toLocaleString("en", { maximumSignificantDigits: 2 })} parameters` : "";
    const same = (/** @type {Settings} */ size) => NAMES.every((name) => size[name] === this.settings[name]);
    this.#size.value = Object.keys(SIZES).find((name) => same(SIZES[name])) ?? "custom";
  }
}

/** The text to train on. */
export class TextChoice {
  #pasted = element("pasted", HTMLTextAreaElement);
  #file = input("file");

  constructor() {
    element("text", HTMLFieldSetElement).addEventListener("change", () => this.#show());
    this.#pasted.addEventListener("input", () => this.#show());
    this.#file.addEventListener("change", () => void this.#read());
  }

  /** The user's own text, or null for one that the page brings. */
  get own() {
    return this.name === "own" ? this.#pasted.value : null;
  }

  /** Python makes verse by itself: null. @returns {Promise<string | null>} */
  async text() {
    return this.name === "documentation" ? (await fetch(new URL("documentation.txt", location.href))).text() : this.own;
  }

  /** Chooses the text of a run that was kept, or of an address. @param {{ name: string, own?: string | null }} text */
  choose({ name, own }) {
    /** @type {HTMLInputElement} */ (document.querySelector(`input[name=source][value=${name}]`)).checked = true;
    if (own) this.#pasted.value = own;
    this.#show();
  }

  /** What a checkpoint tells about where its text came from. */
  get source() {
    if (this.name === "own") return this.#file.files?.[0]?.name ?? "pasted text";
    return this.name === "documentation" ? null : this.name;
  }

  /** verse, documentation, or own. @returns {string} */
  get name() {
    return /** @type {HTMLInputElement} */ (document.querySelector("input[name=source]:checked")).value;
  }

  async #read() {
    const file = this.#file.files?.[0];
    if (!file) return;
    try {
      this.#pasted.value = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
      this.#show();
    } catch {
      element("count", HTMLOutputElement).value = `${file.name} is not a text in UTF-8`;
    }
  }

  #show() {
    element("own", HTMLElement).hidden = this.name !== "own";
    const { length } = this.#pasted.value;
    element("count", HTMLOutputElement).value = length ? `${length.toLocaleString("en")} characters` : "No text yet";
  }
}
