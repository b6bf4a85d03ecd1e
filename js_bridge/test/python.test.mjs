import assert from "node:assert/strict";
import { test } from "node:test";

import { asFloats, floats, open, program, words } from "./fixtures.mjs";
import { PythonBridge } from "../python.mjs";

/** Stands for a bytearray of Python's: its memory moves when WebAssembly's grows. */
class Area {
  bytes = new Uint8Array(4096);
  grow() {
    this.bytes = new Uint8Array(this.bytes.buffer.transfer());
  }
  getBuffer() {
    return { data: this.bytes, release: () => undefined };
  }
  destroy() {}
  /** @param {number[]} commands @param {Uint8Array[]} payloads */
  put(commands, ...payloads) {
    new Int32Array(this.bytes.buffer).set(commands);
    let end = 4 * commands.length;
    for (const payload of payloads) {
      this.bytes.set(payload, end);
      end += payload.length;
    }
    return end / 4;
  }
}

const [FREE, DROP, WRITE, RUN] = [1, 2, 3, 4];

async function connected() {
  const python = new PythonBridge(await open());
  const area = new Area();
  python.attach(/** @type {any} */ (area));
  return { python, area };
}

test("commands are taken in their order, by one call", async () => {
  const { python, area } = await connected();
  python.load(7, program());
  const write = area.put([WRITE, 1, 4], floats([1, 2, 3, 4]));
  new Int32Array(area.bytes.buffer).set([RUN, 7, 1, 2], write);
  area.bytes.set(new Uint8Array(words([3]).buffer), 4 * (write + 4));
  assert.equal(python.flush(write + 5), true);
  const target = new Area();
  await python.read(0, 2, 16, /** @type {any} */ (target));
  assert.deepEqual(asFloats(target.bytes.slice(0, 16)), [3, 6, 9, 12]);
  python.close();
});

test("one word comes back as a number", async () => {
  const { python, area } = await connected();
  const count = area.put([WRITE, 1, 1], floats([1.5]));
  assert.equal(await python.read(count, 1, 4), words([1.5])[0]);
  python.close();
});

test("memory that moved is found again", async () => {
  const { python, area } = await connected();
  area.grow();
  const count = area.put([WRITE, 1, 1], floats([2]));
  assert.equal(await python.read(count, 1, 4), words([2])[0]);
  python.close();
});

test("what is freed serves again, and a dropped program is gone", async () => {
  const { python, area } = await connected();
  python.flush(area.put([WRITE, 1, 1], floats([2])));
  const { bridge } = python;
  const before = bridge.counters.buffers_created;
  python.flush(area.put([FREE, 1, 1, WRITE, 2, 1], floats([3])));
  assert.equal(bridge.counters.buffers_created, before);
  python.load(5, program());
  python.flush(area.put([DROP, 5]));
  assert.throws(() => python.flush(area.put([RUN, 5, 2, 3, 0])), /no program 5/);
  python.close();
});

test("trouble is told before anything more is taken", async () => {
  const { python, area } = await connected();
  const { bridge } = python;
  bridge.gpu.createBuffer({ size: 4, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.STORAGE });
  await bridge.gpu.queue.onSubmittedWorkDone();
  const count = area.put([WRITE, 1, 1], floats([2]));
  assert.equal(python.flush(count), false);
  assert.throws(() => python.check(), /usage/i);
  assert.equal(python.flush(count), true);
  assert.equal(await python.read(0, 1, 4), words([2])[0]);
  python.close();
});
