/** The Gallery tab: programs to open in the editor. None runs by itself. */

import { canSuspend } from "./environment.mjs";
import { element } from "./page.mjs";

/** An example is offered in the editor alone. @typedef {{ name: string, title: string, about: string, isExample: boolean }} Piece */

/** @type {Promise<Piece[]> | null} */
let all = null;

/** All programs of the gallery. @returns {Promise<Piece[]>} */
export function pieces() {
  return (all ??= load("gallery/index.json").then((answer) => answer.json()));
}

/** The source of one. @param {string} name @returns {Promise<string>} */
export async function source(name) {
  return (await load(`gallery/${encodeURIComponent(name)}.py`)).text();
}

/** @param {string} address */
async function load(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address}: ${answer.status} ${answer.statusText}`);
  return answer;
}

/** Fills the tab. */
export async function showGallery() {
  const place = element("pieces", HTMLElement);
  try {
    place.replaceChildren(...(canSuspend ? [] : [notice()]), ...(await pieces()).filter(({ isExample }) => !isExample).map(card));
  } catch (error) {
    place.textContent = `The gallery cannot be loaded: ${error instanceof Error ? error.message : error}`;
  }
}

/** @param {Piece} piece */
function card({ name, title, about }) {
  const made = Object.assign(document.createElement("a"), { href: `#gallery/${name}`, className: "piece" });
  const image = Object.assign(document.createElement("img"), { src: `gallery/${name}.svg`, alt: "", width: 160, height: 160 });
  const heading = Object.assign(document.createElement("h2"), { textContent: title });
  made.append(image, heading, Object.assign(document.createElement("p"), { textContent: about }));
  return made;
}

/** What is to be known where Python cannot wait for the GPU. */
function notice() {
  const textContent =
    "These programs read what the GPU computes without await, as any Python does. This browser lacks JavaScript Promise Integration, so they stop where they first read: " +
    "a recent Chrome or Edge runs them. The Train tab works here as well.";
  return Object.assign(document.createElement("p"), { className: "notice", textContent });
}
