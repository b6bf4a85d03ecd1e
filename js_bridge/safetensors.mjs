/**
 * The safetensors format: a length, a header of JSON, plain bytes. The rules are those of pywebgpu/io/safetensors.py.
 */

import { refuse } from "./errors.mjs";
import { isObject, isShape, isSize, isText } from "./validate.mjs";
import { half } from "./values.mjs";

const MAX_HEADER = 100_000_000;

/** @type {Record<string, [string, number, (view: DataView, at: number) => number]>} dtype, bytes, one element */
const DTYPES = {
  C64: ["complex64", 8, (view, at) => view.getFloat32(at, true)], // only ever read as bytes
  F32: ["float32", 4, (view, at) => view.getFloat32(at, true)],
  F16: ["float16", 2, (view, at) => half(view.getUint16(at, true))],
  BF16: ["bfloat16", 2, (view, at) => brain(view.getUint16(at, true))],
  I64: ["int64", 8, (view, at) => Number(view.getBigInt64(at, true))],
  I32: ["int32", 4, (view, at) => view.getInt32(at, true)],
  I16: ["int16", 2, (view, at) => view.getInt16(at, true)],
  I8: ["int8", 1, (view, at) => view.getInt8(at)],
  U32: ["uint32", 4, (view, at) => view.getUint32(at, true)],
  U8: ["uint8", 1, (view, at) => view.getUint8(at)],
  BOOL: ["bool", 1, (view, at) => view.getUint8(at)],
};

/**
 * One tensor of a file: its elements as numbers of the dtype, and as the bytes that the device has of them; null where
 * those are others.
 * @typedef {{ dtype: string, shape: number[], elements: () => ArrayLike<number>, stored: () => Uint8Array | null }} Entry
 */

/** The tensors of a file by name. Throws BridgeError "usage" for a damaged one. @param {ArrayBuffer} file @returns {Map<string, Entry>} */
export function parse(file) {
  if (file.byteLength < 8) throw damaged(`the file has ${file.byteLength} bytes; a header needs 8`);
  const size = Number(new DataView(file).getBigUint64(0, true));
  if (size > MAX_HEADER) throw damaged("it is no safetensors file: it does not begin with the length of a header");
  if (size > file.byteLength - 8) throw damaged(`the header has ${size} bytes, but the file ends after ${file.byteLength - 8}`);
  const { __metadata__: said, ...header } = headerOf(new Uint8Array(file, 8, size));
  if (!isObject(said ?? {}) || !Object.values(said ?? {}).every(isText)) throw damaged("__metadata__ must map strings to strings");
  /** @type {Map<string, Entry>} */
  const found = new Map();
  let end = 0;
  for (const [name, entry] of Object.entries(header).sort(([, a], [, b]) => order(a, b))) {
    const { dtype: code, shape, data_offsets: offsets } = entry ?? {};
    if (!Object.hasOwn(DTYPES, code)) throw damaged(`${name} has dtype ${String(code)}; known are ${Object.keys(DTYPES).join(", ")}`);
    const [dtype, bytes, read] = DTYPES[code];
    if (!isShape(shape)) throw damaged(`${name} has no shape`);
    if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isSize)) throw damaged(`${name} has no data_offsets`);
    const count = shape.reduce((/** @type {number} */ n, /** @type {number} */ m) => n * m, 1);
    if (offsets[1] - offsets[0] !== count * bytes) throw damaged(`the bytes of ${name} do not fit its shape [${shape}]`);
    if (offsets[0] !== end) throw damaged(`the bytes of ${name} begin at ${offsets[0]}, not at ${end}`);
    end = offsets[1];
    const begin = 8 + size + offsets[0];
    const stored = () => (code === "I64" || code === "BOOL" ? null : new Uint8Array(file, begin, count * bytes));
    found.set(name, { dtype, shape, elements: () => elements(code, file, begin, count, bytes, read), stored });
  }
  if (8 + size + end !== file.byteLength) throw damaged(`the tensors take ${end} bytes, but the file has ${file.byteLength - 8 - size}`);
  return found;
}

const damaged = (/** @type {string} */ text) => refuse(`weights.safetensors: ${text}`);

/** Where tensors lie, empty ones first. @param {any} a @param {any} b */
const order = (a, b) => a?.data_offsets?.[0] - b?.data_offsets?.[0] || a?.data_offsets?.[1] - b?.data_offsets?.[1] || 0;

/** @param {Uint8Array} bytes @returns {Record<string, any>} */
function headerOf(bytes) {
  try {
    const found = bytes[0] === 123 && JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    if (found) return found;
  } catch {}
  throw damaged("the header is not JSON, or does not start with '{'");
}

/**
 * @param {string} code @param {ArrayBuffer} file @param {number} begin @param {number} count @param {number} bytes
 * @param {(view: DataView, at: number) => number} read
 */
function elements(code, file, begin, count, bytes, read) {
  if (code === "F32") return new Float32Array(file.slice(begin, begin + 4 * count));
  const view = new DataView(file, begin, count * bytes);
  return Array.from({ length: count }, (_, at) => read(view, at * bytes));
}

/** @param {number} word */
function brain(word) {
  return new Float32Array(new Uint32Array([word << 16]).buffer)[0];
}
