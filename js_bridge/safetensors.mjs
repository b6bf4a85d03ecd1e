/**
 * The safetensors format: a length, a header of JSON, plain bytes. The rules are those of pywebgpu/io/safetensors.py.
 */

import { refuse } from "./errors.mjs";

/** @type {Record<string, [string, number, (view: DataView, at: number) => number]>} dtype, bytes, one element */
const DTYPES = {
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

/** One tensor of a file: its elements as numbers of the dtype. @typedef {{ dtype: string, shape: number[], elements: () => ArrayLike<number> }} Entry */

/** The tensors of a file by name. Throws BridgeError "usage" for a damaged one. @param {ArrayBuffer} file @returns {Map<string, Entry>} */
export function parse(file) {
  if (file.byteLength < 8) throw refuse(`weights.safetensors: the file has ${file.byteLength} bytes; a header needs 8`);
  const size = Number(new DataView(file).getBigUint64(0, true));
  if (size > file.byteLength - 8) throw refuse(`weights.safetensors: the header has ${size} bytes, but the file ends after ${file.byteLength - 8}`);
  /** @type {Record<string, { dtype: string, shape: number[], data_offsets: [number, number] }>} */
  const header = headerOf(new TextDecoder().decode(new Uint8Array(file, 8, size)));
  /** @type {Map<string, Entry>} */
  const found = new Map();
  for (const [name, { dtype: code, shape, data_offsets: place }] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const known = DTYPES[code];
    if (!known) throw refuse(`weights.safetensors: ${name} has dtype ${code}; known are ${Object.keys(DTYPES).join(", ")}`);
    const [dtype, bytes, read] = known;
    const count = shape.reduce((n, m) => n * m, 1);
    const [begin, end] = [place[0] + 8 + size, place[1] + 8 + size];
    if (end - begin !== count * bytes || end > file.byteLength) throw refuse(`weights.safetensors: the bytes of ${name} do not fit its shape [${shape}], or are missing`);
    found.set(name, { dtype, shape, elements: () => elements(code, file, begin, count, bytes, read) });
  }
  return found;
}

/** @param {string} text */
function headerOf(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw refuse("weights.safetensors: the header is not JSON");
  }
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
function half(word) {
  const [exponent, rest] = [(word >> 10) & 31, word & 1023];
  const size = exponent === 31 ? (rest ? NaN : Infinity) : exponent ? (1 + rest / 1024) * 2 ** (exponent - 15) : rest * 2 ** -24;
  return word & 0x8000 ? -size : size;
}

/** @param {number} word */
function brain(word) {
  return new Float32Array(new Uint32Array([word << 16]).buffer)[0];
}
