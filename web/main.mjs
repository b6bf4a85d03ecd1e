/** Starts the page: says what is missing, switches tabs, and loads what a tab needs when it is first shown. */

import { isSoftware, lack } from "./environment.mjs";
import { button, element } from "./page.mjs";
import { TrainTab } from "./train.mjs";

const { kept, hasFirst, hasGallery } = JSON.parse(element("config", HTMLScriptElement).text);
const TABS = ["train", ...(hasGallery ? ["gallery"] : []), "editor", "gpu"];
/** @type {Promise<typeof import("./editor.mjs")> | null} */
let editor = null;

for (const name of TABS) {
  button(`tab-${name}`).addEventListener("click", () => show(name));
}
element("tab-train", HTMLElement).parentElement?.addEventListener("keydown", (event) => {
  const at = TABS.findIndex((name) => button(`tab-${name}`).ariaSelected === "true");
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const name = /** @type {string} */ (TABS.at(to % TABS.length));
  show(name);
  button(`tab-${name}`).focus();
});
addEventListener("hashchange", () => show(location.hash.slice(1)));

button("tab-gallery").hidden = element("examples", HTMLSelectElement).hidden = !hasGallery;
const train = new TrainTab();
show(TABS.includes(location.hash.slice(1).split("/")[0]) ? location.hash.slice(1) : TABS[0]);
void Promise.all([lack(), isSoftware()]).then(([missing, isSlow]) => {
  const isFree = hasFirst && !document.querySelector("#samples article") && !new URLSearchParams(location.search).has("start");
  const foresee = () => train.foresee();
  if (isFree && !element("train", HTMLElement).hidden) {
    void import("./first.mjs")
      .then(async (first) => void (await (missing || isSlow ? first.replay() : first.write(kept["player.mjs"], foresee))))
      .catch(console.info)
      .then(foresee);
  } else foresee();
  if (!missing) return;
  const notice = element("missing", HTMLElement);
  const [title, text, list] = notice.children;
  title.textContent = missing.title;
  text.textContent = missing.text;
  list.replaceChildren(
    ...missing.advice.map((line) => Object.assign(document.createElement("li"), { textContent: line })),
  );
  notice.hidden = false;
  train.useCpu();
});

// A page of the documentation shows the editor alone.
document.documentElement.classList.toggle("framed", window.top !== window);

/** Shows a tab, or a piece of the gallery in the editor: gallery/NAME. @param {string} address */
function show(address) {
  const [first, piece] = address.split("/");
  const wanted = piece ? "editor" : first;
  if (!TABS.includes(first)) return;
  for (const name of TABS) {
    const tab = button(`tab-${name}`);
    tab.ariaSelected = String(name === wanted);
    tab.tabIndex = name === wanted ? 0 : -1;
    element(name, HTMLElement).hidden = name !== wanted;
  }
  if (location.hash.slice(1) !== address && (location.hash || address !== TABS[0])) history.replaceState(null, "", `#${address}`);
  if (wanted === "train") train.open();
  else if (!document.querySelector("#editor-style")) {
    document.head.append(Object.assign(document.createElement("link"), { id: "editor-style", rel: "stylesheet", href: "editor.css" }));
  }
  if (wanted === "gallery") void import("./gallery.mjs").then(({ showGallery }) => showGallery());
  if (wanted === "editor") {
    editor ??= import("./editor.mjs");
    if (piece) void editor.then(({ openPiece }) => openPiece(piece));
    editor.catch((error) => (element("editor-status", HTMLElement).textContent = `The editor cannot be loaded: ${error.message}`));
  }
  if (wanted === "gpu") void import("./measure.mjs");
}
