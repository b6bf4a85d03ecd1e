/**
 * The bridge: a device, its memory and the Programs on it. It sees no op, no shape and no dtype.
 *
 * Calls take effect in the order in which they are made, also while a Program's pipelines still compile: what comes
 * after its first run then waits behind it. What goes wrong in a queue is told by the next call; what a Program that
 * failed should have written stays spoiled until somebody writes it.
 */

import { CallQueue } from "./call_queue.mjs";
import { BridgeError, as } from "./errors.mjs";
import { Memory } from "./memory.mjs";
import { Pool, Scratch, WORD } from "./pool.mjs";
import { Loaded, Pipelines, Residents, VERSION } from "./program.mjs";
import { Reader } from "./reader.mjs";
import { Stamps, Watch } from "./timing.mjs";

const BUDGET = 2 ** 30;
const WORDS = 2054; // of the device's own, for checks and for what workgroups tell each other (kernels/marks.py)
const LOSS_MS = 100; // a device that goes fails its reads first, and then says that it goes
const TURN_MS = 100; // what else waits in the event loop has a turn so often, though reads wait outside of it
const LIMITS = /** @type {const} */ ([
  "maxStorageBuffersPerShaderStage",
  "maxStorageBufferBindingSize",
  "maxBufferSize",
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX",
  "maxComputeWorkgroupStorageSize",
  "maxComputeWorkgroupsPerDimension",
]);
// Characters of WGSL whose pipelines a device keeps: of a CPU as many as natively (devices/loaded.py).
const [TEXTS, TEXTS_OF_A_CPU] = [2 ** 22, 2 ** 17];
const MATRICES = "chromium-experimental-subgroup-matrix";
const FEATURES = /** @type {GPUFeatureName[]} */ (["shader-f16", "subgroups", "timestamp-query", MATRICES]);

/**
 * @typedef {import("./pool.mjs").Chunk} Chunk
 * @typedef {import("./reader.mjs").Reading} Reading
 * @typedef {{ host: "node" | "browser", name: string, vendor: string, architecture: string, isFallback: boolean,
 *   limits: Record<string, number>, features: string[], subgroupSizes: [number, number],
 *   matrices: [string, string, number, number, number][] }} Info
 */

export class Bridge {
  /** @type {Map<number, Loaded>} */
  #programs = new Map();
  #calls = new CallQueue((error) => {
    this.#trouble ??= as("device", error);
  });
  /** @type {BridgeError | null} */
  #trouble = null;
  /** @type {BridgeError | null} */
  #lost = null;
  #serial = 0;
  #turned = 0; // when the event loop had its last turn
  /** @type {(Stamps | Watch | null)[] | null} of the runs since `time`, in their order */
  #timed = null;

  /** The default adapter's device. Throws BridgeError "absent". @param {GPU | undefined} gpu */
  static async open(gpu = globalThis.navigator?.gpu) {
    if (!gpu) throw new BridgeError("absent", "this browser has no WebGPU");
    const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" });
    if (!adapter) throw new BridgeError("absent", "WebGPU finds no adapter");
    const requiredLimits = Object.fromEntries(LIMITS.map((name) => [name, adapter.limits[name]]));
    const requiredFeatures = FEATURES.filter((name) => adapter.features.has(name));
    const bridge = new Bridge(await adapter.requestDevice({ requiredLimits, requiredFeatures }), adapter.info);
    bridge.pipelines.startHelper = /** @type {any} */ (gpu).helperFor?.(adapter.info) ?? null;
    return bridge;
  }

  /** @param {GPUDevice} gpu @param {GPUAdapterInfo} adapter */
  constructor(gpu, adapter) {
    this.gpu = gpu;
    /** @type {Info} */
    this.info = {
      host: "process" in globalThis ? "node" : "browser",
      name: adapter.description || adapter.device || `${adapter.vendor} ${adapter.architecture}`.trim() || "unnamed adapter",
      vendor: adapter.vendor,
      architecture: adapter.architecture,
      isFallback: Boolean(adapter.isFallbackAdapter),
      limits: Object.fromEntries(LIMITS.map((name) => [name, gpu.limits[name]])),
      features: FEATURES.filter((name) => gpu.features.has(name)),
      subgroupSizes: [adapter.subgroupMinSize ?? 0, adapter.subgroupMaxSize ?? 0],
      matrices: matrices(adapter),
    };
    this.counters = {
      dispatches: 0,
      submits: 0,
      writes: 0,
      buffers_created: 0,
      pipelines_created: 0,
      bind_groups_created: 0,
      device_bytes: 0,
    };
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    this.pool = new Pool((size) => this.create(size, usage), (chunk) => this.destroy(chunk), BUDGET);
    this.scratch = new Scratch(this.pool);
    this.memory = new Memory(this.pool);
    this.fault = this.create(WORD * WORDS, usage).buffer;
    this.reader = new Reader(this);
    this.pipelines = new Pipelines(this);
    const isCpu = this.info.isFallback || /swiftshader|llvmpipe/i.test(`${this.info.name} ${this.info.architecture}`);
    this.residents = new Residents(this.pipelines, isCpu ? TEXTS_OF_A_CPU : TEXTS);
    gpu.addEventListener("uncapturederror", (event) => {
      event.preventDefault();
      this.#trouble ??= new BridgeError("device", event.error.message);
    });
    void gpu.lost.then(({ reason, message }) => {
      this.#lost = new BridgeError("lost", `the device is gone (${reason}): ${message || "the system took it away"}`);
    });
  }

  /** What went wrong since the last call that told of it; the device's loss is told again and again. */
  takeTrouble() {
    const found = this.#lost ?? this.#trouble;
    this.#trouble = null;
    return found;
  }

  get isTroubled() {
    return this.#lost !== null || this.#trouble !== null;
  }

  /** Throws what went wrong before. */
  check() {
    const found = this.takeTrouble();
    if (found) throw found;
  }

  // Buffers

  /** Gives the number `id` memory that holds whatever lay there. @param {number} id @param {number} bytes */
  alloc(id, bytes) {
    this.#calls.inOrder(() => void this.memory.make(id, bytes));
  }

  /** Zeros: all of a buffer, which is made where it is not there. @param {number} id @param {number} bytes */
  clear(id, bytes) {
    this.#calls.inOrder(() => this.#clear(id, bytes));
  }

  /** @param {number} id */
  free(id) {
    this.#calls.inOrder(() => this.memory.free(id));
  }

  /**
   * Bytes into a buffer, which is made where it is not there. A word of which they are a part is read before: a queue
   * takes whole ones.
   * @param {number} id @param {Uint8Array} data @param {number} offset in bytes
   */
  write(id, data, offset = 0) {
    if (offset % WORD || data.byteLength % WORD) {
      this.#patch(id, data, offset);
      return;
    }
    const kept = this.#calls.isEmpty ? data : data.slice();
    this.#calls.inOrder(() => this.#write(id, kept, offset));
  }

  /** Bytes that are no whole words. What comes after waits until they are there. @param {number} id @param {Uint8Array} data @param {number} offset */
  #patch(id, data, offset) {
    const begin = offset - (offset % WORD);
    const whole = new Uint8Array(Math.ceil((offset + data.byteLength) / WORD) * WORD - begin);
    const kept = data.slice();
    const merge = (/** @type {Uint8Array} */ found) => {
      whole.set(found);
      whole.set(kept, offset - begin);
    };
    const ready = this.read(id, whole.byteLength, merge, begin).catch((error) => {
      this.#trouble ??= as("device", error);
    });
    this.#calls.defer(() => this.#write(id, whole, begin), ready);
  }

  /**
   * Bytes of a buffer from `offset` on, once all that was queued before is done. `use` sees them where they lie and
   * only while it runs; by default they are copied.
   * @template T
   * @param {number} id @param {number} bytes @param {(bytes: Uint8Array) => T} [use] @param {number} offset
   * @returns {Promise<T>}
   */
  read(id, bytes, use = /** @type {any} */ ((/** @type {Uint8Array} */ found) => found.slice()), offset = 0) {
    return new Promise((resolve, reject) => {
      this.#calls.inOrder(() => void this.#read(id, bytes, use, offset).then(resolve, reject));
    });
  }

  /**
   * As read. Where the host can wait without a turn of its event loop, had one not long ago, and need not wait long,
   * what `use` gives is here when this returns.
   * @template T
   * @param {number} id @param {number} bytes @param {(bytes: Uint8Array) => T} use
   * @returns {T | Promise<T>}
   */
  readNow(id, bytes, use) {
    const { waitUntil } = /** @type {any} */ (globalThis.navigator?.gpu ?? {});
    const note = () => (this.#turned = performance.now());
    if (!waitUntil || !this.#calls.isEmpty || performance.now() - this.#turned > TURN_MS) {
      return this.read(id, bytes, use).finally(note);
    }
    const reading = this.#reading(id, bytes, 0);
    if (reading && !reading.arrives(waitUntil, TURN_MS)) return this.#finished(reading, use).finally(note);
    const found = reading ? reading.take(use) : use(new Uint8Array());
    this.check();
    return found;
  }

  /** A buffer of the device; every one is made here and ended by `destroy`. @param {number} size @param {GPUBufferUsageFlags} usage @returns {Chunk} */
  create(size, usage) {
    if (size > this.gpu.limits.maxBufferSize) {
      throw new BridgeError("device", `a buffer of ${size} bytes is larger than the ${this.gpu.limits.maxBufferSize} allowed`);
    }
    this.counters.buffers_created++;
    this.counters.device_bytes += size;
    return { buffer: this.gpu.createBuffer({ size, usage }), size, serial: ++this.#serial };
  }

  /** @param {Chunk} chunk */
  destroy({ buffer, size }) {
    this.counters.device_bytes -= size;
    buffer.destroy();
  }

  // Programs

  /** A pipeline starts to compile that the Program which is loaded next will have. @param {import("./program.mjs").Kernel} kernel */
  prepare(kernel) {
    this.pipelines.begin(kernel);
    // A browser sends what is asked for when the task ends, or with a submit; until then its compiler would idle.
    if (this.info.host === "browser") this.gpu.queue.submit([]);
  }

  /**
   * Takes a Program; its pipelines start to compile. Throws BridgeError for one of another version.
   * @param {number} id the caller's number for it @param {string} json
   */
  load(id, json) {
    const wire = JSON.parse(json);
    if (wire.version !== VERSION) {
      throw new BridgeError("compile", `a program of version ${wire.version}; this bridge runs version ${VERSION}`);
    }
    const program = new Loaded(this, wire, this.pipelines, this.scratch.take(wire));
    this.#programs.set(id, program);
    this.pipelines.dropUnused();
    this.#makeResident(program);
  }

  /** It has its pipelines, or soon; those lose theirs that are too many then, where no run waits. @param {Loaded} program */
  #makeResident(program) {
    this.residents.ran(program);
    if (!this.#calls.isEmpty) return;
    for (const surplus of this.residents.surplus()) {
      this.reader.drop(surplus);
      surplus.unload();
    }
  }

  /** @param {number} id */
  drop(id) {
    this.#calls.inOrder(() => {
      const program = this.#programs.get(id);
      if (!program) return;
      this.#programs.delete(id);
      this.residents.drop(program);
      this.reader.drop(program);
      program.release();
      this.scratch.give(program.scratch.values());
    });
  }

  /** Settles when a Program can run; rejects with why it never will. @param {number} id */
  async prepared(id) {
    const program = this.#program(id);
    await program.ready;
    if (program.error) throw program.error;
  }

  /**
   * Queues a Program: one submit. An output whose number has no memory yet gets some.
   * @param {number} id @param {ArrayLike<number>} inputs @param {ArrayLike<number>} outputs
   * @param {Uint32Array} numbers the host numbers, a word each
   */
  run(id, inputs, outputs, numbers) {
    const program = this.#program(id);
    if (!program.hasPipelines) program.ready = program.prepare();
    this.#makeResident(program);
    if (program.isReady && this.#calls.isEmpty) {
      this.#run(program, inputs, outputs, numbers);
      return;
    }
    const [given, wanted, words] = [Array.from(inputs), Array.from(outputs), numbers.slice()];
    this.#calls.defer(() => this.#run(program, given, wanted, words), program.ready);
  }

  /** How many host numbers, inputs and outputs a Program has. @param {number} id */
  counts(id) {
    const program = this.#program(id);
    return { inputs: program.inputs.length, outputs: program.outputs.length, numbers: program.numbers };
  }

  /** Whether the runs from now on are timed: a pass a step, which costs more than one pass for all of them. @param {boolean} on */
  time(on) {
    this.#calls.inOrder(() => {
      this.#timed = on ? [] : null;
    });
  }

  /** For each run that was timed and not asked for yet: start and end of its steps, in nanoseconds; without the feature of the whole run. */
  async timings() {
    await this.settle();
    const timed = this.#timed ?? [];
    if (this.#timed) this.#timed = [];
    return Promise.all(timed.map((stamps) => stamps?.read() ?? []));
  }

  /** Settles when all that was queued is done. */
  async settle() {
    await new Promise((resolve) => this.#calls.inOrder(() => resolve(null)));
    await this.gpu.queue.onSubmittedWorkDone();
    this.check();
  }

  close() {
    this.pool.clear();
    this.reader.staging.clear();
    this.gpu.destroy();
    this.counters.device_bytes = 0;
  }

  // What happens in order

  /** @param {number} id @param {Uint8Array} data @param {number} offset */
  #write(id, data, offset) {
    this.memory.write(id, data.byteLength, (chunk) => {
      this.reader.forget(chunk);
      this.counters.writes++;
      this.gpu.queue.writeBuffer(chunk.buffer, offset, /** @type {Uint8Array<ArrayBuffer>} */ (data));
      if (!offset) this.memory.restore(id);
    });
  }

  /** @param {number} id @param {number} bytes */
  #clear(id, bytes) {
    this.memory.write(id, bytes, (chunk) => {
      this.reader.forget(chunk);
      const encoder = this.gpu.createCommandEncoder();
      encoder.clearBuffer(chunk.buffer);
      this.gpu.queue.submit([encoder.finish()]);
      this.memory.restore(id);
    });
  }

  /** @param {Loaded} program @param {ArrayLike<number>} inputs @param {ArrayLike<number>} outputs @param {Uint32Array} numbers */
  #run(program, inputs, outputs, numbers) {
    const timed = this.#timed?.length;
    const failed = program.error ?? this.memory.spoiledBy(inputs) ?? this.#tryRun(program, inputs, outputs, numbers);
    if (this.#timed?.length === timed) this.#timed?.push(null); // A run that never was keeps its position.
    this.memory.settle(outputs, failed);
  }

  /** @param {Loaded} program @param {ArrayLike<number>} inputs @param {ArrayLike<number>} outputs @param {Uint32Array} numbers */
  #tryRun(program, inputs, outputs, numbers) {
    const { chunks, wire } = program;
    const hasClock = this.gpu.features.has("timestamp-query");
    const stamps = this.#timed && hasClock ? new Stamps(this.gpu, wire.steps.length) : null;
    const start = performance.now();
    try {
      for (let i = 0; i < inputs.length; i++) chunks[program.inputs[i]] = this.memory.chunk(inputs[i]);
      const written = program.outputs.map((buffer, i) => (chunks[buffer] = this.memory.found(outputs[i], wire.sizes[buffer])));
      this.reader.begin(program, written);
      const groups = program.bind(numbers);
      if (wire.steps.length) this.#submit(program, written, groups, stamps);
      this.#timed?.push(stamps ?? new Watch(this.gpu, start));
      return null;
    } catch (error) {
      return as("device", error);
    }
  }

  /** @param {Loaded} program @param {Chunk[]} outputs @param {GPUBindGroup[]} groups @param {Stamps | null} stamps */
  #submit(program, outputs, groups, stamps) {
    const ahead = stamps ? null : this.reader.adopt(program, outputs, groups);
    const bring = (/** @type {GPUCommandEncoder} */ encoder) => this.reader.foresee(program, outputs, encoder);
    const commands = ahead ?? program.commands(groups, bring, stamps);
    for (const [at, part] of commands.entries()) {
      this.gpu.queue.submit([part]);
      if (!at) this.reader.startForeseen();
    }
    program.note(groups, outputs);
    this.counters.dispatches += program.wire.steps.length;
    this.counters.submits += commands.length;
  }

  /** @template T @param {number} id @param {number} bytes @param {(bytes: Uint8Array) => T} use @param {number} offset */
  async #read(id, bytes, use, offset) {
    const reading = this.#reading(id, bytes, offset);
    if (reading) return this.#finished(reading, use);
    this.check();
    return use(new Uint8Array());
  }

  /** @param {number} id @param {number} bytes @param {number} offset */
  #reading(id, bytes, offset) {
    const spoiled = this.#lost ?? this.memory.spoiledBy([id]);
    if (spoiled) throw spoiled;
    const isIdle = this.#calls.isEmpty && !this.#timed;
    return this.reader.read(bytes ? this.memory.chunk(id) : null, bytes, offset, isIdle);
  }

  /** @template T @param {Reading} reading @param {(bytes: Uint8Array) => T} use @returns {Promise<T>} */
  async #finished(reading, use) {
    const found = await reading.finish(use).catch(async (error) => {
      if (!this.#lost && error.kind === "device") await Promise.race([this.gpu.lost, new Promise((done) => setTimeout(done, LOSS_MS))]);
      throw this.#lost ?? error;
    });
    this.check();
    return found;
  }

  /** @param {number} id */
  #program(id) {
    const found = this.#programs.get(id);
    if (!found) throw new BridgeError("device", `there is no program ${id}`);
    return found;
  }
}

/** The subgroup matrices that Dawn offers: kinds of the operands and of the sums, then m, n, k. @param {any} adapter @returns {Info["matrices"]} */
function matrices(adapter) {
  const found = /** @type {any[]} */ (Array.from(adapter.subgroupMatrixConfigs ?? []));
  return found.map((one) => [one.componentType, one.resultComponentType, one.M, one.N, one.K]);
}
