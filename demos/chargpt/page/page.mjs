/** Trains a small GPT and lets it write, by programs that were exported from Python: see ../export.py. */

import { BridgeError, load } from "./player.mjs";

const LENGTH = 400; // characters of a passage
const TOP_K = 40;

/** @param {string} id @returns {any} */
const at = (id) => document.getElementById(id);

/** Losses of the steps that ran in this page. @type {number[]} */
export const losses = [];
/** @type {import("./player.d.mts").Player} */
let player;
/** @type {any} the settings of the run, and its vocabulary */
let about;
/** @type {number[]} the text as numbers of characters */
let text;
/** @type {Map<string, number>} */
let numberOf;
let isTraining = false;
let isWriting = false;

/** Random numbers of [0, 1) from a seed: mulberry32. @param {number} seed */
function random(seed) {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

async function start() {
  try {
    const [loaded, settings, whole] = await Promise.all([
      load("./", { progress: tellLoaded }),
      fetch("text.json").then((answer) => answer.json()),
      fetch("text.txt").then((answer) => answer.text()),
    ]);
    player = loaded;
    about = settings;
    numberOf = new Map(about.vocabulary.map((/** @type {string} */ character, /** @type {number} */ number) => [character, number]));
    text = Array.from(whole, (character) => /** @type {number} */ (numberOf.get(character))).slice(0, about.trained_on);
    const { name, isFallback } = player.bridge.info;
    at("machine").textContent = `${name}${isFallback ? ", a software adapter: slow" : ""}. ${count()} parameters.`;
    at("train").onclick = () => (isTraining ? stop() : train());
    at("forget").onclick = () => {
      player.optimizer.reset();
      at("status").textContent = "The optimizer begins anew";
    };
    at("write").onsubmit = (/** @type {Event} */ event) => {
      event.preventDefault();
      void write();
    };
    show();
  } catch (error) {
    tell(error);
    at("cards").hidden = true; // Nothing here can train or write.
  }
}

/** @param {number} done @param {number} all kernels */
function tellLoaded(done, all) {
  at("loading").value = done / all;
  at("status").textContent = `Compiling ${done} of ${all} kernels …`;
}

const count = () => player.params.names.reduce((sum, name) => sum + player.params.shape(name).reduce((n, m) => n * m, 1), 0).toLocaleString("en");

/** What goes wrong stands on the page. @param {unknown} error */
function tell(error) {
  const isAbsent = error instanceof BridgeError && error.kind === "absent";
  const told = error instanceof Error ? error.message : String(error);
  const message = told.charAt(0).toUpperCase() + told.slice(1);
  at("trouble").textContent = isAbsent ? `${message}. A recent Chrome, Edge, Firefox or Safari has WebGPU.` : message;
  at("trouble").hidden = false;
  at("status").textContent = "";
}

function show() {
  at("loading").hidden = true;
  at("train").disabled = at("go").disabled = at("forget").disabled = false;
  at("train").textContent = isTraining ? "Pause" : "Train";
  at("forget").disabled = isTraining;
  at("go").disabled = isWriting;
  at("status").textContent = isTraining ? "Training" : losses.length ? "Paused" : "Ready";
}

/** Up in a line, then down along a cosine, as train.py has it. @param {number} step */
function rateAt(step) {
  const { rate, steps, warm_up: warmUp, floor } = about;
  if (step < warmUp) return (rate * (step + 1)) / warmUp;
  const done = Math.min(1, (step - warmUp) / Math.max(1, steps - warmUp));
  return rate * (floor + (1 - floor) * 0.5 * (1 + Math.cos(Math.PI * done)));
}

/** Pieces of the text from places drawn for this step, and the same moved on by one. @param {number} step */
function batch(step) {
  const { batch: size, context, seed } = about;
  const draw = random(seed * 1000003 + step);
  const starts = Array.from({ length: size }, () => Math.floor(draw() * (text.length - context)));
  return {
    characters: starts.flatMap((begin) => text.slice(begin, begin + context)),
    targets: starts.flatMap((begin) => text.slice(begin + 1, begin + context + 1)),
  };
}

async function train() {
  isTraining = true;
  show();
  const begun = performance.now();
  const before = losses.length;
  try {
    while (isTraining) {
      const step = player.options.step;
      player.options.lr = rateAt(step);
      losses.push(/** @type {number} */ (await player.step("training", batch(step))));
      at("step").textContent = (step + 1).toLocaleString("en");
      at("loss").textContent = losses[losses.length - 1].toFixed(3);
      at("rate").textContent = player.options.lr.toPrecision(2);
      const seconds = (performance.now() - begun) / 1000;
      at("speed").textContent = Math.round(((losses.length - before) * about.batch * about.context) / seconds).toLocaleString("en");
      draw();
    }
  } catch (error) {
    isTraining = false;
    tell(error);
    return;
  }
  show();
}

function stop() {
  isTraining = false;
  at("status").textContent = "Pausing …";
}

/** The losses as a line, at most 600 points of it. */
function draw() {
  const every = Math.ceil(losses.length / 600);
  const shown = losses.filter((_, step) => step % every === 0);
  const [low, high] = [Math.min(...shown), Math.max(...shown)];
  const points = shown.map((loss, step) => {
    const x = (600 * step) / Math.max(1, shown.length - 1);
    const y = 152 - (144 * (loss - low)) / Math.max(1e-6, high - low);
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  });
  at("line").setAttribute("points", points.join(" "));
  at("high").textContent = high.toFixed(2);
  at("low").textContent = low.toFixed(2);
  at("last").textContent = `step ${losses.length.toLocaleString("en")}`;
  at("described").textContent = `Loss by step, in nats a character; lower is better. Between ${low.toFixed(2)} and ${high.toFixed(2)} so far.`;
}

async function write() {
  const prompt = at("prompt").value;
  const unknown = [...prompt].find((character) => !numberOf.has(character));
  at("trouble").hidden = true;
  if (unknown !== undefined) {
    tell(new Error(`The character “${unknown}” does not occur in the text that it learns from.`));
    show();
    return;
  }
  isWriting = true;
  show();
  const known = Array.from(prompt, (character) => /** @type {number} */ (numberOf.get(character)));
  const draw = random(about.seed + player.options.step);
  at("sample").textContent = prompt;
  try {
    for (let n = 0; n < LENGTH; n++) {
      const seen = known.slice(-about.context);
      // Always a whole context, so that one program serves every length; the model never looks ahead.
      const characters = [...seen, ...Array(about.context - seen.length).fill(0)];
      const scores = /** @type {import("./player.d.mts").Tensor} */ (await player.run("inference", { characters, last: seen.length - 1 }));
      known.push(pick(scores.data, Number(at("temperature").value), draw()));
      at("sample").textContent += about.vocabulary[known[known.length - 1]];
      at("sample").scrollTop = at("sample").scrollHeight;
    }
  } catch (error) {
    tell(error);
  }
  isWriting = false;
  show();
}

/** One of the likeliest characters, drawn by their scores. @param {ArrayLike<number>} scores @param {number} temperature @param {number} drawn of [0, 1) */
function pick(scores, temperature, drawn) {
  const order = Array.from(scores, (score, number) => ({ score, number })).sort((a, b) => b.score - a.score).slice(0, TOP_K);
  const weights = order.map(({ score }) => Math.exp((score - order[0].score) / Math.max(temperature, 1e-3)));
  let left = drawn * weights.reduce((sum, weight) => sum + weight, 0);
  const found = weights.findIndex((weight) => (left -= weight) < 0);
  return order[Math.max(0, found)].number;
}

await start();
