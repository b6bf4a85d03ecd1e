import assert from "node:assert/strict";
import { test } from "node:test";

import { asFloats, floats, kernel, none, open, program, rejects, value, words } from "./fixtures.mjs";

test("what is written is read", async () => {
  const bridge = await open();
  bridge.write(1, floats([0, 1, 2, 3, 4]));
  assert.deepEqual(asFloats(await bridge.read(1, 20)), [0, 1, 2, 3, 4]);
  assert.deepEqual(asFloats(await bridge.read(1, 8)), [0, 1]);
  bridge.close();
});

test("bytes that are no whole words leave those beside them, in the order of calls", async () => {
  const bridge = await open();
  const bytes = async () => [...(await bridge.read(1, 8))];
  bridge.write(1, Uint8Array.of(0, 1, 2, 3, 4, 5, 6, 7));
  bridge.write(1, Uint8Array.of(30, 40, 50), 3);
  const first = bytes();
  bridge.write(1, Uint8Array.of(9), 4);
  bridge.write(1, Uint8Array.of(20, 21, 22, 23), 0);
  assert.deepEqual([await first, await bytes()], [[0, 1, 2, 30, 40, 50, 6, 7], [20, 21, 22, 23, 9, 50, 6, 7]]);
  bridge.close();
});

test("the device is described", async () => {
  const bridge = await open();
  assert.ok(bridge.info.name);
  assert.ok(bridge.info.limits.maxStorageBuffersPerShaderStage >= 8);
  const { features, subgroupSizes, matrices } = bridge.info;
  if (features.includes("subgroups")) assert.ok(subgroupSizes[0] >= 4 && subgroupSizes[0] <= subgroupSizes[1]);
  assert.equal(matrices.length > 0, features.includes("chromium-experimental-subgroup-matrix"));
  bridge.close();
});

test("calls take effect in their order while pipelines compile", async () => {
  const bridge = await open();
  bridge.write(1, floats([0, 1, 2, 3]));
  bridge.load(1, program());
  bridge.run(1, [1], [2], words([2]));
  bridge.write(1, floats([9, 9, 9, 9])); // after the run, so it must not see this
  const first = bridge.read(2, 16);
  bridge.run(1, [1], [2], words([3]));
  const second = bridge.read(2, 16);
  assert.deepEqual(asFloats(await first), [0, 2, 4, 6]);
  assert.deepEqual(asFloats(await second), [27, 27, 27, 27]);
  bridge.close();
});

test("a steady step is one submit and creates nothing", async () => {
  const bridge = await open();
  bridge.load(1, program());
  const totals = [];
  for (let step = 0; step < 8; step++) {
    const before = { ...bridge.counters };
    const [input, output] = [10 + 2 * step, 11 + 2 * step]; // new numbers, as a loop of Python's makes them
    bridge.write(input, floats([1, 2, 3, 4]));
    bridge.run(1, [input], [output], words([step]));
    assert.deepEqual(asFloats(await bridge.read(output, 16)), [step, 2 * step, 3 * step, 4 * step]);
    bridge.free(input);
    bridge.free(output);
    const { submits, dispatches, buffers_created, bind_groups_created, pipelines_created } = bridge.counters;
    totals.push([
      submits - before.submits,
      dispatches - before.dispatches,
      buffers_created - before.buffers_created,
      bind_groups_created - before.bind_groups_created,
      pipelines_created - before.pipelines_created,
    ]);
  }
  assert.deepEqual(totals.slice(4), Array(4).fill([1, 1, 0, 0, 0]));
  bridge.close();
});

test("an output takes over the memory of an input", async () => {
  const bridge = await open();
  bridge.write(1, floats([1, 2, 3, 4]));
  const inPlace = { kernels: [kernel("y[i] = y[i] * 2;", "w")], steps: [[0, 0]], sizes: [16], numbers: [] };
  bridge.load(1, program({ ...inPlace, outputs: [value(0, 4)] }));
  bridge.run(1, [1], [1], none);
  bridge.run(1, [1], [1], none);
  assert.deepEqual(asFloats(await bridge.read(1, 16)), [4, 8, 12, 16]);
  bridge.close();
});

test("programs share the memory of what passes inside them", async () => {
  const bridge = await open();
  const kernels = [kernel("y[i] = x[i] + 1;")];
  const inside = { kernels, steps: [[0, 0, 2], [0, 2, 1]], sizes: [16, 16, 16], scratch: [2], numbers: [] };
  bridge.write(1, floats([0, 0, 0, 0]));
  bridge.load(1, program(inside));
  const before = bridge.counters.buffers_created;
  bridge.load(2, program(inside));
  assert.equal(bridge.counters.buffers_created, before);
  bridge.run(1, [1], [2], none);
  bridge.run(2, [2], [3], none);
  assert.deepEqual(asFloats(await bridge.read(3, 16)), [4, 4, 4, 4]);
  for (const [id, waiting] of [[1, 0], [2, 256]]) {
    bridge.drop(id);
    assert.equal(bridge.pool.waitingBytes, waiting);
  }
  bridge.close();
});

test("a step writes two ranges of a buffer, and another reads one of them", async () => {
  const bridge = await open();
  const declared = ["read> x", "read_write> y", "read_write> z"].map(
    (text, at) => `@group(0) @binding(${at}) var<storage, ${text}: array<f32>;`,
  );
  const main = `@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
    y[i] = 2 * x[i];
    z[i] = f32(arrayLength(&z)) * x[i];
  }`;
  /** @type {import("../wire.d.ts").Kernel} */
  const both = { name: "both", wgsl: [...declared, main].join("\n"), grid: [1, 1, 1], bindings: "rww" };
  const parts = { kernels: [both, kernel("y[i] = x[i] + 1;")], steps: [[0, 0, 3, 4], [1, 4, 2]], numbers: [] };
  /** @type {[number, number, number][]} */
  const ranges = [[1, 0, 16], [1, 256, 16]];
  const outputs = [value(1, 68), value(2, 4)];
  bridge.write(1, floats([1, 2, 3, 4]));
  bridge.load(1, program({ ...parts, sizes: [16, 272, 16], ranges, outputs }));
  bridge.run(1, [1], [2, 3], none);
  const found = asFloats(await bridge.read(2, 272));
  assert.deepEqual([...found.slice(0, 4), ...found.slice(64)], [2, 4, 6, 8, 4, 8, 12, 16]);
  assert.deepEqual(asFloats(await bridge.read(3, 16)), [5, 9, 13, 17]);
  bridge.close();
});

test("a step that reads one range of a buffer and writes another is refused", async () => {
  const bridge = await open();
  /** @type {[number, number, number][]} */
  const ranges = [[1, 0, 16], [1, 256, 16]];
  const parts = { kernels: [kernel("y[i] = x[i] + 1;")], steps: [[0, 2, 3]], numbers: [] };
  bridge.write(1, floats([1, 2, 3, 4]));
  bridge.load(1, program({ ...parts, sizes: [16, 272], ranges, outputs: [value(1, 68)] }));
  bridge.run(1, [1], [2], none);
  await assert.rejects(bridge.settle(), /usage|writable/i);
  bridge.close();
});

test("device bytes are those of all buffers that exist", async () => {
  const bridge = await open();
  const { counters } = bridge;
  const [OWN, CHUNK, UNIFORM] = [8216, 256, 16];
  assert.equal(counters.device_bytes, OWN);
  bridge.load(1, program());
  bridge.write(1, floats([1, 2, 3, 4]));
  bridge.run(1, [1], [2], words([2]));
  await bridge.read(2, 16);
  assert.equal(counters.device_bytes, OWN + UNIFORM + 3 * CHUNK); // two values, and one of them read
  bridge.free(1);
  assert.equal(counters.device_bytes, OWN + UNIFORM + 3 * CHUNK); // it waits to be used again
  bridge.drop(1);
  bridge.pool.clear();
  assert.equal(counters.device_bytes, OWN + 2 * CHUNK);
  bridge.close();
  assert.equal(counters.device_bytes, 0);
});

test("zeros take the place of what was there", async () => {
  const bridge = await open();
  bridge.write(1, floats([1, 2, 3, 4]));
  bridge.load(1, program());
  bridge.run(1, [1], [2], words([2]));
  bridge.clear(2, 16);
  bridge.clear(3, 16);
  for (const id of [2, 3]) assert.deepEqual(asFloats(await bridge.read(id, 16)), [0, 0, 0, 0]);
  bridge.close();
});

test("an error in the queue is told by the next call", async () => {
  const bridge = await open();
  bridge.write(1, floats([1]));
  bridge.gpu.createBuffer({ size: 4, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.STORAGE });
  await rejects(bridge.settle(), "device", /usage/i);
  assert.deepEqual(asFloats(await bridge.read(1, 4)), [1]);
  bridge.close();
});

test("too large a buffer spoils its number and nothing else", async () => {
  const bridge = await open();
  const size = 2 ** 40;
  bridge.load(1, program({ sizes: [16, size], numbers: [], kernels: [kernel("y[i] = x[i];")] }));
  bridge.write(1, floats([1, 2, 3, 4]));
  bridge.run(1, [1], [2], none);
  await rejects(bridge.read(2, 16), "device", /larger than/);
  assert.deepEqual(asFloats(await bridge.read(1, 16)), [1, 2, 3, 4]);
  bridge.close();
});

test("a lost device is told by every call", async () => {
  const bridge = await open();
  bridge.write(1, floats([1]));
  bridge.gpu.destroy();
  await bridge.gpu.lost;
  for (let i = 0; i < 2; i++) {
    await rejects(bridge.read(1, 4), "lost", /the device is gone/);
    await rejects(bridge.settle(), "lost", /the device is gone/);
  }
});

test("a program of another version is refused", async () => {
  const bridge = await open();
  assert.throws(() => bridge.load(1, program({ version: 1 })), /a program of version 1; this bridge runs version 4/);
  bridge.close();
});

test("without WebGPU the error says so", async () => {
  const { Bridge } = await import("../bridge.mjs");
  const blind = /** @type {any} */ ({ requestAdapter: async () => null });
  await rejects(Bridge.open(blind), "absent", /no adapter/);
});
