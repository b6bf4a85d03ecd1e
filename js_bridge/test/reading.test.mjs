import assert from "node:assert/strict";
import { test } from "node:test";

import { asFloats, floats, kernel, none, open, program, rejects, value, words } from "./fixtures.mjs";

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
