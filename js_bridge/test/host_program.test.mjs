import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { HostProgram } from "../host_program.mjs";

const table = JSON.parse(await readFile(new URL("../../tests/cases/host_programs.json", import.meta.url), "utf8"));
/** @type {Record<string, number>} */
const special = { inf: Infinity, "-inf": -Infinity, nan: NaN };
const none = () => assert.fail("no cell is used");

/** Sines and powers may differ in the last bit. @param {any} found @param {any} wanted */
function close(found, wanted) {
  const near = typeof found === "number" && Math.abs(found - wanted) <= 4e-16 * Math.abs(wanted);
  if (!near || found === 0) assert.ok(Object.is(found, wanted), `${found} is not ${wanted}`);
}

test("operations give what they give in Python", () => {
  for (const [op, ...rest] of table.operations) {
    const wanted = rest.pop();
    const run = () => new HostProgram([...rest, [op, ...rest.keys()]], 0).run(none, none).at(-1);
    const text = `${op} of ${JSON.stringify(rest)}`;
    if (wanted === "error") assert.throws(run, { name: "BridgeError", message: /cannot compute/ }, text);
    else assert.doesNotThrow(() => close(run(), special[wanted[1]] ?? wanted[1]), text);
  }
});

test("programs read, guard and write as in Python", () => {
  for (const { name, cells, program, values, after, error } of table.programs) {
    const run = () => new HostProgram(program, cells.length).run((cell) => cells[cell], (cell, value) => (cells[cell] = value));
    if (error !== undefined) {
      assert.throws(run, { name: "BridgeError", message: new RegExp(error.replace(/[()]/g, "\\$&")) }, name);
      continue;
    }
    const found = run();
    for (const [index, wanted] of Object.entries(values)) close(found[Number(index)], wanted);
    assert.deepEqual(cells, after, name);
  }
});

test("what is no program is refused", () => {
  for (const [name, program] of table.damaged) {
    assert.throws(() => new HostProgram(program, 1), { name: "BridgeError", kind: "usage" }, name);
  }
  assert.throws(() => new HostProgram(Array(65537).fill(["float", 1]), 1), { name: "BridgeError" });
});

test("whole numbers beyond what doubles hold are refused", () => {
  const product = [["int", 2 ** 52], ["mul", 0, 0]];
  assert.throws(() => new HostProgram(product, 0).run(none, none), /an int that no double holds/);
  assert.throws(() => new HostProgram([["int", 2 ** 53]], 0), /9007199254740992 is no int/);
});
