/** Bringing bytes back: pooled staging buffers, and the fault words along where a kernel may have left some. */

import { BridgeError, as } from "./errors.mjs";
import { Pool } from "./pool.mjs";

export const FAULT_BYTES = 16;
const BUDGET = 2 ** 26;

/** @typedef {import("./pool.mjs").Chunk} Chunk */

export class Reader {
  /** @param {import("./program.mjs").Host} host */
  constructor(host) {
    this.gpu = host.gpu;
    this.fault = host.fault;
    const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
    this.staging = new Pool((size) => host.create(size, usage), (chunk) => host.destroy(chunk), BUDGET);
  }

  /**
   * Adds to `encoder` what brings a buffer's bytes to the host; call `start` on the result once that is submitted.
   * @param {GPUCommandEncoder} encoder @param {GPUBuffer | null} source @param {number} bytes @param {boolean} withFault
   * @param {number} offset
   */
  encode(encoder, source, bytes, withFault, offset = 0) {
    const staging = this.staging.take(bytes + (withFault ? FAULT_BYTES : 0));
    if (source && bytes) encoder.copyBufferToBuffer(source, offset, staging.buffer, 0, bytes);
    if (withFault) encoder.copyBufferToBuffer(this.fault, 0, staging.buffer, bytes, FAULT_BYTES);
    return new Reading(this, staging, bytes, withFault);
  }
}

class Reading {
  /** @type {Promise<void> | null} */
  #arrived = null;

  /** @param {Reader} reader @param {Chunk} staging @param {number} bytes @param {boolean} withFault */
  constructor(reader, staging, bytes, withFault) {
    this.reader = reader;
    this.staging = staging;
    this.bytes = bytes;
    this.withFault = withFault;
  }

  start() {
    this.#arrived = this.staging.buffer.mapAsync(GPUMapMode.READ, 0, this.bytes + (this.withFault ? FAULT_BYTES : 0));
    this.#arrived.catch(() => null); // Whoever finishes hears of it.
    return this;
  }

  /**
   * What `use` makes of the bytes, which it sees where they lie. Throws BridgeError "fault" where a kernel left one.
   * @template T @param {(bytes: Uint8Array) => T} use
   */
  async finish(use) {
    const { bytes, withFault, reader } = this;
    const { buffer } = this.staging;
    try {
      await this.#arrived;
      const found = new Uint8Array(buffer.getMappedRange(0, bytes + (withFault ? FAULT_BYTES : 0)));
      if (withFault) this.#checkFault(new Int32Array(found.buffer, found.byteOffset + bytes, 4));
      return use(found.subarray(0, bytes));
    } catch (error) {
      throw as("device", error);
    } finally {
      buffer.unmap();
      reader.staging.give(this.staging);
    }
  }

  /** Nobody wants it. */
  async discard() {
    await this.#arrived?.catch(() => null);
    this.staging.buffer.unmap();
    this.reader.staging.give(this.staging);
  }

  /** @param {Int32Array} words whether something happened, the index, the size that it left; or the name of an op, 1 */
  #checkFault(words) {
    const [happened, index, size, isOverflow] = words;
    if (!happened) return;
    this.reader.gpu.queue.writeBuffer(this.reader.fault, 0, new Uint8Array(FAULT_BYTES));
    if (isOverflow) {
      const name = new TextDecoder().decode(new Uint8Array(words.buffer, words.byteOffset + 4, 8)).replace(/\0+$/, "");
      const reason = "a result does not fit, since webgpu stores int64 as int32";
      throw new BridgeError("overflow", `${name}: ${reason}; compute it on the cpu device, or in float32`);
    }
    throw new BridgeError("fault", `index ${index} is out of bounds for dimension with size ${size}`);
  }
}
