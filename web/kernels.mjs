/** Kernels that a worker will probably need: those of its last visit, or those of the first model that it offers. */

const CACHE = "pywebgpu-kernels";
const FAMILIES = ["swiftshader", "nvidia"]; // as pywebgpu/hosts/first_kernels.py has them; all else is "other"
let kept = 0; // how many were kept

/** @typedef {import("../js_bridge/bridge.mjs").Info} Info */
/** @typedef {Pick<import("../js_bridge/wire.d.ts").Kernel, "name" | "wgsl" | "bindings" | "needs">} Kernel */

/**
 * For the adapter that this page gets, and this version of the library.
 * @param {{ version: string, kept: Record<string, string> }} config @returns {Promise<Kernel[]>}
 */
export async function foreseen({ version, kept: addresses }) {
  const { info } = (await navigator.gpu?.requestAdapter({ powerPreference: "high-performance" })) ?? {};
  if (!info) return [];
  const found = await (await (await storage())?.match(addressOf(info)))?.json();
  if (found?.version === version) return found.kernels;
  const words = `${info.vendor} ${info.architecture}`.toLowerCase();
  const family = FAMILIES.find((name) => words.includes(name)) ?? "other";
  const address = addresses[`kernels-${family}.json`];
  return address && self.name !== "language" ? await (await fetch(new URL(address, self.location.href))).json() : [];
}

/** Keeps those that the device has now, where there are more of them than before. @param {string} version @param {import("../js_bridge/bridge.mjs").Bridge} bridge */
export async function remember(version, { info, pipelines }) {
  if (pipelines.size <= kept) return;
  kept = pipelines.size;
  await (await storage())?.put(addressOf(info), new Response(JSON.stringify({ version, kernels: pipelines.kernels })));
}

/** Pages of some origins have no storage. */
const storage = () => globalThis.caches?.open(CACHE).catch(() => undefined);

/** @param {Pick<Info, "vendor" | "architecture">} info */
const addressOf = ({ vendor, architecture }) => `/${CACHE}/${encodeURIComponent(`${self.name} ${vendor} ${architecture}`)}`;
