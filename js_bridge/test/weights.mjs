/** Weight files, for tests that need no device. */

/** A safetensors file. @param {Record<string, [string, number[], ArrayBufferView]>} tensors dtype, shape, elements */
export function weights(tensors) {
  /** @type {Record<string, any>} */
  const header = {};
  /** @type {Uint8Array[]} */
  const parts = [];
  let end = 0;
  for (const [name, [dtype, shape, { buffer, byteLength }]] of Object.entries(tensors)) {
    header[name] = { dtype, shape, data_offsets: [end, (end += byteLength)] };
    parts.push(new Uint8Array(buffer));
  }
  const text = new TextEncoder().encode(JSON.stringify(header));
  const length = new Uint8Array(new BigUint64Array([BigInt(text.length)]).buffer);
  return new Uint8Array([length, text, ...parts].flatMap((part) => [...part])).buffer;
}
