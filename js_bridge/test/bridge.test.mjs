import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { startHelper } from "../helper.mjs";
import { asFloats, floats, kernel, open, program, value, words } from "./fixtures.mjs";

const none = new Uint32Array();
const DAWN = pathToFileURL(createRequire(import.meta.url).resolve("webgpu")).href;
const rejects = (/** @type {Promise<any>} */ promise, /** @type {string} */ kind, /** @type {RegExp} */ message) =>
  assert.rejects(promise, (/** @type {any} */ error) => {
    assert.equal(error.kind, kind);
    assert.match(error.message, message);
    return true;
  });

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

const SHUFFLED = `enable subgroups;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) lane: u32) {
  y[lane] = subgroupShuffleXor(x[lane], 1u);
}`;

test("a kernel that needs a feature runs where it is", async (t) => {
  const bridge = await open();
  if (!bridge.info.features.includes("subgroups")) return t.skip("this adapter has no subgroups");
  bridge.write(1, floats([0, 1, 2, 3]));
  bridge.load(1, program({ kernels: [{ ...kernel("", "rw"), wgsl: SHUFFLED, needs: ["subgroups"] }], numbers: [] }));
  bridge.run(1, [1], [2], none);
  assert.deepEqual(asFloats(await bridge.read(2, 16)), [1, 0, 3, 2]);
  bridge.close();
});

test("a kernel that needs what the device lacks says so", async () => {
  const bridge = await open();
  bridge.write(1, floats([0, 1, 2, 3]));
  bridge.load(1, program({ kernels: [{ ...kernel(""), name: "warped", needs: ["warp-drive"] }] }));
  await rejects(bridge.prepared(1), "compile", /^warped: this device lacks warp-drive$/);
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

for (const [name, work, bindings, parts] of /** @type {[string, number, string, number][]} */ ([
  ["much", 3e10, "rw", 2],
  ["little", 3e9, "rw", 1],
  ["a check", 3e10, "rwf", 1],
])) {
  test(`a run with ${name} left to do after what is read is ${parts} submits`, async () => {
    const bridge = await open();
    const late = { ...kernel("y[i] = x[i] + 1.0;", bindings), work };
    const outputs = [value(1, 4), value(2, 4)];
    bridge.load(1, program({ kernels: [kernel("y[i] = 2.0 * x[i];"), late], steps: [[0, 0, 1], [1, 0, 2]], sizes: [16, 16, 16], outputs, numbers: [] }));
    const found = [];
    for (let step = 0; step < 6; step++) {
      const before = { ...bridge.counters };
      bridge.write(1, floats([step, 0, 0, 1]));
      bridge.run(1, [1], [2, 3], none);
      const [read] = asFloats(await bridge.read(2, 16));
      const { submits, buffers_created } = bridge.counters;
      found.push([read, submits - before.submits, buffers_created - before.buffers_created]);
    }
    assert.deepEqual(found.slice(3), [3, 4, 5].map((step) => [2 * step, parts, 0]));
    assert.deepEqual(asFloats(await bridge.read(3, 16)), [6, 1, 1, 2]);
    bridge.close();
  });
}

test("a loop that reads of two programs has both encoded ahead, and what does not fit is given back on the spot", async () => {
  const bridge = await open();
  bridge.load(1, program());
  bridge.load(2, program({ kernels: [kernel("y[i] = x[i] + numbers.x;", "rwn")] }));
  bridge.write(1, floats([1, 2, 3, 4]));
  await Promise.all([bridge.prepared(1), bridge.prepared(2)]);
  const adopt = bridge.reader.adopt.bind(bridge.reader);
  let [bytes, adopted] = [0, 0];
  bridge.reader.adopt = (...run) => {
    const commands = adopt(...run);
    adopted += Number(commands !== null);
    return commands;
  };
  for (let step = 0; step < 60; step++) {
    for (const [id, wanted] of [[1, step], [2, 1 + step]]) {
      bridge.run(id, [1], [1 + id], words([step]));
      if (step > 30) bridge.run(id, [1], [1 + id], words([step])); // and nobody reads the first
      const found = bridge.readNow(1 + id, 16, asFloats);
      assert.equal((found instanceof Promise ? await found : found)[0], wanted);
    }
    if (step === 10) bytes = bridge.counters.device_bytes;
  }
  assert.ok(adopted > 40);
  assert.ok(bridge.counters.device_bytes <= bytes + 512);
  bridge.close();
});

test("a value that was foreseen and not read is right when it is read later", async () => {
  const bridge = await open();
  bridge.write(1, floats([1, 2, 3, 4]));
  bridge.load(1, program());
  for (const factor of [1, 2]) {
    bridge.run(1, [1], [2], words([factor]));
    await bridge.read(2, 16);
  }
  bridge.run(1, [1], [2], words([3]));
  bridge.run(1, [1], [2], words([4]));
  assert.deepEqual(asFloats(await bridge.read(2, 16)), [4, 8, 12, 16]);
  bridge.run(1, [1], [2], words([5]));
  bridge.write(2, floats([7, 7, 7, 7]));
  assert.deepEqual(asFloats(await bridge.read(2, 16)), [7, 7, 7, 7]);
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
  const [FAULT, CHUNK, UNIFORM] = [16, 256, 16];
  assert.equal(counters.device_bytes, FAULT);
  bridge.load(1, program());
  bridge.write(1, floats([1, 2, 3, 4]));
  bridge.run(1, [1], [2], words([2]));
  await bridge.read(2, 16);
  assert.equal(counters.device_bytes, FAULT + UNIFORM + 3 * CHUNK); // two values, and one of them read
  bridge.free(1);
  assert.equal(counters.device_bytes, FAULT + UNIFORM + 3 * CHUNK); // it waits to be used again
  bridge.drop(1);
  bridge.pool.clear();
  assert.equal(counters.device_bytes, FAULT + 2 * CHUNK);
  bridge.close();
  assert.equal(counters.device_bytes, 0);
});

test("a shader that does not compile names its kernel and line, and spoils what it should have written", async () => {
  const bridge = await open();
  bridge.write(1, floats([1, 2, 3, 4]));
  bridge.load(1, program({ kernels: [kernel("y[i] = x[i] + nothing;")], numbers: [] }));
  bridge.load(2, program());
  bridge.run(1, [1], [2], none);
  bridge.run(2, [2], [3], words([1]));
  const wrong = /test: the shader does not compile: line 6:\d+: unresolved value 'nothing'\n +6 +y\[i\] = x\[i\] \+ nothing;/;
  await rejects(bridge.read(2, 16), "compile", wrong);
  await rejects(bridge.read(3, 16), "compile", wrong);
  await rejects(bridge.prepared(1), "compile", wrong);
  assert.deepEqual(asFloats(await bridge.read(1, 16)), [1, 2, 3, 4]);
  bridge.write(2, floats([5, 5, 5, 5]));
  assert.deepEqual(asFloats(await bridge.read(2, 16)), [5, 5, 5, 5]);
  bridge.close();
});

test("pipelines go with the last program that has them", async () => {
  const bridge = await open();
  bridge.write(1, floats([1, 2, 3, 4]));
  for (let i = 1; i <= 12; i++) {
    const own = kernel(`y[i] = x[i] + ${i}.0;`);
    bridge.load(i, program({ kernels: [own, kernel("y[i] = x[i];")], steps: [[0, 0, 1]], numbers: [] }));
    bridge.run(i, [1], [2], none);
    assert.deepEqual(asFloats(await bridge.read(2, 16)), [1 + i, 2 + i, 3 + i, 4 + i]);
    if (i > 4) bridge.drop(i - 4);
    assert.equal(bridge.pipelines.size, Math.min(i, 4) + 1);
  }
  for (let i = 9; i <= 12; i++) bridge.drop(i);
  assert.equal(bridge.pipelines.size, 0);
  bridge.close();
});

test("a pipeline that was begun is the next program's, or goes", async () => {
  const bridge = await open();
  const [wanted, other] = [kernel("y[i] = x[i] + 1;"), kernel("y[i] = x[i] + 2;")];
  for (const one of [wanted, other, wanted, kernel("y[i] = nothing;")]) bridge.prepare(one);
  assert.equal(bridge.counters.pipelines_created, 3);
  bridge.load(1, program({ kernels: [wanted], numbers: [] }));
  assert.equal(bridge.pipelines.size, 1);
  bridge.write(1, floats([1, 2, 3, 4]));
  bridge.run(1, [1], [2], none);
  assert.deepEqual(asFloats(await bridge.read(2, 16)), [2, 3, 4, 5]);
  assert.equal(bridge.counters.pipelines_created, 3);
  bridge.check();
  bridge.close();
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

test("the main thread helps to compile, and tells what is wrong as others do", async () => {
  const bridge = await open();
  bridge.pipelines.threads = 0.01; // one at a time
  const kernels = Array.from({ length: 6 }, (_, i) => kernel(`y[i] = x[i] + ${20 + i}.0;`));
  bridge.prepare(kernels[0]);
  bridge.write(1, floats([1, 2, 3, 4]));
  bridge.load(1, program({ kernels, steps: kernels.map((_, i) => [i, 0, 1]), numbers: [] }));
  bridge.run(1, [1], [2], none);
  assert.deepEqual(asFloats(await bridge.read(2, 16)), [26, 27, 28, 29]);
  bridge.load(2, program({ kernels: [kernel("y[i] = x[i] + 30;"), kernel("y[i] = nothing;")], numbers: [] }));
  await rejects(bridge.prepared(2), "compile", /line 6:\d+: unresolved value 'nothing'/);
  bridge.check();
  bridge.close();
});

test("helpers compile what waits; one that cannot start does no harm", async () => {
  for (const address of [DAWN, "data:text/javascript,throw"]) {
    const bridge = await open();
    /** @type {string[]} */
    const helped = [];
    bridge.pipelines.startHelper = () => {
      const helper = startHelper(address);
      const compile = (/** @type {any} */ one) => helper.compile(one).then(() => void helped.push(one.wgsl));
      return { ...helper, compile };
    };
    const long = `// ${"-".repeat(50_000)}\n`;
    const kernels = Array.from({ length: 6 }, (_, i) => kernel(`y[i] = x[i] + ${20 + i}.0; ${long}`));
    for (const one of kernels) bridge.prepare(one);
    bridge.write(1, floats([1, 2, 3, 4]));
    bridge.load(1, program({ kernels, steps: kernels.map((_, i) => [i, 0, 1]), numbers: [] }));
    bridge.run(1, [1], [2], none);
    assert.deepEqual(asFloats(await bridge.read(2, 16)), [26, 27, 28, 29]);
    assert.ok(helped.length > 0);
    const wrong = kernels.map((_, i) => kernel(`y[i] = nothing${i}; ${long}`));
    bridge.load(2, program({ kernels: wrong, steps: [[0, 0, 1]], numbers: [] }));
    await rejects(bridge.prepared(2), "compile", /unresolved value 'nothing/);
    bridge.check();
    bridge.close();
  }
});

test("a process ends while a helper compiles", () => {
  const script = `import { startHelper } from ${JSON.stringify(new URL("../helper.mjs", import.meta.url).href)};
    const helper = startHelper(${JSON.stringify(DAWN)});
    for (const wgsl of ${JSON.stringify([0, 1, 2, 3].map((i) => kernel(`y[i] = x[i] + ${i}.0;`).wgsl))})
      void helper.compile({ name: "one", wgsl, bindings: "rw", grid: [1, 1, 1] });
    setTimeout(() => process.exit(0), 150);`;
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
  assert.equal(status, 0, stderr);
});

test("a fault is told once, by the next read", async () => {
  const bridge = await open();
  const checked = "if (x[i] > 2.5) { fault[1] = i32(x[i]); fault[2] = 3; fault[0] = 1; } y[i] = x[i];";
  bridge.load(1, program({ kernels: [kernel(checked, "rwf")], numbers: [] }));
  for (const wrong of [5, 6]) {
    bridge.write(1, floats([0, 1, 2, wrong]));
    bridge.run(1, [1], [2], none);
    await rejects(bridge.read(1, 16), "fault", new RegExp(`index ${wrong} is out of bounds for dimension with size 3`));
    assert.deepEqual(asFloats(await bridge.read(2, 16)), [0, 1, 2, wrong]);
  }
  bridge.write(1, floats([0, 1, 2, 0]));
  bridge.run(1, [1], [2], none);
  assert.deepEqual(asFloats(await bridge.read(2, 16)), [0, 1, 2, 0]);
  bridge.close();
});

test("a read that waits on the spot has its value, or its fault, when it returns, and leaves the event loop its turns", async () => {
  const bridge = await open();
  const checked = "if (x[i] > 2.5) { fault[1] = i32(x[i]); fault[2] = 3; fault[0] = 1; } y[i] = x[i];";
  bridge.load(1, program({ kernels: [kernel(checked, "rwf")], numbers: [] }));
  await bridge.prepared(1);
  const now = (/** @type {number} */ id) => bridge.readNow(id, 16, asFloats);
  bridge.write(1, floats([0, 1, 2, 0]));
  bridge.run(1, [1], [2], none);
  assert.deepEqual(await now(2), [0, 1, 2, 0]);
  let hadTurn = false;
  setTimeout(() => (hadTurn = true));
  /** @type {ReturnType<typeof now>} */
  let found = [];
  let count = 0;
  for (; !(found instanceof Promise); count++) {
    bridge.write(1, floats([0, 1, 2, -1 - count]));
    bridge.run(1, [1], [2], none);
    found = now(2);
    if (!(found instanceof Promise)) assert.deepEqual(found, [0, 1, 2, -1 - count]);
  }
  assert.deepEqual([(await found)[3], count > 1, hadTurn], [-count, true, true]);
  bridge.write(1, floats([0, 1, 2, 7]));
  bridge.run(1, [1], [2], none);
  assert.throws(() => now(2), { kind: "fault", message: /index 7/ });
  let isOver = false;
  setImmediate((() => (isOver = true)).bind(null));
  assert.deepEqual(now(2), [0, 1, 2, 7]);
  assert.ok(!isOver, "what others wait for is not taken for a turn of Dawn");
  bridge.close();
});

test("a wait on the spot for what takes long leaves the event loop its turns", async () => {
  const bridge = await open();
  const { gpu } = /** @type {any} */ (navigator);
  const { waitUntil } = gpu;
  const now = () => bridge.readNow(1, 16, asFloats);
  bridge.write(1, floats([0, 1, 2, 3]));
  await now();
  gpu.waitUntil = (/** @type {() => boolean} */ isThere) => {
    for (const end = performance.now() + 2000; performance.now() < end && !isThere(); );
  };
  const [start, found] = [performance.now(), now()];
  gpu.waitUntil = waitUntil;
  assert.ok(found instanceof Promise && performance.now() - start < 1000);
  assert.deepEqual(await found, [0, 1, 2, 3]);
  bridge.close();
});

test("an int64 that 32 bits do not hold is told by the name of its op", async () => {
  const bridge = await open();
  const checked = "fault[1] = 0x646f7270; fault[2] = 0; fault[3] = 1; fault[0] = 1; y[i] = x[i];";
  bridge.load(1, program({ kernels: [kernel(checked, "rwf")], numbers: [] }));
  bridge.write(1, floats([0, 1, 2, 3]));
  bridge.run(1, [1], [2], none);
  await rejects(bridge.read(2, 16), "overflow", /^prod: a result does not fit, since webgpu stores int64 as int32/);
  assert.deepEqual(asFloats(await bridge.read(2, 16)), [0, 1, 2, 3]);
  bridge.close();
});

test("a fault comes through a foreseen read, also when nobody reads that", async () => {
  const bridge = await open();
  const checked = "if (x[i] > 2.5) { fault[1] = i32(x[i]); fault[2] = 3; fault[0] = 1; } y[i] = x[i];";
  bridge.load(1, program({ kernels: [kernel(checked, "rwf")], numbers: [] }));
  bridge.write(1, floats([0, 1, 2, 0]));
  for (let i = 0; i < 2; i++) {
    bridge.run(1, [1], [2], none);
    await bridge.read(2, 16);
  }
  bridge.write(1, floats([0, 1, 2, 7]));
  bridge.run(1, [1], [2], none);
  await rejects(bridge.read(2, 16), "fault", /index 7/);
  bridge.run(1, [1], [2], none);
  bridge.write(1, floats([0, 1, 2, 0]));
  bridge.run(1, [1], [2], none);
  await rejects(bridge.read(2, 16), "fault", /index 7/);
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
