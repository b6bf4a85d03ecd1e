/** Where the tuning of an adapter is kept, as text: in Node a file of the cache folder, in a browser the origin's storage. */

const CACHE = "pywebgpu-tuning";

/** @param {import("./bridge.mjs").Info} info */
const nameOf = ({ vendor, architecture, name }) => encodeURIComponent(`${vendor} ${architecture} ${name} tint`);

/** The text; "" where nothing is kept. @param {import("./bridge.mjs").Info} info @returns {Promise<string>} */
export async function load(info) {
  try {
    if (info.host === "node") return (await import("node:fs")).readFileSync(await file(info), "utf-8");
    const found = await (await globalThis.caches?.open(CACHE))?.match(`/${CACHE}/${nameOf(info)}`);
    return (await found?.text()) ?? "";
  } catch {
    return ""; // Speed is no reason to fail: there may be no such file, and pages of some origins have no storage.
  }
}

/** Keeps it. Where, as text; "" where nothing is kept. @param {import("./bridge.mjs").Info} info @param {string} text */
export async function save(info, text) {
  if (info.host === "node") {
    const path = await file(info);
    if (!path) return "";
    const { mkdirSync, renameSync, writeFileSync } = await import("node:fs");
    mkdirSync((await import("node:path")).dirname(path), { recursive: true });
    writeFileSync(`${path}.${process.pid}`, text);
    renameSync(`${path}.${process.pid}`, path);
    return path;
  }
  const cache = await globalThis.caches?.open(CACHE);
  await cache?.put(`/${CACHE}/${nameOf(info)}`, new Response(text));
  return cache ? "this origin's storage" : "";
}

/** As settings.py finds the cache folder. @param {import("./bridge.mjs").Info} info */
async function file(info) {
  const { homedir } = await import("node:os");
  const folder = process.env.PYWEBGPU_CACHE ?? `${process.env.XDG_CACHE_HOME || `${homedir()}/.cache`}/pywebgpu`;
  return folder && `${folder}/tuning/${nameOf(info)}.json`;
}
