/** The two files of an export: fetched, and held against each other before anything is made of them. */

import { BridgeError, refuse } from "./errors.mjs";
import { parse } from "./safetensors.mjs";
import { checkExport } from "./validate.mjs";

export const VERSION = 3;

/**
 * @typedef {import("./runner.mjs").Step} Step
 * @typedef {{ dtype: string, shape: number[], parts: [string, number][] }} State
 * @typedef {{ name: string, kind: string, state: number, offset: number, shape: number[] }} Named
 * @typedef {{ name: string, value: number, kind: "option" | "count" | "draws" }} Cell
 * @typedef {{ format: string, version: number, states: State[], tensors: Named[], cells: Cell[],
 *   programs: Record<string, Step> }} Data
 */

/** Files whose parts fit together. Throws BridgeError. @param {import("./player.d.mts").Files} files */
export function checked(files) {
  /** @type {any} */
  let data;
  try {
    data = JSON.parse(files.program);
  } catch (error) {
    throw refuse(`program.json: it is not JSON: ${error instanceof Error ? error.message : error}`);
  }
  if (data?.format !== "pywebgpu" || data.version !== VERSION) {
    throw new BridgeError("compile", `an export of the format ${data?.format} ${data?.version}; this player reads pywebgpu ${VERSION}`);
  }
  const weights = parse(files.weights);
  checkExport(data, weights);
  return { data: /** @type {Data} */ (data), weights };
}

/** @param {string | URL} address */
export async function fetched(address) {
  const base = new URL(address, globalThis.location?.href ?? import.meta.url);
  if (!base.pathname.endsWith("/")) base.pathname += "/";
  const [program, weights] = await Promise.all([bytesOf(new URL("program.json", base)), bytesOf(new URL("weights.safetensors", base))]);
  return { program: new TextDecoder().decode(program), weights };
}

/** @param {URL} address @returns {Promise<ArrayBuffer>} */
async function bytesOf(address) {
  try {
    if (address.protocol === "file:") {
      const { readFile } = await import("node:fs/promises");
      return new Uint8Array(await readFile(address)).buffer;
    }
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
    return await answer.arrayBuffer();
  } catch (error) {
    throw refuse(`cannot load ${address}: ${error instanceof Error ? error.message : error}`);
  }
}
