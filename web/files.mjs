/** The programs that the editor has open, a button for each; this browser keeps them. */

const KEPT = "files"; // in this browser's storage
const OLD = "program";
/** In a frame of the documentation nothing is kept: its programs are not the visitor's own. */
const storage = window.top === window ? localStorage : { getItem: () => null, setItem: () => undefined };
export const FIRST = "editor.py";
const NAME = /^[A-Za-z_]\w*\.(?:py|txt|csv|json)$/;

/** @typedef {Record<string, string>} Texts what files hold, by name */

export class Files {
  /** @type {Texts} */
  texts;
  current = FIRST;

  /**
   * @param {HTMLElement} list @param {string} example what a new visitor finds
   * @param {() => void} turned another file is the current one
   */
  constructor(list, example, turned) {
    this.list = list;
    this.turned = turned;
    this.texts = kept() ?? { [FIRST]: storage.getItem(OLD) ?? example };
    this.current = Object.keys(this.texts)[0];
  }

  get text() {
    return this.texts[this.current];
  }

  /** The current file was edited. @param {string} text */
  edit(text) {
    this.texts[this.current] = text;
    storage.setItem(KEPT, JSON.stringify(this.texts));
  }

  /** Opens a file. What is there under this name stays unless a text is given that is not the same. @param {string} name @param {string} [text] */
  open(name, text) {
    if (text !== undefined && this.texts[name] !== text) {
      const [stem, end] = name.split(".");
      for (let n = 2; this.texts[name] !== undefined && this.texts[name] !== text; n++) name = `${stem}_${n}.${end}`;
      this.texts[name] = text;
    }
    this.current = name;
    this.show();
    this.turned();
  }

  add() {
    const name = prompt("Name of the new file", "module.py")?.trim();
    if (!name) return;
    if (!NAME.test(name)) alert(`${name}: a name has letters, digits and _, and ends in .py, .txt, .csv or .json`);
    else this.open(name, this.texts[name] ?? "");
  }

  drop() {
    if (!confirm(`Delete ${this.current}? It is kept nowhere else.`)) return;
    delete this.texts[this.current];
    if (!Object.keys(this.texts).length) this.texts[FIRST] = "";
    storage.setItem(KEPT, JSON.stringify(this.texts));
    this.open(Object.keys(this.texts)[0]);
  }

  show() {
    this.list.replaceChildren(
      ...Object.keys(this.texts).map((name) => {
        const made = Object.assign(document.createElement("button"), { type: "button", textContent: name });
        made.ariaPressed = String(name === this.current);
        made.addEventListener("click", () => this.open(name));
        return made;
      }),
    );
  }
}

/** @returns {Texts | null} */
function kept() {
  try {
    const found = JSON.parse(storage.getItem(KEPT) ?? "null");
    return found && Object.keys(found).length ? found : null;
  } catch {
    return null;
  }
}
