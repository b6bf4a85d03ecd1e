import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { checked } from "../files.mjs";
import { parse } from "../safetensors.mjs";
import { weights } from "./weights.mjs";

// What tests/unit/test_validate.py reads, too.
const table = JSON.parse(readFileSync(new URL("../../tests/cases/broken_exports.json", import.meta.url), "utf8"));
const tensors = Object.entries(table.weights).map(([name, [dtype, shape, data]]) => [name, [dtype, shape, Float32Array.from(data)]]);
const file = weights(Object.fromEntries(tensors));
const DRAWS = 2000;
const MOST_MS = 1000;

/** The program of the table with another value at a place. @param {{ at: string[], value: any }} change */
function changed({ at, value }) {
  const data = structuredClone(table.program);
  const target = at.slice(0, -1).reduce((found, key) => found[key], data);
  target[/** @type {string} */ (at.at(-1))] = value;
  return JSON.stringify(data);
}

/** Takes the time of what either succeeds or throws a BridgeError; whether it did. @param {() => any} act @param {string} title */
function survives(act, title) {
  const start = performance.now();
  try {
    act();
    return true;
  } catch (error) {
    assert.equal(/** @type {any} */ (error).name, "BridgeError", `${title}: ${/** @type {any} */ (error).stack}`);
    return false;
  } finally {
    assert.ok(performance.now() - start < MOST_MS, `${title} took ${performance.now() - start} ms`);
  }
}

/** Numbers from 0 to below n, the same in each run. @param {number} seed */
function drawing(seed) {
  return (/** @type {number} */ n) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * n);
  };
}

test("whole exports pass", () => {
  checked({ program: JSON.stringify(table.program), weights: file });
  for (const change of table.whole) checked({ program: changed(change), weights: file });
});

test("what breaks a rule is refused by its words", () => {
  for (const change of table.broken) {
    assert.throws(
      () => checked({ program: changed(change), weights: file }),
      (/** @type {any} */ error) => {
        assert.equal(error.name, "BridgeError", `${change.at}: ${error.stack}`);
        assert.ok(error.message.includes(change.says), `${change.at} = ${JSON.stringify(change.value)?.slice(0, 40)}: ${error.message}`);
        return true;
      },
      `${change.at} = ${JSON.stringify(change.value)?.slice(0, 40)}`,
    );
  }
});

test("what is no document is refused", () => {
  for (const program of ["", "{", "[]", "3", "null", '"text"', "[".repeat(1e5), '{"version": NaN}']) {
    assert.equal(survives(() => checked({ program, weights: file }), program.slice(0, 20)), false, program.slice(0, 20));
  }
});

test(`${DRAWS} changed exports are played or refused`, () => {
  const odd = [null, true, -1, 0, 1, 2, 3, 0.5, 255, 2 ** 31, 2 ** 53, 1e300, "", "x", [], [0], {}, { tensor: ["state", 0] }, [[[]]], "__proto__"];
  let played = 0;
  for (let seed = 0; seed < DRAWS; seed++) {
    const draw = drawing(seed);
    const data = structuredClone(table.program);
    for (let n = 1 + draw(2); n; n--) {
      let target = data;
      for (;;) {
        const key = Object.keys(target)[draw(Object.keys(target).length)];
        if (target[key] && typeof target[key] === "object" && Object.keys(target[key]).length && draw(8)) {
          target = target[key];
          continue;
        }
        if (key === undefined || !draw(8)) delete target[key];
        else target[key] = typeof target[key] === "number" && draw(2) ? target[key] + draw(5) - 2 : structuredClone(odd[draw(odd.length)]);
        break;
      }
    }
    played += Number(survives(() => checked({ program: JSON.stringify(data), weights: file }), `seed ${seed}`));
  }
  assert.ok(played > DRAWS / 50 && played < DRAWS / 2, `${played} of ${DRAWS} are played`);
});

test(`${DRAWS} changed weight files are read or refused`, () => {
  let read = 0;
  for (let seed = 0; seed < DRAWS; seed++) {
    const draw = drawing(seed);
    const bytes = new Uint8Array(file.slice(0, draw(4) ? file.byteLength : draw(file.byteLength)));
    for (let n = 1 + draw(3); n && bytes.length; n--) bytes[draw(bytes.length)] = draw(2) ? draw(256) : 48 + draw(10);
    read += Number(survives(() => parse(bytes.buffer).forEach(({ elements }) => elements()), `seed ${seed}`));
  }
  assert.ok(read > DRAWS / 50 && read < DRAWS / 2, `${read} of ${DRAWS} are read`);
});
