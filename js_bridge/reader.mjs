/**
 * Bringing bytes back: pooled staging buffers, and the fault words along where a kernel may have left some.
 *
 * What was read after a Program's last run is brought along with its next one, in the same submit; while that is waited
 * for, the next run is encoded as it will probably be. pywebgpu/devices/reader.py does the same.
 */

import { BridgeError, as } from "./errors.mjs";
import { Pool } from "./pool.mjs";
import { same } from "./program.mjs";

export const FAULT_BYTES = 16;
const BUDGET = 2 ** 26;
const FORESEEN_BYTES = 4096; // a result up to this size may be brought back before anybody asks

/**
 * @typedef {import("./pool.mjs").Chunk} Chunk
 * @typedef {import("./program.mjs").Loaded} Loaded
 */

export class Reader {
  /** A kernel may have left a fault that no read has told of. */
  #mayFault = false;
  /** @type {{ program: Loaded, outputs: Chunk[] } | null} the last run */
  #last = null;
  /** @type {{ source: Chunk, reading: Reading, program: Loaded } | null} on its way since the last run */
  #foreseen = null;

  /** @param {import("./program.mjs").Host} host */
  constructor(host) {
    this.gpu = host.gpu;
    this.fault = host.fault;
    this.counters = host.counters;
    const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
    this.staging = new Pool((size) => host.create(size, usage), (chunk) => host.destroy(chunk), BUDGET);
  }

  /** Called in each run before its commands are made. @param {Loaded} program @param {Chunk[]} outputs */
  begin(program, outputs) {
    this.forget();
    this.#last = { program, outputs };
    this.#mayFault ||= program.faults;
  }

  /** What was read after a Program's last run is brought along with this one. @param {Loaded} program @param {Chunk[]} outputs @param {GPUCommandEncoder} encoder */
  foresee(program, outputs, encoder) {
    if (!program.wanted) return;
    const { output, bytes } = program.wanted;
    const source = outputs[output];
    this.#foreseen = { source, reading: this.#encode(encoder, source, bytes, this.#mayFault), program };
    this.#mayFault = false;
  }

  /** After the submit. */
  startForeseen() {
    this.#foreseen?.reading.start();
  }

  /** Nobody read what was foreseen, or `chunk` is written: it is not foreseen again. @param {Chunk | null} chunk */
  forget(chunk = null) {
    if (!this.#foreseen || (chunk && this.#foreseen.source !== chunk)) return;
    const { reading, program } = this.#foreseen;
    this.#mayFault ||= reading.withFault;
    program.wanted = null;
    this.#foreseen = null;
    reading.giveBack();
  }

  /**
   * Encodes the next run of a Program that is run again and again, as it will probably be, while the device is busy.
   * @param {Loaded} program
   */
  #encodeAhead(program) {
    const found = program.foretold();
    if (!found || !program.wanted) return;
    this.drop(program);
    const { output, bytes } = program.wanted;
    const source = found.outputs[output];
    /** @type {Reading | null} */
    let reading = null;
    const commands = program.commands(found.groups, (encoder) => (reading = this.#encode(encoder, source, bytes, program.faults)));
    if (reading) program.ahead = { groups: found.groups, source, reading, commands };
  }

  /** The commands of a run that were encoded ahead, in place of `foresee`. @param {Loaded} program @param {Chunk[]} outputs @param {GPUBindGroup[]} groups */
  adopt(program, outputs, groups) {
    const { ahead, wanted } = program;
    if (!ahead) return null;
    const { reading, source } = ahead;
    const isRead = wanted?.bytes === reading.bytes && outputs[wanted.output] === source;
    if (!isRead || reading.withFault !== this.#mayFault || !same(ahead.groups, groups)) {
      this.drop(program);
      return null;
    }
    program.ahead = null;
    this.#mayFault = false;
    this.#foreseen = { source, reading, program };
    return ahead.commands;
  }

  /** What was encoded ahead of a Program is not to be run. @param {Loaded} program */
  drop(program) {
    program.ahead?.reading.giveBack();
    program.ahead = null;
  }

  /**
   * Starts to read a buffer, or finds its bytes on their way. null where there is nothing to read.
   * @param {Chunk | null} source null for no bytes @param {number} bytes @param {number} offset
   * @param {boolean} isIdle whether the run that will probably come may be encoded meanwhile
   */
  read(source, bytes, offset, isIdle) {
    const foreseen = this.#foreseen;
    if (foreseen && foreseen.source === source && foreseen.reading.bytes === bytes && !offset) {
      this.#foreseen = null;
      if (isIdle) this.#encodeAhead(foreseen.program);
      return foreseen.reading;
    }
    if (foreseen?.reading.withFault) this.forget(); // A fault is told by the next read, and that is this one.
    if (!bytes && !this.#mayFault) return null;
    const encoder = this.gpu.createCommandEncoder();
    const reading = this.#encode(encoder, source, bytes, this.#mayFault, offset);
    this.#mayFault = false;
    this.gpu.queue.submit([encoder.finish()]);
    this.counters.submits++;
    const output = this.#last && source && bytes <= FORESEEN_BYTES && !offset ? this.#last.outputs.indexOf(source) : -1;
    if (this.#last && output >= 0) this.#last.program.wanted = { output, bytes };
    return reading.start();
  }

  /**
   * Adds to `encoder` what brings a buffer's bytes to the host; `start` the result once that is submitted.
   * @param {GPUCommandEncoder} encoder @param {Chunk | null} source @param {number} bytes @param {boolean} withFault
   * @param {number} offset
   */
  #encode(encoder, source, bytes, withFault, offset = 0) {
    const staging = this.staging.take(bytes + (withFault ? FAULT_BYTES : 0));
    if (source && bytes) encoder.copyBufferToBuffer(source.buffer, offset, staging.buffer, 0, bytes);
    if (withFault) encoder.copyBufferToBuffer(this.fault, 0, staging.buffer, bytes, FAULT_BYTES);
    return new Reading(this, staging, bytes, withFault);
  }
}

export class Reading {
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
    try {
      await this.#arrived;
    } catch (error) {
      this.giveBack();
      throw as("device", error);
    }
    return this.take(use);
  }

  /**
   * Whether the bytes are here, after a wait for them that leaves JavaScript to nobody.
   * @param {(isThere: () => boolean) => void} waitUntil @param {number} longest in milliseconds
   */
  arrives(waitUntil, longest) {
    const { buffer } = this.staging;
    const end = performance.now() + longest;
    waitUntil(() => buffer.mapState !== "pending" || performance.now() > end);
    return buffer.mapState === "mapped";
  }

  /** As finish, once they are here. @template T @param {(bytes: Uint8Array) => T} use */
  take(use) {
    const { bytes, withFault } = this;
    const { buffer } = this.staging;
    try {
      const found = new Uint8Array(buffer.getMappedRange(0, bytes + (withFault ? FAULT_BYTES : 0)));
      if (withFault) this.#checkFault(new Int32Array(found.buffer, found.byteOffset + bytes, 4));
      return use(found.subarray(0, bytes));
    } catch (error) {
      throw as("device", error);
    } finally {
      this.giveBack();
    }
  }

  /** Nobody wants it any more, be it on its way or not: after `unmap` the queue may write the buffer again. */
  giveBack() {
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
