/** Elements on the host and on the device: there, every one takes a 32-bit word (a float, or an integer with or without sign). */

import { BridgeError } from "./errors.mjs";

/** @typedef {import("./player.d.mts").Numbers} Numbers */

const FLOATS = new Set(["float32", "float16", "bfloat16"]);
const UNSIGNED = new Set(["bool", "uint8", "uint32"]);

/** How many elements a shape has. @param {number[]} shape */
export const size = (shape) => shape.reduce((n, m) => n * m, 1);

/** The array that reads the words of a dtype. @param {string} dtype */
const arrayOf = (dtype) => (FLOATS.has(dtype) ? Float32Array : UNSIGNED.has(dtype) ? Uint32Array : Int32Array);

/** The device's bytes of elements; an array that already has them is not copied. @param {string} dtype @param {ArrayLike<number>} list */
export function toBytes(dtype, list) {
  const Words = arrayOf(dtype);
  const isReady = list instanceof Words && dtype !== "float16" && dtype !== "bfloat16" && dtype !== "bool";
  const found = isReady ? list : /** @type {any} */ (Words).from(list, converter(dtype));
  return new Uint8Array(/** @type {ArrayBuffer} */ (found.buffer), found.byteOffset, found.byteLength);
}

/** A copy of elements that came from the device; bools are 0 or 1. @param {string} dtype @param {Uint8Array} bytes @returns {Numbers} */
export function words(dtype, bytes) {
  const found = new (arrayOf(dtype))(bytes.slice().buffer);
  return dtype === "bool" ? Uint8Array.from(found, (word) => Number(word !== 0)) : found;
}

/**
 * The elements that strides pick, in row-major order. `bytes` begins with the first of them.
 * @param {{ dtype: string, shape: number[], strides: number[] }} view @param {Uint8Array} bytes
 */
export function arranged({ dtype, shape, strides }, bytes) {
  const all = words(dtype, bytes);
  const count = size(shape);
  const isDense = strides.every((stride, axis) => shape[axis] === 1 || stride === size(shape.slice(axis + 1)));
  if (isDense && count === all.length) return all;
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

/** Puts a host number into its word. @param {Uint32Array} target @param {string} dtype @param {number} at @param {number} number */
export function put(target, dtype, at, number) {
  if (dtype === "int64" && !(Math.abs(number + 0.5) < 2 ** 31)) {
    throw new BridgeError("overflow", `the int64 number ${number} is out of range: webgpu stores int64 as int32`);
  }
  new (arrayOf(dtype))(/** @type {ArrayBuffer} */ (target.buffer))[at] = number;
}

/** How a number becomes an element. @param {string} dtype @returns {(element: any) => number} */
function converter(dtype) {
  if (dtype === "bool") return (element) => Number(Boolean(element));
  if (dtype === "float16") return (element) => roundedHalf(Number(element));
  if (dtype === "bfloat16") return (element) => roundedBrain(Number(element));
  return Number;
}

const bits = new DataView(new ArrayBuffer(4));

/** The nearest number with 8 bits, ties to even. @param {number} number */
function roundedBrain(number) {
  bits.setFloat32(0, number);
  const word = bits.getUint32(0);
  if (Number.isNaN(number)) return NaN;
  bits.setUint32(0, (word + 0x7fff + ((word >>> 16) & 1)) & 0xffff0000);
  return bits.getFloat32(0);
}

/** The nearest number of 16 bits, ties to even. @param {number} number */
function roundedHalf(number) {
  const size = Math.abs(number);
  if (!(size > 0 && size < Infinity)) return number;
  const unit = 2 ** (Math.max(-14, Math.floor(Math.log2(size))) - 10);
  const count = size / unit;
  const whole = Math.floor(count);
  const rest = count - whole;
  const rounded = (whole + Number(rest > 0.5 || (rest === 0.5 && whole % 2 === 1))) * unit;
  return Math.sign(number) * (rounded > 65504 ? Infinity : rounded);
}
