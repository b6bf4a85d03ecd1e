/** Starts the page: says what is missing, switches tabs, and loads what a tab needs when it is first shown. */

import { isSoftware, lack } from "./environment.mjs";
import { button, element } from "./page.mjs";
import { TrainTab } from "./train.mjs";

const TABS = ["train", "editor", "gpu"];
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

const { kept, hasFirst } = JSON.parse(element("config", HTMLScriptElement).text);
const train = new TrainTab();
show(TABS.includes(location.hash.slice(1)) ? location.hash.slice(1) : TABS[0]);
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

/** @param {string} wanted */
function show(wanted) {
  if (!TABS.includes(wanted)) return;
  for (const name of TABS) {
    const tab = button(`tab-${name}`);
    tab.ariaSelected = String(name === wanted);
    tab.tabIndex = name === wanted ? 0 : -1;
    element(name, HTMLElement).hidden = name !== wanted;
  }
  if (location.hash.slice(1) !== wanted && (location.hash || wanted !== TABS[0])) history.replaceState(null, "", `#${wanted}`);
  if (wanted === "train") train.open();
  if (wanted === "editor") {
    editor ??= import("./editor.mjs");
    editor.catch((error) => (element("editor-status", HTMLElement).textContent = `The editor cannot be loaded: ${error.message}`));
  }
  if (wanted === "gpu") void import("./measure.mjs");
}
