/** What an export holds, and a run of each program on zeros: the page of an export that brings none of its own. */

import { load } from "./player.mjs";

/** @param {string} name @param {string} text @param {Element} into */
function add(name, text, into) {
  const made = document.createElement(name);
  made.textContent = text;
  into.append(made);
  return made;
}

/** @param {import("./player.d.mts").Value} value @returns {string} */
function inWords(value) {
  if (Array.isArray(value)) return `[${value.map(inWords).join(", ")}]`;
  if (value === null || typeof value !== "object") return String(value);
  if (ArrayBuffer.isView(value.data) && Array.isArray(value.shape)) {
    const first = Array.from(/** @type {Float32Array} */ (value.data).slice(0, 6), (element) => Number(element.toPrecision(4)));
    return `${value.shape.join(", ")}: ${first.join(", ")}${value.data.length > 6 ? " …" : ""}`;
  }
  return Object.entries(value).map(([name, item]) => `${name}: ${inWords(item)}`).join("; ");
}

const said = /** @type {Element} */ (document.querySelector("#said"));
const programs = /** @type {Element} */ (document.querySelector("#programs"));
try {
  const player = await load("./");
  const { name, isFallback } = player.bridge.info;
  const count = player.params.names.length;
  said.textContent = `${name}${isFallback ? ", a software adapter" : ""}. ${count} named tensors. Options: ${Object.keys(player.options).join(", ") || "none"}.`;
  for (const [title, { inputs, numbers, notes }] of Object.entries(player.programs)) {
    const section = add("section", "", programs);
    add("h2", title, section);
    const wanted = [...inputs.map((input) => `${input.name} (${input.dtype}: ${input.shape.join(", ") || "one"})`), ...numbers];
    add("p", `Takes ${wanted.join(", ") || "nothing"}.`, section);
    for (const note of notes) add("p", note, section);
    const button = add("button", "Run on zeros", section);
    const output = add("output", "", section);
    button.addEventListener("click", async () => {
      const zeros = inputs.map((input) => [input.name, new Float32Array(input.shape.reduce((n, m) => n * m, 1))]);
      try {
        output.textContent = inWords(await player.run(title, { ...Object.fromEntries(zeros), ...Object.fromEntries(numbers.map((number) => [number, 0])) }));
      } catch (error) {
        output.textContent = String(error);
      }
    });
  }
} catch (error) {
  said.textContent = String(error);
}
