/** The worker of language models, which the tabs Chat, Fine-tune and Search share: one Python, which does one thing at a time. */

import { keepLoaded } from "./keeping.mjs";
import { size, startWorker } from "./page.mjs";

/** What its tabs load, so that all of them are there without a network once one was. */
const TABS = ["chat.mjs", "tune.mjs", "search.mjs", "plot.mjs"].map((name) => new URL(name, import.meta.url).href);

/** @typedef {{ name: string, parameters: number, added: number, memory: number }} Opened */

/** @type {Worker | null} */
let worker = null;
/** Messages for a worker whose Python still loads. @type {Record<string, unknown>[]} */
let waiting = [];
let isReady = false;
/** Who hears what comes of the last command; null when nothing is done. @type {((message: any) => void) | null} */
let asker = null;
/** The language model that is open. @type {Opened | null} */
let model = null;
/** @type {Set<(what: "work" | "model" | "kept") => void>} */
const watchers = new Set();

export const isBusy = () => asker !== null;
export const opened = () => model;

/** Whoever wants to know when work begins or ends, a model is opened or let go, or a file is kept. @param {(what: "work" | "model" | "kept") => void} act */
export const watch = (act) => void watchers.add(act);

/** @param {"work" | "model" | "kept"} what */
const changed = (what) => watchers.forEach((act) => act(what));

/**
 * Has the worker do something, unless it is busy: it starts with the first command. A command that fails ends with `failed`.
 * @param {Record<string, unknown>} command @param {(message: any) => void} hear
 */
export function ask(command, hear) {
  if (asker) return;
  asker = hear;
  changed("work");
  worker ??= startWorker("language", receive);
  send(command);
}

/** Ends what is done, as soon as it can. */
export function stop() {
  if (asker) send({ do: "stop" });
}

/** @param {Record<string, unknown>} command */
function send(command) {
  if (isReady) worker?.postMessage(command);
  else waiting.push(command);
}

/** @param {any} message */
function receive(message) {
  if (message.is === "ready") {
    isReady = true;
    for (const command of waiting) worker?.postMessage(command);
    waiting = [];
  } else if (message.is === "loaded") void keepLoaded([...TABS, ...message.addresses]).catch(console.info);
  else if (message.is === "broken") {
    worker?.terminate();
    [worker, isReady, waiting] = [null, false, []];
    asker?.({ is: "failed", text: message.text });
    become(null);
    rest();
  } else if (message.is === "idle") rest();
  else if (message.is === "kept") changed("kept");
  else if (message.is === "closed") become(null);
  else {
    if (message.is === "opened") become(message);
    asker?.(message);
  }
}

/** @param {Opened | null} now */
function become(now) {
  model = now;
  changed("model");
}

function rest() {
  asker = null;
  changed("work");
}

/** What a message of work says that every tab shows alike; "" for another. @param {any} message */
export function words(message) {
  if (message.is === "loading") return `Loading ${message.what} …`;
  if (message.is === "fetching") return `${size(message.came)}${message.total ? ` of ${size(message.total)}` : ""}`;
  if (message.is === "checking") return "Checking …";
  if (message.is === "opening") return `Opening ${message.name} …`;
  if (message.is === "failed") return message.text;
  if (message.is !== "opened") return "";
  const added = message.added ? ` and an adapter of ${message.added.toLocaleString("en")}` : "";
  return `${message.name}: ${message.parameters.toLocaleString("en")} parameters${added}, ${size(message.memory)} on the GPU`;
}
