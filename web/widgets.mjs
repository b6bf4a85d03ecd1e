/** What programs ask of people: sliders, canvases to draw on, lines of text. */

import { atFrame } from "./page.mjs";

const INK = "#f4f6fa";
const PAPER = "#10131a";
const CURSOR = "#ffb454";
/** @type {Record<string, [number, number]>} */
const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const REACH = 1.25; // cells from the pointer that it still blackens

/** @typedef {(value: unknown) => void} Set */

/** @param {any} about @param {Set} set */
export function widget(about, set) {
  return about.kind === "slider" ? slider(about, set) : canvas(about, set);
}

/** @param {{ label: string, low: number, high: number, step: number, value: number }} about @param {Set} set */
function slider({ label, low, high, step, value }, set) {
  const [made, name, range, number] = ["label", "span", "input", "output"].map((kind) => document.createElement(kind));
  const input = /** @type {HTMLInputElement} */ (range);
  made.className = "widget";
  name.textContent = label;
  Object.assign(input, { type: "range", min: low, max: high, step });
  input.value = String(value);
  const show = () => (number.textContent = String(Number(Number(input.value).toPrecision(4))));
  const tell = atFrame(() => set(Number(input.value)));
  input.addEventListener("input", () => {
    show();
    tell();
  });
  show();
  made.append(name, input, number);
  return made;
}

/** @param {{ label: string, size: number, value: number[][] }} about @param {Set} set */
function canvas({ label, size, value }, set) {
  const made = Object.assign(document.createElement("div"), { className: "widget" });
  const name = Object.assign(document.createElement("span"), { textContent: label });
  const board = Object.assign(document.createElement("canvas"), { width: size, height: size, className: "board" });
  const clear = Object.assign(document.createElement("button"), { type: "button", textContent: "Clear" });
  board.setAttribute("role", "application");
  board.setAttribute("aria-label", `${label}: with a pointer, or by keys. Arrows move the pen, with Shift it draws; Space draws a dot, Delete clears.`);
  board.tabIndex = 0;
  const context = /** @type {CanvasRenderingContext2D} */ (board.getContext("2d"));
  let rows = value.map((row) => [...row]);
  let isFirst = true; // What a program drew goes with the first stroke of one's own.
  const paint = () => {
    context.fillStyle = PAPER;
    context.fillRect(0, 0, size, size);
    context.fillStyle = INK;
    rows.forEach((row, y) => row.forEach((cell, x) => {
      context.globalAlpha = cell;
      if (cell) context.fillRect(x, y, 1, 1);
    }));
    context.globalAlpha = 1;
    if (!pen) return;
    context.fillStyle = CURSOR;
    context.fillRect(...pen, 1, 1);
  };
  /** @type {[number, number] | null} the cell where keys draw, while they do */
  let pen = null;
  const tell = atFrame(() => set(rows));
  const wipe = () => {
    rows = rows.map((row) => row.map(() => 0));
    paint();
    tell();
  };
  const draw = (/** @type {number} */ x, /** @type {number} */ y) => {
    if (isFirst) rows = rows.map((row) => row.map(() => 0));
    isFirst = false;
    for (const [j, row] of rows.entries()) {
      for (const i of row.keys()) row[i] = Math.max(row[i], Math.min(1, Math.max(0, 1.6 * REACH - 1.3 * Math.hypot(i - x, j - y))));
    }
    paint();
    tell();
  };
  const follow = (/** @type {PointerEvent} */ { clientX, clientY }) => {
    const box = board.getBoundingClientRect();
    draw(((clientX - box.x) / box.width) * size - 0.5, ((clientY - box.y) / box.height) * size - 0.5);
  };
  board.addEventListener("pointerdown", (event) => {
    board.setPointerCapture(event.pointerId);
    pen = null;
    follow(event);
  });
  board.addEventListener("pointermove", (event) => {
    if (event.buttons) for (const one of event.getCoalescedEvents?.() ?? [event]) follow(one);
  });
  board.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    if (event.key === "Delete" || event.key === "Backspace") wipe();
    else if (event.key !== " " && !move) return;
    event.preventDefault();
    pen ??= [size >> 1, size >> 1];
    const within = (/** @type {number} */ at) => Math.min(size - 1, Math.max(0, at));
    if (move) pen = [within(pen[0] + move[0]), within(pen[1] + move[1])];
    if (event.key === " " || (move && event.shiftKey)) draw(...pen);
    else paint();
  });
  board.addEventListener("blur", () => {
    pen = null;
    paint();
  });
  clear.addEventListener("click", wipe);
  paint();
  const keys = Object.assign(document.createElement("span"), { className: "hint", textContent: "Keys: arrows move, Shift and arrows draw, Space dots." });
  made.append(name, board, clear, keys);
  return made;
}

/** A line of text, which is asked for. @param {(text: string) => void} answer */
export function question(answer) {
  const made = Object.assign(document.createElement("form"), { className: "widget" });
  const input = Object.assign(document.createElement("input"), { type: "text", autocomplete: "off", ariaLabel: "Answer" });
  const send = Object.assign(document.createElement("button"), { textContent: "Answer" });
  made.append(input, send);
  made.addEventListener("submit", (event) => {
    event.preventDefault();
    made.remove();
    answer(input.value);
  });
  return made;
}
