import assert from "node:assert/strict";
import { test } from "node:test";

import { Pool, sizeClass } from "../pool.mjs";

/** @param {number} budget */
function counted(budget) {
  /** @type {number[]} */
  const ended = [];
  let serial = 0;
  const make = (/** @type {number} */ size) => {
    const chunk = { size, serial: serial++, buffer: /** @type {any} */ (null) };
    return chunk;
  };
  return { pool: new Pool(make, (chunk) => ended.push(chunk.serial), budget), ended };
}

test("size classes are those of pywebgpu/devices/pool.py", () => {
  const pairs = [[1, 256], [256, 256], [257, 512], [4096, 4096], [4097, 4608], [100_000, 106_496], [1 << 20, 1 << 20]];
  for (const [bytes, size] of pairs) assert.equal(sizeClass(bytes), size);
});

test("the same requests get the same chunks", () => {
  const { pool } = counted(1 << 20);
  const first = [1, 2, 3].map(() => pool.take(100));
  for (const order of [[2, 0, 1], [1, 2, 0]]) {
    order.forEach((at) => pool.give(first[at]));
    assert.deepEqual([1, 2, 3].map(() => pool.take(100)), first);
  }
});

test("what waits stays within the budget, and the size that was used last stays the longest", () => {
  const { pool, ended } = counted(1024);
  const [small, large] = [pool.take(256), pool.take(1024)];
  pool.give(small);
  pool.give(large);
  assert.deepEqual(ended, [small.serial]);
  assert.equal(pool.waitingBytes, 1024);
  pool.clear();
  assert.deepEqual(ended, [small.serial, large.serial]);
});
