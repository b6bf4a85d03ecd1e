/** The output of programs: text as a terminal shows it, and between it what else they show. */

import { atFrame } from "./page.mjs";

const KEPT = 2000; // lines of a piece of text
const CODES = /(\x1b\[[0-9;?]*[A-Za-z]|[\r\n\b])/;
const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/** @typedef {{ text: string, style: string }} Cell a character, and the classes it is shown with */

export class Terminal {
  /** @type {Cell[]} the line that is written */
  #line = [];
  #column = 0;
  #style = "";
  #waiting = "";
  /** @type {HTMLElement | null} */
  #text = null;
  /** @type {HTMLElement | null} */
  #last = null;
  /** @type {Map<string, HTMLElement>} */
  #shown = new Map();

  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
    this.flush = () => this.#keepEnd(() => this.#write());
    this.#soon = atFrame(this.flush);
  }

  /** @type {() => void} */
  #soon;

  /** @param {string} text */
  say(text) {
    this.#waiting += text;
    this.#soon();
  }

  clear() {
    this.#waiting = "";
    this.#shown.clear();
    this.element.replaceChildren();
    this.#begin();
  }

  /** Shows HTML, in place of what it showed before under this name. @param {string} id @param {string} html */
  show(id, html) {
    const known = this.#shown.get(id);
    if (known) known.innerHTML = html;
    else {
      const made = Object.assign(document.createElement("div"), { className: "shown", innerHTML: html });
      this.#shown.set(id, made);
      this.add(made);
    }
  }

  /** Adds an element below all that is there. @param {HTMLElement} made */
  add(made) {
    this.#keepEnd(() => {
      this.#write();
      this.element.append(made);
      this.#begin();
    });
  }

  /** What is written next stands in a piece of its own. */
  #begin() {
    this.#text = this.#last = null;
    this.#line = [];
    this.#column = 0;
    this.#style = "";
  }

  /** Stays at the end where the end is in view. @param {() => void} act */
  #keepEnd(act) {
    const { element } = this;
    const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < 40;
    act();
    if (atEnd) element.scrollTop = element.scrollHeight;
  }

  #write() {
    if (!this.#waiting) return;
    if (!this.#text) {
      this.#text = document.createElement("pre");
      this.#last = document.createElement("span");
      this.#text.append(this.#last);
      this.element.append(this.#text);
    }
    const text = this.#waiting;
    this.#waiting = "";
    for (const part of text.split(CODES)) this.#take(part);
    this.#last?.replaceChildren(...this.#spans());
    while (this.#text.childElementCount > KEPT) this.#text.firstElementChild?.remove();
  }

  /** @param {string} part */
  #take(part) {
    if (part === "\n") {
      const done = document.createElement("span");
      done.append(...this.#spans(), "\n");
      this.#last?.before(done);
      this.#line = [];
      this.#column = 0;
    } else if (part === "\r") this.#column = 0;
    else if (part === "\b") this.#column = Math.max(0, this.#column - 1);
    else if (part.startsWith("\x1b[")) this.#obey(part);
    else for (const text of part) this.#line[this.#column++] = { text, style: this.#style };
  }

  /** @param {string} code */
  #obey(code) {
    if (code.endsWith("K")) this.#line.length = Math.min(this.#line.length, this.#column);
    if (!code.endsWith("m")) return;
    for (const one of code.slice(2, -1).split(";").map(Number)) {
      const classes = new Set(this.#style.split(" ").filter(Boolean));
      const color = NAMES[one % 10];
      if (one === 0) classes.clear();
      if (one === 1) classes.add("bold");
      if (one === 22) classes.delete("bold");
      if (one === 4) classes.add("underlined");
      if ((one >= 30 && one < 40) || (one >= 90 && one < 98)) {
        for (const name of NAMES) classes.delete(`ansi-${name}`);
        if (color) classes.add(`ansi-${color}`);
      }
      this.#style = [...classes].join(" ");
    }
  }

  /** The line that is written, a span for each style. */
  #spans() {
    /** @type {(string | Node)[]} */
    const made = [];
    for (let at = 0; at < this.#line.length; ) {
      const { style } = (this.#line[at] ??= { text: " ", style: "" });
      let text = "";
      while (at < this.#line.length && (this.#line[at]?.style ?? "") === style) text += this.#line[at++]?.text ?? " ";
      made.push(style ? Object.assign(document.createElement("span"), { className: style, textContent: text }) : text);
    }
    return made;
  }
}
