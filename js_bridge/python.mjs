/**
 * Python's end of the bridge. Python writes its commands into memory that both sides see, and one call hands over all
 * of them: uploads and what became free lie there until the next run or read takes them along.
 */

import { Bridge } from "./bridge.mjs";
import { WORD } from "./pool.mjs";
import { load, save } from "./tuning.mjs";

/** Commands, as devices/bridged.py writes them: a word, then its arguments. */
const FREE = 1; // how many, buffers
const DROP = 2; // program
const WRITE = 3; // buffer, how many words, words
const RUN = 4; // program, inputs, outputs, host numbers
const CLEAR = 5; // buffer, how many words

/** @typedef {import("pyodide/ffi").PyBuffer} PyBuffer */

export class PythonBridge {
  /** @type {PyBuffer | null} */
  #area = null;
  /** @type {ReturnType<PyBuffer["getBuffer"]> | null} */
  #view = null;

  /** @param {Bridge} bridge @param {string} tuning what is kept of the adapter */
  constructor(bridge, tuning = "") {
    this.bridge = bridge;
    this.info = JSON.stringify({ ...bridge.info, tuning });
  }

  /** Keeps what was measured of the adapter. Where, as text; "" where nothing is kept. @param {string} tuning */
  keep(tuning) {
    return save(this.bridge.info, tuning);
  }

  /** The memory for commands: a bytearray that Python keeps, as a proxy that lives until the next one. @param {PyBuffer} area */
  attach(area) {
    this.#view?.release();
    this.#area?.destroy();
    this.#area = area;
    this.#view = area.getBuffer("u8");
  }

  /**
   * Takes the commands: the first `words` words of the area. Returns false, having taken nothing, where there is
   * trouble to be told first.
   * @param {number} words
   */
  flush(words) {
    if (this.bridge.isTroubled) return false;
    this.#take(words);
    return true;
  }

  /** Takes the commands, then an upload that is too large for them. @param {number} words @param {number} id @param {PyBuffer} data */
  write(words, id, data) {
    this.#take(words);
    const view = data.getBuffer("u8");
    try {
      this.bridge.write(id, /** @type {Uint8Array} */ (view.data));
    } finally {
      view.release();
    }
  }

  /**
   * Takes the commands, then reads: into `target`, or one word as a number where there is none.
   * @param {number} words @param {number} id @param {number} bytes @param {PyBuffer} [target]
   */
  async read(words, id, bytes, target) {
    this.#take(words);
    return this.bridge.read(id, bytes, (found) => given(found, target));
  }

  /** As read; what it gives may be here when it returns. @param {number} words @param {number} id @param {number} bytes @param {PyBuffer} [target] */
  readNow(words, id, bytes, target) {
    this.#take(words);
    return this.bridge.readNow(id, bytes, (found) => given(found, target));
  }

  /** A kernel of the Program that is loaded next. @param {string} json */
  prepare(json) {
    this.bridge.prepare(JSON.parse(json));
  }

  /** Returns the bytes that the insides of all Programs have together. @param {number} id @param {string} json */
  load(id, json) {
    this.bridge.load(id, json);
    return this.bridge.scratch.bytes;
  }

  /** @param {number} words */
  async settle(words) {
    this.#take(words);
    await this.bridge.settle();
  }

  check() {
    this.bridge.check();
  }

  /** Takes the commands, then times the runs that follow, or no longer. @param {number} words @param {boolean} on */
  time(words, on) {
    this.#take(words);
    this.bridge.time(on);
  }

  /** Takes the commands, then what was timed, as JSON. @param {number} words */
  async timings(words) {
    this.#take(words);
    return JSON.stringify(await this.bridge.timings());
  }

  counters() {
    const { pool, scratch } = this.bridge;
    const held = { waiting_bytes: pool.waitingBytes, scratch_bytes: scratch.bytes, pool_reused: pool.reused, pool_created: pool.created };
    return JSON.stringify({ ...this.bridge.counters, ...held });
  }

  close() {
    this.#view?.release();
    this.#area?.destroy();
    this.#area = this.#view = null;
    this.bridge.close();
  }

  /** The area's bytes where they lie now: WebAssembly memory that grew has moved. */
  #bytes() {
    if (!this.#area || !this.#view) throw new Error("python.mjs: no area is attached");
    if (!this.#view.data.byteLength) {
      this.#view.release();
      this.#view = this.#area.getBuffer("u8");
    }
    return /** @type {Uint8Array} */ (this.#view.data);
  }

  /** @param {number} count */
  #take(count) {
    if (!count) return;
    const { bridge } = this;
    const { buffer, byteOffset } = this.#bytes();
    const words = new Int32Array(buffer, byteOffset, count);
    let at = 0;
    const take = (/** @type {number} */ n) => words.subarray(at, (at += n));
    while (at < words.length) {
      const [command, id] = take(2);
      if (command === FREE) {
        for (const buffer of take(id)) bridge.free(buffer);
      } else if (command === DROP) {
        bridge.drop(id);
      } else if (command === WRITE) {
        const [size] = take(1);
        bridge.write(id, new Uint8Array(buffer, byteOffset + WORD * at, WORD * size));
        at += size;
      } else if (command === RUN) {
        const { inputs, outputs, numbers } = bridge.counts(id);
        const given = take(inputs);
        const wanted = take(outputs);
        bridge.run(id, given, wanted, new Uint32Array(buffer, byteOffset + WORD * at, numbers));
        at += numbers;
      } else if (command === CLEAR) {
        bridge.clear(id, WORD * take(1)[0]);
      } else {
        throw new Error(`python.mjs: there is no command ${command}`);
      }
    }
  }
}

/** @param {Uint8Array} found @param {PyBuffer} [target] */
function given(found, target) {
  if (!target) return new DataView(found.buffer, found.byteOffset).getUint32(0, true);
  const view = target.getBuffer("u8");
  view.data.set(found);
  view.release();
  return 0;
}

/** @type {Promise<PythonBridge> | null} */
let opened = null;

/**
 * Opens the device before there is a Python to ask for it, and has kernels compiled that it will probably want.
 * @param {Promise<import("./wire.d.ts").Kernel[]>} foreseen
 */
export async function openAhead(foreseen) {
  opened = open();
  const { bridge } = await opened;
  bridge.pipelines.foresee(await foreseen);
  return bridge;
}

/** The default adapter's device, for Python: the one that was opened ahead, or another one. */
export async function open() {
  const ahead = opened;
  opened = null;
  if (ahead) return ahead;
  const bridge = await Bridge.open();
  return new PythonBridge(bridge, await load(bridge.info));
}
