/** Elements on the host and on the device, where they lie as pywebgpu/support/formats.py says: torch's bytes, in whole words, and int64 as int32. */

import { BridgeError } from "./errors.mjs";
import { WORD } from "./pool.mjs";

/** @typedef {import("./player.d.mts").Numbers} Numbers */

/** What holds the bytes of a dtype's elements. @type {Record<string, any>} */
const STORED = {
  bool: Uint8Array,
  uint8: Uint8Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: Int32Array,
  uint32: Uint32Array,
  float16: Uint16Array,
  bfloat16: Uint16Array,
  float32: Float32Array,
  complex32: Uint32Array, // two float16
  complex64: Float32Array, // two an element
};
export const DTYPES = Object.keys(STORED);
const FLOATS = new Set(["float32", "float16", "bfloat16"]);
const UNSIGNED = new Set(["bool", "uint8", "uint32"]);

/** How many elements a shape has. @param {number[]} shape */
export const size = (shape) => shape.reduce((n, m) => n * m, 1);

/** Bytes of an element on the device. @param {string} dtype @returns {number} */
export const itemSize = (dtype) => STORED[dtype].BYTES_PER_ELEMENT * (dtype === "complex64" ? 2 : 1);

/** Bytes of elements there: whole words. @param {string} dtype @param {number} count */
export const byteSize = (dtype, count) => Math.ceil((count * itemSize(dtype)) / WORD) * WORD;

/**
 * The whole words around elements: the first byte, how many bytes, and how many elements lie before those that are meant.
 * @param {string} dtype @param {number} offset @param {number} count
 */
export function around(dtype, offset, count) {
  const skipped = offset % Math.max(1, WORD / itemSize(dtype));
  return { begin: (offset - skipped) * itemSize(dtype), bytes: count ? byteSize(dtype, skipped + count) : 0, skipped };
}

/** The device's bytes of elements, whole words; an array that already has them is not copied. @param {string} dtype @param {ArrayLike<number>} list */
export function toBytes(dtype, list) {
  const found = stored(dtype, list);
  const bytes = new Uint8Array(/** @type {ArrayBuffer} */ (found.buffer), found.byteOffset, found.byteLength);
  if (bytes.length % WORD === 0) return bytes;
  const whole = new Uint8Array(byteSize(dtype, list.length));
  whole.set(bytes);
  return whole;
}

/** @param {string} dtype @param {ArrayLike<number>} list @returns {ArrayBufferView} */
function stored(dtype, list) {
  const Stored = STORED[dtype];
  if (dtype === "float16") return halves(list);
  if (dtype === "bfloat16") return Stored.from(list, (/** @type {any} */ element) => brainBits(Number(element)));
  if (dtype === "bool") return Stored.from(list, (/** @type {any} */ element) => Number(Boolean(element)));
  return list instanceof Stored ? /** @type {any} */ (list) : Stored.from(list, Number);
}

/** A copy of elements that came from the device. @param {string} dtype @param {Uint8Array} bytes @param {number} [count] @returns {Numbers} */
export function elements(dtype, bytes, count = bytes.length / itemSize(dtype)) {
  const found = new STORED[dtype](bytes.slice(0, count * itemSize(dtype)).buffer);
  if (dtype === "float16") return fromHalves(found);
  if (dtype === "bfloat16") return new Float32Array(Uint32Array.from(found, (/** @type {number} */ bits) => bits << 16).buffer);
  return found;
}

/**
 * The elements that strides pick, in row-major order. The first of them lies in `bytes` behind `skipped` others.
 * @param {{ dtype: string, shape: number[], strides: number[] }} view @param {Uint8Array} bytes @param {number} skipped
 */
export function arranged({ dtype, shape, strides }, bytes, skipped = 0) {
  const all = elements(dtype, bytes).subarray(skipped);
  const count = size(shape);
  const isDense = strides.every((stride, axis) => shape[axis] === 1 || stride === size(shape.slice(axis + 1)));
  if (isDense) return all.length === count && !skipped ? all : all.slice(0, count);
  const found = /** @type {Numbers} */ (new (/** @type {any} */ (all.constructor))(count));
  for (let at = 0; at < count; at++) {
    let offset = 0;
    for (let axis = shape.length - 1, left = at; axis >= 0; axis--) {
      offset += (left % shape[axis]) * strides[axis];
      left = Math.floor(left / shape[axis]);
    }
    found[at] = all[offset];
  }
  return found;
}

/** Puts a host number into its word, as a kernel computes with it. @param {Uint32Array} target @param {string} dtype @param {number} at @param {number} number */
export function put(target, dtype, at, number) {
  if (dtype === "int64" && !(Math.abs(number + 0.5) < 2 ** 31)) {
    throw new BridgeError("overflow", `the int64 number ${number} is out of range: webgpu stores int64 as int32`);
  }
  const Computed = FLOATS.has(dtype) ? Float32Array : UNSIGNED.has(dtype) ? Uint32Array : Int32Array;
  new Computed(/** @type {ArrayBuffer} */ (target.buffer))[at] = number;
}

const HALVES = /** @type {any} */ (globalThis).Float16Array; // Younger than WebGPU.

/** @param {ArrayLike<number>} list @returns {ArrayBufferView} */
function halves(list) {
  if (HALVES) return list instanceof HALVES ? /** @type {any} */ (list) : HALVES.from(list, Number);
  return Uint16Array.from(list, (element) => halfBits(Number(element)));
}

/** @param {Uint16Array} words */
const fromHalves = (words) => (HALVES ? Float32Array.from(new HALVES(words.buffer)) : Float32Array.from(words, half));

const scratch = new DataView(new ArrayBuffer(4));

/** The nearest number of 16 bits with a float32's exponent, ties to even. @param {number} number */
function brainBits(number) {
  if (Number.isNaN(number)) return 0x7fc0;
  scratch.setFloat32(0, number);
  const word = scratch.getUint32(0);
  return (word + 0x7fff + ((word >>> 16) & 1)) >>> 16;
}

/** The nearest number of 16 bits, ties to even, where there is no Float16Array. @param {number} number */
export function halfBits(number) {
  const sign = number < 0 || Object.is(number, -0) ? 0x8000 : 0;
  const magnitude = Math.abs(number);
  if (Number.isNaN(number)) return 0x7e00;
  const exponent = magnitude ? Math.max(-14, Math.floor(Math.log2(magnitude))) : -14;
  const count = magnitude / 2 ** (exponent - 10);
  const whole = Math.floor(count);
  const rest = count - whole;
  const rounded = whole + Number(rest > 0.5 || (rest === 0.5 && whole % 2 === 1));
  return sign | Math.min(0x7c00, magnitude === Infinity ? 0x7c00 : (exponent + 14) * 1024 + rounded);
}

/** @param {number} word */
export function half(word) {
  const [exponent, rest] = [(word >> 10) & 31, word & 1023];
  const magnitude = exponent === 31 ? (rest ? NaN : Infinity) : exponent ? (1 + rest / 1024) * 2 ** (exponent - 15) : rest * 2 ** -24;
  return word & 0x8000 ? -magnitude : magnitude;
}
