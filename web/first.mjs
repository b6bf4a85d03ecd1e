/** The first view: a small model that was trained before, and exported, writes while Python still loads. */

import { element } from "./page.mjs";

/** @typedef {import("../js_bridge/player.d.mts").Tensor} Tensor */
/** @typedef {{ vocabulary: string[], context: number, steps: number, loss: number, recording: string }} About */

const FOLDER = "first/"; // made by pywebgpu export: see README.md
const PROMPT = "The ";
const LENGTH = 600; // characters
const TEMPERATURE = 0.7;
const TOP_K = 20;

/** Shows what the model wrote elsewhere, where this page cannot compute, or only slowly. */
export async function replay() {
  const about = await facts();
  begin(about, "It wrote elsewhere").textContent = about.recording;
}

/** Writes until the end, or until somebody trains; returns the text. @param {string} player its address @param {() => void} begun called once it writes */
export async function write(player, begun, length = LENGTH) {
  const [about, { load }] = await Promise.all([facts(), import(new URL(player, location.href).href)]);
  const model = await load(new URL(FOLDER, location.href));
  const text = begin(about, "Writing now, on this GPU");
  const known = Array.from(PROMPT, (letter) => about.vocabulary.indexOf(letter));
  text.textContent = PROMPT;
  begun();
  for (let n = 0; n < length && text.isConnected; n++) {
    const seen = known.slice(-about.context);
    // Always a whole context, so that one program serves every length; the model never looks ahead.
    const characters = [...seen, ...Array(about.context - seen.length).fill(0)];
    const scores = /** @type {Tensor} */ (await model.run("inference", { characters, last: seen.length - 1 }));
    const number = pick(scores.data, Math.random());
    known.push(number);
    text.append(about.vocabulary[number]);
  }
  element("spoken", HTMLElement).textContent = `It writes: ${text.textContent}`;
  model.close();
  return text.textContent;
}

/** @returns {Promise<About>} */
async function facts() {
  return (await fetch(new URL(`${FOLDER}about.json`, location.href))).json();
}

/** A sample of its own in the list, which goes when a run begins. @param {About} about @param {string} how */
function begin({ steps, loss }, how) {
  const [article, title, text] = ["article", "h3", "p"].map((tag) => document.createElement(tag));
  title.textContent = `${how}: a model trained before, ${steps.toLocaleString("en")} steps, loss ${loss.toFixed(2)}. `;
  title.append(Object.assign(document.createElement("span"), { className: "invitation", textContent: "Start trains your own." }));
  article.append(title, text);
  element("samples", HTMLElement).replaceChildren(article);
  return text;
}

/** One of the likeliest characters, by their scores. @param {ArrayLike<number>} scores @param {number} drawn of [0, 1) */
function pick(scores, drawn) {
  const order = Array.from(scores, (score, number) => ({ score, number })).sort((a, b) => b.score - a.score).slice(0, TOP_K);
  const weights = order.map(({ score }) => Math.exp((score - order[0].score) / TEMPERATURE));
  let left = drawn * weights.reduce((sum, weight) => sum + weight, 0);
  return order[Math.max(0, weights.findIndex((weight) => (left -= weight) < 0))].number;
}
