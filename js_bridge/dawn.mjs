/** WebGPU for Node: npm's `webgpu`, which is Dawn, under the names that browsers give it. */

import { existsSync, globSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { types } from "node:util";

/** Where a software driver that Dawn accepts comes with a browser. */
const SOFTWARE = [
  "/usr/lib/chromium/vk_swiftshader_icd.json",
  "/opt/google/chrome/vk_swiftshader_icd.json",
  `${homedir()}/.cache/ms-playwright/chromium*/chrome-linux*/vk_swiftshader_icd.json`,
];
const GPU_NODES = ["/dev/dri/renderD*", "/dev/nvidia[0-9]*", "/dev/dxg"];
// Float16 and subgroup matrices, which Dawn has where adapters do, and hands out only when told to.
const ENABLING = "enable-dawn-features=";
const TOGGLES = ["allow_unsafe_apis", "vulkan_enable_f16_on_nvidia"];

/** Puts `navigator.gpu` and the constants of WebGPU where a page has them. @param {string} [module] Dawn's own address */
export async function offerWebGPU(module = "webgpu") {
  if (process.platform === "linux") {
    process.env.XDG_RUNTIME_DIR ??= tmpdir(); // Mesa complains on stderr where it is not set, and needs nothing there.
    chooseDriver();
  }
  const { create, globals } = await import(module);
  Object.assign(globalThis, globals);
  // Options of Dawn itself: "backend=null" runs nothing, which leaves the cost of the host.
  const options = (process.env.PYWEBGPU_DAWN ?? "").split(" ").filter(Boolean);
  const at = options.findIndex((option) => option.startsWith(ENABLING));
  options[at < 0 ? options.length : at] = [options[at] ?? ENABLING, ...TOGGLES].join(",").replace("=,", "=");
  const gpu = Object.assign(create(options), { waitUntil: turnsOfDawn() });
  // Dawn ends the process when this object is collected; `navigator` keeps it.
  Object.defineProperty(globalThis.navigator, "gpu", { value: gpu, configurable: true });
}

/**
 * Dawn asks its driver what is done in turns of the event loop, each asked for by setImmediate. Who gets what this
 * returns can have these turns taken at once, without leaving JavaScript, until something is there.
 */
function turnsOfDawn() {
  const later = globalThis.setImmediate;
  const isNative = /^function \(\) \{ \[native code\] \}$/;
  /** @type {{ act: () => void, handle: NodeJS.Immediate | null }[]} */
  let turns = [];
  let isTaken = false;
  const queue = (/** @type {typeof turns[0]} */ turn) =>
    (turn.handle = later(() => {
      turns = turns.filter((other) => other !== turn);
      turn.act();
    }));
  const asked = (/** @type {any} */ act, /** @type {any[]} */ ...rest) => {
    // Proxies and bound functions, which have a name, have such a text, too.
    const isOther = rest.length || types.isProxy(act) || act.name || !isNative.test(Function.prototype.toString.call(act));
    if (isOther) return later(act, ...rest);
    const turn = { act, handle: null };
    turns.push(turn);
    return isTaken ? null : queue(turn);
  };
  globalThis.setImmediate = Object.defineProperties(/** @type {any} */ (asked), Object.getOwnPropertyDescriptors(later));
  return (/** @type {() => boolean} */ isThere) => {
    isTaken = true;
    for (const { handle } of turns) if (handle) clearImmediate(handle);
    try {
      while (!isThere() && turns.length) turns.shift()?.act();
    } finally {
      isTaken = false;
      turns.forEach(queue);
    }
  };
}

/** On a Linux without a GPU the one driver of Vulkan that Dawn can use is SwiftShader. */
function chooseDriver() {
  if (globSync(GPU_NODES).length) return;
  const chosen = process.env.VK_DRIVER_FILES ?? process.env.VK_ICD_FILENAMES ?? "";
  if (chosen && !chosen.includes("lvp_")) return; // Dawn refuses Mesa's lavapipe.
  const found = globSync(SOFTWARE).find((file) => existsSync(file));
  if (found) process.env.VK_DRIVER_FILES = found;
}
