import assert from "node:assert/strict";
import { test } from "node:test";

import { kernel, program, value } from "./fixtures.mjs";
import { weights } from "./weights.mjs";
import { load } from "../player.mjs";

const refused = (/** @type {() => any} */ act, /** @type {RegExp} */ message, kind = "usage") =>
  assert.rejects(async () => act(), (/** @type {any} */ error) => {
    assert.equal(error.name, "BridgeError");
    assert.equal(error.kind, kind);
    assert.match(error.message, message);
    return true;
  });

const shown = (/** @type {string} */ kind, /** @type {number} */ at, shape = [4], strides = [1], offset = 0) => ({
  tensor: [kind, at], dtype: "float32", shape, strides, offset,
});

/**
 * Two programs that share a state of four floats: "training" adds x times rate to it (into another buffer) and counts;
 * "inference" returns it times two.
 * @param {object} parts
 */
function files(parts = {}) {
  const training = JSON.parse(program({
    kernels: [{ ...kernel("z[i] = x[i] + y[i] * numbers.x;", "rrwn"), wgsl: WGSL }],
    steps: [[0, 0, 1, 2, 0]], sizes: [16, 16, 16], inputs: [value(0, 4), value(1, 4)], outputs: [value(2, 4)],
  }));
  const inference = JSON.parse(program({ numbers: ["float32"] }));
  return {
    program: JSON.stringify({
      format: "pywebgpu",
      version: 3,
      states: [{ dtype: "float32", shape: [4], parts: [["a", 0], ["b", 2]] }, { dtype: "float32", shape: [2], parts: [] }],
      tensors: [
        { name: "a", kind: "parameter", state: 0, offset: 0, shape: [2] },
        { name: "b", kind: "parameter", state: 0, offset: 2, shape: [1, 2] },
        { name: "a.mean", kind: "optimizer", state: 1, offset: 0, shape: [2] },
      ],
      cells: [{ name: "lr", value: 0.5, kind: "option" }, { name: "lr", value: 0.5, kind: "option" }, { name: "step", value: 0, kind: "count" }],
      programs: {
        training: {
          program: training, tensors: [{ name: "x", dtype: "float32", shape: [4] }], numbers: ["scale"],
          sources: [["state", 0], ["argument", 0]], takers: [[0]],
          host: {
            cells: [["argument", 0], ["cell", 0], ["cell", 2]],
            program: [
              ["read", 0, "float"], ["read", 1, "float"], ["read", 2, "int"], ["int", 100], ["lt", 2, 3], ["guard", 4, true, "(step < 100)"],
              ["int", 1], ["add", 2, 6], ["write", 2, 7], ["mul", 0, 1],
            ],
            words: [9],
          },
          result: { dict: { last: shown("output", 0, [], [], 3), turned: { list: [shown("output", 0, [2, 2], [1, 2]), { number: 7 }] } } },
          captures: { all: shown("output", 0) }, notes: [],
        },
        inference: {
          program: inference, tensors: [], numbers: [], sources: [["state", 0]], takers: [[]],
          host: { cells: [], program: [["float", 2]], words: [0] },
          result: shown("output", 0), captures: {}, notes: [],
        },
      },
      ...parts,
    }),
    weights: weights({ a: ["F32", [2], Float32Array.of(1, 2)], b: ["F16", [1, 2], Uint16Array.of(0x3c00, 0x4000)] }),
  };
}

const WGSL = `@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> z: array<f32>;
@group(0) @binding(3) var<uniform> numbers: vec4f;
@compute @workgroup_size(4) fn main(@builtin(global_invocation_id) at: vec3u) { z[at.x] = x[at.x] + y[at.x] * numbers.x; }`;

test("programs share what they keep, and numbers of the host go on", async () => {
  const player = await load(files());
  assert.deepEqual(player.params.names, ["a", "b"]);
  assert.deepEqual(player.programs.training, { inputs: [{ name: "x", dtype: "float32", shape: [4] }], numbers: ["scale"], notes: [] });
  const found = await player.step("training", { x: [2, 4, 6, 8], scale: 1 });
  assert.deepEqual(found, { last: 6, turned: [{ data: Float32Array.of(2, 4, 4, 6), shape: [2, 2] }, 1] });
  assert.deepEqual(await player.run("inference"), { data: Float32Array.of(4, 8, 8, 12), shape: [4] });
  player.options.lr = 0.25;
  assert.deepEqual([player.options["lr:0"], player.options["lr:1"], player.options.step], [0.25, 0.25, 1]);
  player.options["lr:1"] = 7;
  player.queue("training", { x: Float32Array.of(4, 4, 4, 4), scale: 2 });
  assert.deepEqual((await player.params.get("b")), { data: Float32Array.of(6, 8), shape: [1, 2] });
  assert.deepEqual(await player.captures.get("all"), { data: Float32Array.of(4, 6, 6, 8), shape: [4] });
  assert.deepEqual([player.captures.names, player.captures.has("none"), player.captures.shape("all")], [["all"], false, [4]]);
  assert.deepEqual(await player.params.all(), {
    a: { data: Float32Array.of(4, 6), shape: [2] }, b: { data: Float32Array.of(6, 8), shape: [1, 2] },
  });
  player.close();
});

test("steps that nobody waits for keep their order and their results", async () => {
  const player = await load(files());
  const given = { x: [2, 2, 2, 2], scale: 1 };
  const found = await Promise.all([1, 2, 3].map(() => player.step("training", given)));
  assert.deepEqual(found.map((/** @type {any} */ value) => [value.last, value.turned[1]]), [[3, 1], [4, 2], [5, 3]]);
  player.close();
});

test("a steady step is one submit and makes nothing", async () => {
  const player = await load(files());
  const inputs = { x: new Float32Array(4), scale: 1 };
  /** @type {object[]} */
  const made = [];
  for (let step = 0; step < 8; step++) {
    const before = { ...player.bridge.counters };
    player.queue("training", inputs);
    const after = player.bridge.counters;
    made.push([after.submits - before.submits, after.buffers_created - before.buffers_created, after.bind_groups_created - before.bind_groups_created]);
  }
  assert.deepEqual(made.slice(2), Array(6).fill([1, 0, 0]));
  await player.bridge.settle();
  player.close();
});

test("some tensors are set, and none where one does not fit", async () => {
  const player = await load(files());
  player.params.set({ b: Float32Array.of(7, 8) });
  assert.deepEqual((await player.params.get("a")).data, Float32Array.of(1, 2));
  assert.deepEqual((await player.params.get("b")).data, Float32Array.of(7, 8));
  await refused(() => player.params.set({ a: [0, 0], c: [1] }), /there is no tensor c; there are a, b/);
  await refused(() => player.params.set({ a: [0, 0], b: [1] }), /b has 2 elements; it was given 1/);
  assert.deepEqual((await player.params.get("a")).data, Float32Array.of(1, 2));
  player.optimizer.set({ "a.mean": [3, 4] });
  await player.step("training", { x: [0, 0, 0, 0], scale: 1 });
  player.optimizer.reset();
  assert.deepEqual((await player.optimizer.get("a.mean")).data, Float32Array.of(0, 0));
  assert.equal(player.options.step, 0);
  player.close();
});

test("what does not fit is refused, and nothing has happened", async () => {
  const player = await load(files());
  await refused(() => player.run("train"), /there is no program train; there are training, inference/);
  await refused(() => player.step("training", { x: [1, 2, 3, 4] }), /training takes x, scale; it was given x/);
  await refused(() => player.step("training", { x: [1], scale: 1 }), /x has shape \[4\], which is 4 elements; it was given 1/);
  await refused(() => player.options.rate, /there is no option rate; there are lr, step/);
  await refused(() => (player.options.rate = 1), /there is no option rate/);
  await refused(() => player.captures.get("none"), /nothing is captured as none; there are all/);
  await refused(() => player.captures.get("all"), /all is there once training has run/);
  player.options.step = 100;
  await refused(() => player.step("training", { x: [0, 0, 0, 0], scale: 1 }), /training: .*\(step < 100\) was true and is false/);
  assert.equal(player.options.step, 100);
  assert.deepEqual((await player.params.get("a")).data, Float32Array.of(1, 2));
  player.close();
});

test("files of another version, damaged ones and missing ones are refused", async () => {
  await refused(() => load(files({ version: 1 })), /pywebgpu 1; this player reads pywebgpu 3/, "compile");
  const other = JSON.parse(files().program);
  other.programs.inference.program.version = 99;
  await refused(() => load({ ...files(), program: JSON.stringify(other) }), /inference.a program of version 99/, "compile");
  await refused(() => load({ ...files(), program: "{" }), /program.json: it is not JSON/);
  await refused(() => load({ ...files(), weights: new ArrayBuffer(4) }), /the file has 4 bytes; a header needs 8/);
  await refused(() => load({ ...files(), weights: weights({ a: ["F32", [2], Float32Array.of(1, 2)] }) }), /states\[0\]: a part is a tensor of the weights/);
  await refused(() => load(new URL("file:///there/is/nothing/")), /cannot load file:\/\/\/there\/is\/nothing\/(program.json|weights.safetensors)/);
});
