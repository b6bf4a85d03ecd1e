import assert from "node:assert/strict";
import { test } from "node:test";

import "./fixtures.mjs";
import { parse } from "../safetensors.mjs";
import { arranged, around, byteSize, elements, half, halfBits, put, toBytes } from "../values.mjs";

const there = (/** @type {string} */ dtype, /** @type {ArrayLike<number>} */ list) => [...elements(dtype, toBytes(dtype, list), list.length)];

test("elements lie as in torch, in whole words, and come back", () => {
  assert.deepEqual(there("float32", [0.5, -2]), [0.5, -2]);
  assert.deepEqual(there("int64", [-3, 7]), [-3, 7]);
  assert.deepEqual(there("int64", /** @type {any} */ (BigInt64Array.of(-3n, 7n))), [-3, 7]);
  assert.deepEqual(there("uint32", [4294967295]), [4294967295]);
  assert.deepEqual(there("bool", [0, 1, 5]), [0, 1, 1]);
  assert.deepEqual(there("int8", [-128, 127, -1]), [-128, 127, -1]);
  assert.deepEqual(there("uint8", [255, 0, 7, 8, 9]), [255, 0, 7, 8, 9]);
  assert.deepEqual(there("int16", [-32768, 32767, 5]), [-32768, 32767, 5]);
  assert.deepEqual([...toBytes("float16", [1, -2, 0.5])], [0x00, 0x3c, 0x00, 0xc0, 0x00, 0x38, 0, 0]);
  assert.deepEqual(["bool", "float16", "int64"].map((dtype) => byteSize(dtype, 5)), [8, 12, 20]);
  const own = Float32Array.of(1, 2);
  assert.equal(toBytes("float32", own).buffer, own.buffer);
});

test("half precision is rounded as the device would hold it", () => {
  const { f16round } = /** @type {any} */ (Math);
  const numbers = [0, -0, 1, 0.1, -1 / 3, 65504, 65519, 65520, 1e9, 2 ** -24, 2 ** -25, 3 * 2 ** -26, 6e-8, 2049, 2051, Infinity, NaN];
  for (let at = 0; at < 2000; at++) numbers.push((at - 1000) * 1.37 ** ((at % 60) - 30));
  assert.deepEqual(there("float16", numbers), numbers.map(f16round));
  assert.deepEqual(numbers.map((number) => half(halfBits(number))), numbers.map(f16round));
  assert.deepEqual(there("bfloat16", [1, 1 + 2 ** -8, 1 + 3 * 2 ** -8, -0.1, NaN]), [1, 1, 1.015625, -0.10009765625, NaN]);
});

test("strides pick elements", () => {
  const bytes = toBytes("float32", [0, 1, 2, 3, 4, 5]);
  const view = { dtype: "float32", shape: [3, 2], strides: [1, 3] };
  assert.deepEqual([...arranged(view, bytes)], [0, 3, 1, 4, 2, 5]);
  assert.deepEqual([...arranged({ dtype: "int32", shape: [2, 2], strides: [0, 1] }, toBytes("int32", [7, 8]))], [7, 8, 7, 8]);
});

test("elements are found in the whole words around them", () => {
  assert.deepEqual(around("int8", 5, 2), { begin: 4, bytes: 4, skipped: 1 });
  assert.deepEqual(around("float16", 3, 4), { begin: 4, bytes: 12, skipped: 1 });
  assert.deepEqual(around("float32", 3, 4), { begin: 12, bytes: 16, skipped: 0 });
  const bytes = toBytes("uint8", [9, 0, 1, 2, 3, 4, 5]);
  assert.deepEqual([...arranged({ dtype: "uint8", shape: [3, 2], strides: [1, 3] }, bytes, 1)], [0, 3, 1, 4, 2, 5]);
  assert.deepEqual([...arranged({ dtype: "uint8", shape: [5], strides: [1] }, bytes, 1)], [0, 1, 2, 3, 4]);
});

test("a file of every dtype is read", () => {
  const text = JSON.stringify({
    __metadata__: { by: "hand" },
    half: { dtype: "F16", shape: [2], data_offsets: [0, 4] },
    brain: { dtype: "BF16", shape: [1], data_offsets: [4, 6] },
    flags: { dtype: "BOOL", shape: [2], data_offsets: [6, 8] },
    long: { dtype: "I64", shape: [], data_offsets: [8, 16] },
  });
  const header = new TextEncoder().encode(text.padEnd(Math.ceil(text.length / 8) * 8));
  const data = [0x00, 0x3c, 0x01, 0x80, 0xc0, 0x3f, 1, 0, ...new Uint8Array(BigInt64Array.of(-5n).buffer)];
  const file = new Uint8Array([...new Uint8Array(BigUint64Array.of(BigInt(header.length)).buffer), ...header, ...data]).buffer;
  const found = parse(file);
  assert.deepEqual([...found].map(([name, entry]) => [name, entry.dtype, [...Array.from(entry.elements())]]), [
    ["half", "float16", [1, -(2 ** -24)]], ["brain", "bfloat16", [1.5]], ["flags", "bool", [1, 0]], ["long", "int64", [-5]],
  ]);
  assert.throws(() => parse(file.slice(0, -1)), /the tensors take 16 bytes, but the file has 15/);
});

test("a number of int64 is held to 32 bits", () => {
  const words = new Uint32Array(1);
  for (const number of [-(2 ** 31), -1, 0, 2 ** 31 - 1]) {
    put(words, "int64", 0, number);
    assert.equal(new Int32Array(words.buffer)[0], number);
  }
  for (const wrong of [-(2 ** 31) - 1, 2 ** 31, 1e10]) {
    assert.throws(() => put(words, "int64", 0, wrong), { kind: "overflow", message: /out of range/ });
  }
});
