/** Where a tab's model comes from: files of this device, an address, or what this browser keeps. */

import { isBusy, watch } from "./language.mjs";
import { dropModel, keptFiles, keptModels } from "./model_files.mjs";
import { size } from "./page.mjs";

/** files: those of a folder, the weights last; one with a ? may be missing. @typedef {{ about: string, example: string, files?: string[] }} Kind */

/** @type {Record<string, Kind>} */
const KINDS = {
  gguf: { about: "A file of this device", example: "https://…/model.gguf" },
  encoder: {
    about: "A folder of this device",
    example: "https://…/all-MiniLM-L6-v2/resolve/main/",
    files: ["config.json", "vocab.txt", "tokenizer_config.json?", "sentence_bert_config.json?", "1_Pooling/config.json?", "model.safetensors"],
  },
};
const CONTENT = `
  <fieldset>
    <legend>Model</legend>
    <label><span></span> <input type="file" name="file" /></label>
    <label class="choice"><input type="checkbox" name="keep" checked /> Keep it in this browser</label>
    <label>or an address <input type="url" name="address" autocomplete="off" /></label>
    <label>SHA-256, where it is known <input name="sha256" autocomplete="off" spellcheck="false" pattern="\\s*[0-9a-fA-F]{64}\\s*" title="64 digits of 0 to 9 and a to f" /></label>
    <button type="submit">Download</button>
    <div class="kept-models" hidden>
      <p></p>
      <ul></ul>
    </div>
  </fieldset>`;

export class ModelPicker {
  /**
   * @param {HTMLFormElement} form @param {keyof typeof KINDS} kind
   * @param {(command: Record<string, unknown>, words: string) => void} open has the worker open it
   */
  constructor(form, kind, open) {
    this.form = form;
    this.kind = kind;
    this.open = open;
    const { about, example, files } = KINDS[kind];
    form.insertAdjacentHTML("afterbegin", CONTENT);
    const fieldset = /** @type {HTMLFieldSetElement} */ (form.querySelector("fieldset"));
    /** @type {HTMLElement} */ (form.querySelector("label span")).textContent = about;
    const file = this.#input("file");
    if (files) file.webkitdirectory = true;
    else file.accept = ".gguf";
    this.#input("address").placeholder = example;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#fetch();
    });
    file.addEventListener("change", () => {
      this.openFiles(Array.from(file.files ?? []));
      file.value = ""; // The same file may be chosen again.
    });
    watch((what) => {
      fieldset.disabled = isBusy();
      if (what === "kept") void this.#show();
    });
    fieldset.disabled = isBusy();
    void this.#show();
  }

  /** @param {File[]} chosen */
  openFiles(chosen) {
    const { files } = KINDS[this.kind];
    const name = files ? (chosen[0]?.webkitRelativePath.split("/")[0] ?? "") : (chosen[0]?.name ?? "");
    const wanted = files ? wantedOf(files, chosen) : { [name]: chosen[0] };
    if (!name || !this.#input("sha256").reportValidity()) return;
    this.#ask({ name, blobs: wanted, keep: this.#input("keep").checked }, `Opening ${name} …`);
  }

  #fetch() {
    const address = this.#input("address").value.trim();
    if (!address) return;
    const { files } = KINDS[this.kind];
    const name = nameOf(address);
    const sources = files
      ? files.map((file) => ({ name: file.replace("?", ""), address: new URL(file.replace("?", ""), address.replace(/\/?$/, "/")).href, isOptional: file.endsWith("?") }))
      : [{ name, address, isOptional: false }];
    this.#ask({ name, sources, keep: true }, `Downloading ${address} …`);
  }

  /** @param {Record<string, unknown>} command @param {string} words */
  #ask(command, words) {
    if (command.keep) void navigator.storage.persist?.().catch(() => false); // Else the browser may drop it when space is short.
    this.open({ kind: this.kind, sha256: this.#input("sha256").value.trim().toLowerCase(), ...command }, words);
  }

  /** Lists what is kept. */
  async #show() {
    const kept = await keptModels(this.kind).catch(() => []);
    const { usage = 0, quota = 0 } = await navigator.storage.estimate();
    const list = /** @type {HTMLElement} */ (this.form.querySelector(".kept-models"));
    list.hidden = !kept.length;
    /** @type {HTMLElement} */ (list.querySelector("p")).textContent = `Kept in this browser, with all else of this page ${size(usage)} of ${size(quota)}:`;
    list.querySelector("ul")?.replaceChildren(...kept.map((model) => this.#row(model)));
  }

  /** @param {import("./model_files.mjs").Kept} kept */
  #row({ name, size: bytes, isWhole, sha256 }) {
    const item = document.createElement("li");
    const words = document.createElement("span");
    words.textContent = `${name}, ${size(bytes)}${isWhole ? "" : " so far: download it again to go on"}`;
    if (sha256) words.append(Object.assign(document.createElement("code"), { textContent: `SHA-256 ${sha256}` }));
    const use = Object.assign(document.createElement("button"), { type: "button", textContent: "Open", hidden: !isWhole });
    use.addEventListener("click", async () => {
      this.open({ kind: this.kind, name, blobs: await keptFiles(this.kind, name) }, `Opening ${name} …`);
    });
    const drop = Object.assign(document.createElement("button"), { type: "button", textContent: "Delete" });
    drop.addEventListener("click", async () => {
      await dropModel(this.kind, name);
      await this.#show();
    });
    item.append(words, use, drop);
    return item;
  }

  /** @param {string} name */
  #input(name) {
    return /** @type {HTMLInputElement} */ (this.form.elements.namedItem(name));
  }
}

/** Those of a folder's files that are wanted, by their names in it. @param {string[]} files @param {File[]} chosen */
function wantedOf(files, chosen) {
  const inside = new Map(chosen.map((file) => [file.webkitRelativePath.split("/").slice(1).join("/"), file]));
  const names = files.map((file) => file.replace("?", "")).filter((name) => inside.has(name));
  return Object.fromEntries(names.map((name) => [name, inside.get(name)]));
}

/** What a model of an address is called. @param {string} address */
function nameOf(address) {
  const parts = new URL(address, location.href).pathname.split("/").filter((part) => part && part !== "resolve" && part !== "main");
  return decodeURIComponent(parts.at(-1) ?? "") || "model";
}
