/** A Program on a device: pipelines that compile side by side, scratch, bind groups for the sets of buffers that come again. */

import { BridgeError, as, compileError } from "./errors.mjs";

export const VERSION = 1;
const GROUPS = 8; // sets of bind groups kept for a Program
/** @type {Record<string, GPUBufferBindingType>} */
const BINDING = { r: "read-only-storage", w: "storage", n: "uniform", f: "storage" };

/**
 * @typedef {import("./pool.mjs").Chunk} Chunk
 * @typedef {import("./wire.d.ts").Program} Wire
 * @typedef {import("./wire.d.ts").Kernel} Kernel
 * @typedef {{ gpu: GPUDevice, fault: GPUBuffer, counters: Record<string, number> }} Host
 */

/** Pipelines by their text: equal kernels of all Programs share one. */
export class Pipelines {
  /** @type {Map<string, Promise<GPUComputePipeline>>} */
  #found = new Map();
  /** @type {Map<string, { group: GPUBindGroupLayout, pipeline: GPUPipelineLayout }>} */
  #layouts = new Map();

  /** @param {Host} host */
  constructor(host) {
    this.host = host;
  }

  /** @param {Kernel} kernel @returns {Promise<GPUComputePipeline>} */
  get(kernel) {
    const key = kernel.bindings + kernel.wgsl;
    let found = this.#found.get(key);
    if (!found) {
      found = this.#compile(kernel);
      this.#found.set(key, found);
    }
    return found;
  }

  /** @param {string} bindings the letters of wire.d.ts */
  layout(bindings) {
    let found = this.#layouts.get(bindings);
    if (!found) {
      const entries = [...bindings].map((letter, binding) => ({
        binding,
        visibility: GPUShaderStage.COMPUTE,
        buffer: { type: BINDING[letter] },
      }));
      const group = this.host.gpu.createBindGroupLayout({ entries });
      found = { group, pipeline: this.host.gpu.createPipelineLayout({ bindGroupLayouts: [group] }) };
      this.#layouts.set(bindings, found);
    }
    return found;
  }

  /** @param {Kernel} kernel */
  async #compile({ name, wgsl, bindings }) {
    const { gpu, counters } = this.host;
    counters.pipelines_created++;
    gpu.pushErrorScope("validation"); // The message comes from getCompilationInfo, with its line.
    const module = gpu.createShaderModule({ code: wgsl, label: name });
    const compiled = gpu.createComputePipelineAsync({
      label: name,
      layout: this.layout(bindings).pipeline,
      compute: { module, entryPoint: "main" },
    });
    void gpu.popErrorScope().catch(() => null);
    try {
      return await compiled;
    } catch (cause) {
      const info = await module.getCompilationInfo().catch(() => null);
      throw info ? compileError(name, wgsl, info, cause) : as("compile", cause);
    }
  }
}

export class Loaded {
  /** @type {GPUComputePipeline[]} of each step, once `ready` is over */
  #pipelines = [];
  /** @type {{ serials: Int32Array, groups: GPUBindGroup[] }[]} the newest first */
  #kept = [];
  /** @type {Uint32Array | null} */
  #numbers = null;
  /** @type {BridgeError | null} why it can never run */
  error = null;
  isReady = false;
  /** @type {{ output: number, bytes: number } | null} what was read after the last run, and may be again */
  wanted = null;

  /**
   * @param {Host} host @param {Wire} wire @param {Pipelines} pipelines
   * @param {Map<number, Chunk>} scratch
   */
  constructor(host, wire, pipelines, scratch) {
    this.host = host;
    this.wire = wire;
    this.pipelines = pipelines;
    this.inputs = wire.inputs.map((value) => value.buffer);
    this.outputs = wire.outputs.map((value) => value.buffer);
    this.numbers = wire.numbers.length;
    this.faults = wire.kernels.some((kernel) => kernel.bindings.includes("f"));
    /** @type {(Chunk | undefined)[]} the chunk of each buffer; those of inputs and outputs change from run to run */
    this.chunks = wire.sizes.map((_, buffer) => scratch.get(buffer));
    const { gpu } = host;
    this.uniform = this.numbers
      ? gpu.createBuffer({ size: 16 * Math.ceil(this.numbers / 4), usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST })
      : null;
    this.grids = wire.steps.map(([kernel]) => wire.kernels[kernel].grid);
    /** Settles when the pipelines are there, or `error` is; never rejects. */
    this.ready = this.#prepare();
  }

  async #prepare() {
    try {
      const made = await Promise.all(this.wire.kernels.map((kernel) => this.pipelines.get(kernel)));
      this.#pipelines = this.wire.steps.map(([kernel]) => made[kernel]);
    } catch (error) {
      this.error = as("compile", error);
    }
    this.isReady = true;
  }

  /**
   * One pass, one submit. `chunks` holds what belongs to this run.
   * @param {Uint32Array} numbers @param {(encoder: GPUCommandEncoder) => void} then adds what follows the pass
   */
  run(numbers, then) {
    const { gpu, counters } = this.host;
    if (this.uniform && !same(this.#numbers, numbers)) {
      this.#numbers = numbers.slice();
      gpu.queue.writeBuffer(this.uniform, 0, this.#numbers);
    }
    const { steps } = this.wire;
    if (!steps.length) return;
    const groups = this.#groups();
    const encoder = gpu.createCommandEncoder();
    const pass = encoder.beginComputePass();
    let current = null;
    for (let i = 0; i < steps.length; i++) {
      const pipeline = this.#pipelines[i];
      if (pipeline !== current) pass.setPipeline((current = pipeline));
      pass.setBindGroup(0, groups[i]);
      const [x, y, z] = this.grids[i];
      pass.dispatchWorkgroups(x, y, z);
    }
    pass.end();
    then(encoder);
    gpu.queue.submit([encoder.finish()]);
    counters.dispatches += steps.length;
    counters.submits++;
  }

  /** Bind groups of every step for the present chunks: kept ones, or new ones. */
  #groups() {
    const kept = this.#kept;
    const used = [...this.inputs, ...this.outputs];
    const serials = new Int32Array(used.length);
    for (let i = 0; i < used.length; i++) serials[i] = this.#chunk(used[i]).serial;
    const at = kept.findIndex((entry) => same(entry.serials, serials));
    const found = at < 0 ? { serials, groups: this.#makeGroups() } : kept[at];
    if (at !== 0) {
      if (at > 0) kept.splice(at, 1);
      kept.unshift(found);
      kept.length = Math.min(kept.length, GROUPS);
    }
    return found.groups;
  }

  #makeGroups() {
    const { gpu, fault, counters } = this.host;
    counters.bind_groups_created += this.wire.steps.length;
    return this.wire.steps.map(([kernel, ...buffers]) => {
      const { bindings } = this.wire.kernels[kernel];
      const resources = buffers.map((buffer) => this.#chunk(buffer).buffer);
      if (bindings.includes("n")) resources.push(/** @type {GPUBuffer} */ (this.uniform));
      if (bindings.includes("f")) resources.push(fault);
      return gpu.createBindGroup({
        layout: this.pipelines.layout(bindings).group,
        entries: resources.map((buffer, binding) => ({ binding, resource: { buffer } })),
      });
    });
  }

  /** @param {number} buffer */
  #chunk(buffer) {
    const chunk = this.chunks[buffer];
    if (!chunk) throw new BridgeError("device", `a program has no memory for its buffer ${buffer}`);
    return chunk;
  }

  release() {
    this.#kept = [];
    this.uniform?.destroy();
  }
}

/** @param {ArrayLike<number> | null} a @param {ArrayLike<number>} b */
function same(a, b) {
  if (!a || a.length !== b.length) return false;
  for (let i = 0; i < b.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
