import "./device.mjs";

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { Bridge } from "../bridge.mjs";

const bridge = await Bridge.open();
after(() => setTimeout(() => process.exit(process.exitCode), 100)); // Dawn keeps the process alive.

/** @param {number} n */
const floats = (n) => Float32Array.from({ length: n }, (_, i) => i);
/** @param {ArrayBufferView} view */
const bytes = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
/** @param {Uint8Array} found */
const asFloats = (found) => [...new Float32Array(found.buffer, found.byteOffset, found.byteLength / 4)];

/** y = body of x, with n elements. @param {string} body @param {Partial<import("../wire.d.ts").Program>} [more] */
function program(body, more = {}, n = 4, bindings = "rwn") {
  const wgsl = `@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> numbers: vec4u;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) at: vec3u) {
  if (at.x >= ${n}u) { return; }
  y[at.x] = ${body};
}`;
  const value = (/** @type {number} */ buffer) => ({ buffer, dtype: "float32", shape: [n] });
  return JSON.stringify({
    version: 1,
    kernels: [{ name: "test", wgsl, grid: [1, 1, 1], bindings }],
    steps: [[0, 0, 1]],
    sizes: [4 * n, 4 * n],
    scratch: [],
    inputs: [value(0)],
    outputs: [value(1)],
    numbers: ["float32"],
    written: [],
    lower_bound: 0,
    ...more,
  });
}

const two = new Uint32Array(new Float32Array([2]).buffer);

test("what is written is read", async () => {
  bridge.write(1, bytes(floats(5)));
  assert.deepEqual(asFloats(await bridge.read(1, 20)), [0, 1, 2, 3, 4]);
  bridge.free(1);
});

test("a program runs, also before its pipelines are there", async () => {
  bridge.write(1, bytes(floats(4)));
  bridge.load(1, program("x[at.x] * bitcast<f32>(numbers.x)"));
  bridge.run(1, [1], [2], two);
  assert.deepEqual(asFloats(await bridge.read(2, 16)), [0, 2, 4, 6]);
});
