/** Starts the page: says what is missing, switches tabs, and loads what a tab needs when it is first shown. */

import { isSoftware, lack } from "./environment.mjs";
import { button, element } from "./page.mjs";
import { TrainTab } from "./train.mjs";

const { kept, hasFirst, hasGallery } = JSON.parse(element("config", HTMLScriptElement).text);
const PATIENCE = 500; // milliseconds
const TABS = ["train", ...(hasGallery ? ["gallery"] : []), "editor", "chat", "tune", "search", "gpu"];
/** @type {Promise<typeof import("./editor.mjs")> | null} */
let editor = null;
/** @type {Promise<unknown> | null} the sheet of all tabs but the first */
let styled = null;
let shown = "";

for (const name of TABS) {
  button(`tab-${name}`).addEventListener("click", () => void show(name));
}
element("tab-train", HTMLElement).parentElement?.addEventListener("keydown", (event) => {
  const at = TABS.findIndex((name) => button(`tab-${name}`).ariaSelected === "true");
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const name = /** @type {string} */ (TABS.at(to % TABS.length));
  void show(name);
  button(`tab-${name}`).focus();
});
addEventListener("hashchange", () => void show(location.hash.slice(1)));

button("tab-gallery").hidden = element("examples", HTMLSelectElement).hidden = !hasGallery;
const train = new TrainTab();
const known = lack().then((missing) => {
  if (missing) tell(missing);
  return missing;
});
/** What is missing stands above all else, so nothing is shown before it is known, unless that takes long. */
const isKnown = Promise.race([known, new Promise((resolve) => setTimeout(resolve, PATIENCE))]);
void show(TABS.includes(location.hash.slice(1).split("/")[0]) ? location.hash.slice(1) : TABS[0]);
void Promise.all([known, isSoftware()]).then(([missing, isSlow]) => {
  const isFree = hasFirst && !document.querySelector("#samples article") && !new URLSearchParams(location.search).has("start");
  const foresee = () => train.foresee();
  if (isFree && shown === "train") {
    void import("./first.mjs")
      .then(async (first) => void (await (missing || isSlow ? first.replay() : first.write(kept["player.mjs"], foresee))))
      .catch(console.info)
      .then(foresee);
  } else foresee();
});

// A page of the documentation shows the editor alone.
document.documentElement.classList.toggle("framed", window.top !== window);

/** Shows a tab, or a piece of the gallery in the editor: gallery/NAME. @param {string} address */
async function show(address) {
  const [first, piece] = address.split("/");
  const wanted = piece ? "editor" : first;
  if (!TABS.includes(first)) return;
  shown = wanted;
  for (const name of TABS) {
    const tab = button(`tab-${name}`);
    tab.ariaSelected = String(name === wanted);
    tab.tabIndex = name === wanted ? 0 : -1;
  }
  if (location.hash.slice(1) !== address && (location.hash || address !== TABS[0])) history.replaceState(null, "", `#${address}`);
  if (wanted === "train") train.open();
  await Promise.all([isKnown, wanted !== "train" && (styled ??= style())]); // Once it is seen nothing moves.
  if (shown !== wanted) return;
  for (const name of TABS) element(name, HTMLElement).hidden = name !== wanted;
  document.documentElement.classList.remove("waiting");
  if (wanted === "gallery") void import("./gallery.mjs").then(({ showGallery }) => showGallery());
  if (wanted === "editor") {
    editor ??= import("./editor.mjs");
    if (piece) void editor.then(({ openPiece }) => openPiece(piece));
    editor.catch((error) => (element("editor-status", HTMLElement).textContent = `The editor cannot be loaded: ${error.message}`));
  }
  if (["chat", "tune", "search"].includes(wanted)) void import(`./${wanted}.mjs`);
  if (wanted === "gpu") void import("./measure.mjs");
}

function style() {
  const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href: "editor.css" });
  document.head.append(link);
  return new Promise((resolve) => (link.onload = link.onerror = resolve));
}

/** @param {import("./environment.mjs").Lack} missing */
function tell(missing) {
  const notice = element("missing", HTMLElement);
  const [title, text, list] = notice.children;
  title.textContent = missing.title;
  text.textContent = missing.text;
  list.replaceChildren(
    ...missing.advice.map((line) => Object.assign(document.createElement("li"), { textContent: line })),
  );
  notice.hidden = false;
  train.useCpu();
}
