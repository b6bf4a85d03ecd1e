/** What a device keeps, by the table that devices in Python are held to as well. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { Pool, Scratch, sizeClass } from "../pool.mjs";
import { Stamps } from "../timing.mjs";
import { floats, open, program, words } from "./fixtures.mjs";

const table = JSON.parse(await readFile(new URL("../../tests/cases/device_memory.json", import.meta.url), "utf8"));

/** Buffers by number. @param {number} budget */
function counted(budget) {
  /** @type {number[]} */
  const ended = [];
  /** @type {any[]} */
  const made = [];
  const make = (/** @type {number} */ size) => {
    made.push({ size, serial: made.length, buffer: null });
    return made[made.length - 1];
  };
  return { pool: new Pool(make, (chunk) => ended.push(chunk.serial), budget), made, ended };
}

test("size classes", () => {
  for (const [bytes, size] of table.size_classes) assert.equal(sizeClass(bytes), size);
});

for (const { name, budget, steps } of table.pools) {
  test(name, () => {
    const { pool, made, ended } = counted(budget);
    for (const [what, ...rest] of steps) {
      if (what === "take") assert.equal(pool.take(rest[0]).serial, rest[1]);
      else if (what === "give") pool.give(made[rest[0]]);
      else if (what === "refuse") assert.throws(() => pool.give(made[rest[0]]), /comes back/);
      else if (what === "clear") pool.clear();
      else if (what === "ended") assert.deepEqual(ended, rest[0]);
      else if (what === "waiting") assert.equal(pool.waitingBytes, rest[0]);
      else assert.fail(what);
    }
  });
}

for (const { name, steps } of table.scratch) {
  test(name, () => {
    const { pool } = counted(2 ** 20);
    const scratch = new Scratch(pool);
    /** @type {Record<string, Map<number, any>>} */
    const loaded = {};
    for (const [what, ...rest] of steps) {
      if (what === "load") {
        const sizes = /** @type {number[]} */ ([]);
        for (const [buffer, bytes] of Object.entries(rest[1])) sizes[Number(buffer)] = Number(bytes);
        loaded[rest[0]] = scratch.take(/** @type {any} */ ({ scratch: Object.keys(rest[1]).map(Number), sizes }));
        assert.deepEqual(Object.fromEntries([...loaded[rest[0]]].map(([buffer, chunk]) => [buffer, chunk.serial])), rest[2]);
      } else if (what === "drop") scratch.give(loaded[rest[0]].values());
      else if (what === "bytes") assert.equal(scratch.bytes, rest[0]);
      else if (what === "waiting") assert.equal(pool.waitingBytes, rest[0]);
      else assert.fail(what);
    }
  });
}

for (const { name, runs, read = [], groups, submits } of table.runs) {
  test(name, async () => {
    const bridge = await open();
    bridge.load(1, program());
    await bridge.prepared(1);
    for (const id of new Set(runs.flat())) bridge.write(Number(id), floats([0, 0, 0, 0]));
    const [madeGroups, madeSubmits] = [[], []].map((list) => /** @type {number[]} */ (list));
    for (const [at, [input, output]] of runs.entries()) {
      const before = { ...bridge.counters };
      bridge.run(1, [input], [output], words([2]));
      if (read[at]) assert.equal((await bridge.read(read[at], 16)).length, 16);
      madeGroups.push(bridge.counters.bind_groups_created - before.bind_groups_created);
      madeSubmits.push(bridge.counters.submits - before.submits);
    }
    assert.deepEqual(madeGroups, groups);
    assert.deepEqual(madeSubmits, submits);
    bridge.close();
  });
}

for (const { name, steps, sets, around } of table.timestamps) {
  test(`timestamps: ${name}`, () => {
    const gpu = /** @type {any} */ ({ createQuerySet: (/** @type {any} */ { count }) => count, createBuffer: () => null });
    const stamps = new Stamps(gpu, steps);
    assert.deepEqual(stamps.parts.map(({ count }) => count), sets);
    for (const [step, [which, first]] of around) {
      assert.deepEqual(Object.values(stamps.around(step)), [stamps.parts[which].queries, first, first + 1]);
    }
  });
}
