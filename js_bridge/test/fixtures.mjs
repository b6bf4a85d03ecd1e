/** What the tests share: a device of Dawn's, on the software driver where Linux shows no GPU, and small Programs. */

import assert from "node:assert/strict";
import { after } from "node:test";

import { Bridge } from "../bridge.mjs";
import { offerWebGPU } from "../dawn.mjs";

await offerWebGPU();
after(() => setTimeout(() => process.exit(process.exitCode), 100)); // Dawn keeps the process alive.

/** @returns {Promise<Bridge>} */
export const open = () => Bridge.open();

/** @param {number[]} values */
export const floats = (values) => new Uint8Array(Float32Array.from(values).buffer);

/** @param {number[]} values */
export const words = (values) => new Uint32Array(Float32Array.from(values).buffer);

/** @param {Uint8Array} found */
export const asFloats = (found) => [...new Float32Array(found.buffer, found.byteOffset, found.byteLength / 4)];

/** @param {Promise<any>} promise @param {string} kind @param {RegExp} message */
export const rejects = (promise, kind, message) =>
  assert.rejects(promise, (/** @type {any} */ error) => {
    assert.equal(error.kind, kind);
    assert.match(error.message, message);
    return true;
  });

/** What kernels without host numbers are given. */
export const none = new Uint32Array();

/** @param {number} buffer @param {number} n */
export const value = (buffer, n) => ({ buffer, dtype: "float32", shape: [n] });

/**
 * A kernel y = body over n elements; `x`, `y`, `numbers` and `fault` are bound as the letters say.
 * @param {string} body @param {string} bindings @param {number} n @returns {import("../wire.d.ts").Kernel}
 */
export function kernel(body, bindings = "rw", n = 4) {
  const declared = {
    r: "var<storage, read> x: array<f32>;",
    w: "var<storage, read_write> y: array<f32>;",
    n: "var<uniform> numbers: vec4f;",
    f: "var<storage, read_write> fault: array<i32, 4>;",
  };
  const head = [...bindings].map((letter, at) => `@group(0) @binding(${at}) ${declared[/** @type {"r"} */ (letter)]}`);
  const main = `@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) at: vec3u) {
  let i = at.x;
  if (i >= ${n}u) { return; }
  ${body}
}`;
  return { name: "test", wgsl: [...head, main].join("\n"), grid: [1, 1, 1], bindings };
}

/** One step from an input to an output of n floats. @param {Partial<import("../wire.d.ts").Program>} parts @param {number} n */
export function program(parts = {}, n = 4) {
  const kernels = parts.kernels ?? [kernel("y[i] = x[i] * numbers.x;", "rwn", n)];
  const hasBlock = kernels[0].bindings.includes("n");
  return JSON.stringify({
    version: 4,
    kernels,
    steps: [hasBlock ? [0, 0, 1, 0] : [0, 0, 1]],
    sizes: [4 * n, 4 * n],
    ranges: [],
    scratch: [],
    inputs: [value(0, n)],
    outputs: [value(1, n)],
    numbers: ["float32"],
    blocks: hasBlock ? [[0]] : [],
    written: [],
    lower_bound: 0,
    ...parts,
  });
}
