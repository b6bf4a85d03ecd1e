/** What every part of the page uses: its elements, its worker, and bytes in words. */

/**
 * The element of an id, which is of this class.
 * @template {HTMLElement} T
 * @param {string} id @param {new () => T} kind
 * @returns {T}
 */
export function element(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`index.html has no ${kind.name} #${id}`);
  return found;
}

/** @param {string} id */
export const button = (id) => element(id, HTMLButtonElement);
/** @param {string} id */
export const input = (id) => element(id, HTMLInputElement);

/**
 * A worker with Python in it.
 * @param {"training" | "editing" | "language" | "measuring"} name @param {(message: any) => void} hear @param {{ device?: "cpu" }} [options]
 */
export function startWorker(name, hear, options = {}) {
  const worker = new Worker(new URL("worker.mjs", import.meta.url), { type: "module", name });
  worker.postMessage({ ...JSON.parse(element("config", HTMLScriptElement).text), ...options });
  worker.addEventListener("message", ({ data }) => hear(data));
  worker.addEventListener("error", (event) => hear({ is: "broken", text: event.message || "the worker could not be started" }));
  return worker;
}

/** Copies a link, and shows it in the address bar, whatever the clipboard allows. It runs nothing by itself. @param {URL} link */
export async function share(link) {
  history.replaceState(null, "", link);
  await navigator.clipboard?.writeText(link.href).catch(() => undefined);
  const status = element(location.hash === "#editor" ? "editor-status" : "status", HTMLElement);
  status.textContent = "The link is copied.";
}

/** Runs `act` at the next frame, once however often it is asked for. @param {() => void} act */
export function atFrame(act) {
  let isAsked = false;
  return () => {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(() => {
      isAsked = false;
      act();
    });
  };
}

const UNITS = ["B", "KiB", "MiB", "GiB"];

/** @param {number} bytes */
export function size(bytes) {
  let unit = 0;
  for (; bytes >= 1024 && unit < UNITS.length - 1; unit++) bytes /= 1024;
  return `${bytes.toFixed(unit && bytes < 100 ? 1 : 0)} ${UNITS[unit]}`;
}

/** @param {number} seconds */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  const parts = (/** @type {number} */ count) => `${Math.floor(count / 60)}:${String(Math.floor(count % 60)).padStart(2, "0")}`;
  if (seconds < 60) return `${Math.ceil(seconds)} s`;
  return seconds < 3600 ? `${parts(seconds)} min` : `${parts(seconds / 60)} h`;
}

/** Writes names and values into a <dl>, in place of what it holds. @param {HTMLElement} list @param {Record<string, string>} values */
export function describe(list, values) {
  const rows = Object.entries(values).map(([name, value]) => {
    const row = document.createElement("div");
    const [term, text] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = name;
    text.textContent = value;
    row.append(term, text);
    return row;
  });
  list.replaceChildren(...rows);
}

/** @param {Uint8Array<ArrayBuffer>} bytes @param {string} name */
export function download(bytes, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
