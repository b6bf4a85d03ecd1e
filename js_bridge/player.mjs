/**
 * Plays what `pywebgpu.export` wrote: trains and infers on the bridge, with no Python. In pages, in workers, and in
 * Node after `offerWebGPU` of dawn.mjs.
 *
 *     const player = await load("./model/");
 *     const loss = await player.step("training", { x, y });
 *
 * A program reads and writes states, which all programs share. What it cannot write in place goes to a second buffer,
 * and the two change places; so from the second step on nothing is made, and a step is one submit. Numbers of the host
 * (rates, counts, seeds) are cells; the host program of each says what a run reads, computes and writes there.
 */

import { Bridge } from "./bridge.mjs";
import { BridgeError, refuse } from "./errors.mjs";
import { VERSION, checked, fetched } from "./files.mjs";
import { WORD } from "./pool.mjs";
import { Runner } from "./runner.mjs";
import { around, byteSize, elements, itemSize, size, toBytes } from "./values.mjs";

export { BridgeError, VERSION };

/**
 * @typedef {import("./player.d.mts").Player} Api
 * @typedef {import("./player.d.mts").Input} Input
 * @typedef {import("./files.mjs").Data} Data
 * @typedef {import("./files.mjs").State} State
 * @typedef {import("./files.mjs").Named} Named
 * @typedef {import("./files.mjs").Cell} Cell
 */

/**
 * @param {string | URL | import("./player.d.mts").Files} source
 * @param {{ gpu?: GPU, progress?: (done: number, all: number) => void }} options progress: how many kernels are compiled
 * @returns {Promise<Api>}
 */
export async function load(source, { gpu, progress } = {}) {
  const files = source instanceof URL || typeof source === "string" ? await fetched(source) : source;
  const { data, weights } = checked(files);
  const bridge = await Bridge.open(gpu ?? globalThis.navigator?.gpu);
  try {
    bridge.pipelines.onReady = progress ?? null;
    const player = new Player(bridge, data, weights);
    await player.prepared();
    return player;
  } catch (error) {
    bridge.close();
    throw error;
  }
}

/** @implements {Api} */
class Player {
  /** @type {number[]} of each state, the buffer that holds it now */
  #homes = [];
  /** @type {Map<string, Runner>} */
  #runners = new Map();
  #nextBuffer = 0;
  #cells;
  #data;

  /** @param {Bridge} bridge @param {Data} data @param {Map<string, import("./safetensors.mjs").Entry>} weights */
  constructor(bridge, data, weights) {
    this.bridge = bridge;
    this.#data = data;
    this.#cells = data.cells.map(({ value }) => value);
    this.#requireLimits();
    for (const state of data.states) {
      const id = this.#nextBuffer++;
      const whole = new Uint8Array(Math.max(WORD, byteSize(state.dtype, size(state.shape))));
      for (const [name, offset] of state.parts) {
        const entry = /** @type {import("./safetensors.mjs").Entry} */ (weights.get(name));
        const bytes = (entry.dtype === state.dtype && entry.stored()) || toBytes(state.dtype, entry.elements());
        whole.set(bytes.subarray(0, size(entry.shape) * itemSize(state.dtype)), offset * itemSize(state.dtype));
      }
      bridge.write(id, whole);
      this.#homes.push(id);
    }
    let at = 0;
    for (const [name, step] of Object.entries(data.programs)) {
      this.#runners.set(name, new Runner(name, at++, step, bridge, this.#homes, () => this.#nextBuffer++));
    }
    const ofKinds = (/** @type {string[]} */ ...kinds) => data.tensors.filter(({ kind }) => kinds.includes(kind));
    const access = { bridge, states: data.states, homes: this.#homes };
    this.params = new Tensors(ofKinds("parameter", "buffer"), access);
    this.gradients = new Tensors(ofKinds("gradient"), access);
    this.optimizer = new Moments(ofKinds("optimizer"), access, () => this.#forgetCounts());
    this.options = optionsOf(data.cells, this.#cells);
    this.programs = Object.fromEntries(
      Object.entries(data.programs).map(([name, { tensors, numbers, notes }]) => [name, { inputs: tensors, numbers, notes }]),
    );
    const names = Object.values(data.programs).flatMap(({ captures }) => Object.keys(captures)).sort();
    this.captures = {
      names,
      has: (/** @type {string} */ name) => names.includes(name),
      shape: (/** @type {string} */ name) => this.#capturing(name).step.captures[name].shape,
      get: (/** @type {string} */ name) => this.#captured(name),
    };
  }

  async prepared() {
    await Promise.all([...this.#runners.values()].map(({ id }) => this.bridge.prepared(id)));
  }

  /** @param {string} name @param {Record<string, Input>} inputs */
  queue(name, inputs = {}) {
    this.bridge.check();
    this.#runner(name).queue(inputs, this.#cells);
  }

  /** @param {string} name @param {Record<string, Input>} inputs */
  async run(name, inputs = {}) {
    this.queue(name, inputs);
    const runner = this.#runner(name);
    return runner.shown(runner.step.result);
  }

  /** @param {string} name @param {Record<string, Input>} inputs */
  step(name, inputs = {}) {
    return this.run(name, inputs);
  }

  close() {
    this.bridge.close();
  }

  /** @param {string} name */
  #runner(name) {
    const found = this.#runners.get(name);
    if (!found) throw refuse(`there is no program ${name}; there are ${[...this.#runners.keys()].join(", ")}`);
    return found;
  }

  /** The program that captures something by this name. @param {string} name */
  #capturing(name) {
    const runner = [...this.#runners.values()].find(({ step }) => Object.hasOwn(step.captures, name));
    const there = this.captures.names.join(", ") || "none; pywebgpu.capture(name, tensor) in a step registers one";
    if (!runner) throw refuse(`nothing is captured as ${name}; there are ${there}`);
    return runner;
  }

  /** @param {string} name */
  async #captured(name) {
    const runner = this.#capturing(name);
    if (!runner.hasRun) throw refuse(`${name} is there once ${runner.name} has run`);
    return runner.shown(runner.step.captures[name]);
  }

  #forgetCounts() {
    for (const [at, { kind }] of this.#data.cells.entries()) if (kind === "count") this.#cells[at] = 0;
  }

  #requireLimits() {
    const { maxStorageBuffersPerShaderStage: most, maxStorageBufferBindingSize, maxBufferSize } = this.bridge.info.limits;
    const states = this.#data.states.map(({ dtype, shape }) => byteSize(dtype, size(shape)));
    for (const [name, { program }] of Object.entries(this.#data.programs)) {
      const largest = [...states, ...program.sizes].reduce((n, m) => Math.max(n, m), 0);
      if (largest > maxBufferSize) throw refuse(`${name} has a buffer of ${largest} bytes; this device allows ${maxBufferSize}`);
      const { sizes, ranges } = program;
      const bound = program.steps.flatMap((step) => step.slice(1)).map((at) => (at < sizes.length ? sizes[at] : ranges[at - sizes.length][2]));
      const widest = bound.reduce((n, m) => Math.max(n, m), 0);
      if (widest > maxStorageBufferBindingSize) throw refuse(`${name} binds ${widest} bytes at once; this device allows ${maxStorageBufferBindingSize}`);
      const needed = Math.max(0, ...program.kernels.map(({ bindings }) => bindings.replace("n", "").length));
      if (needed > most) throw new BridgeError("compile", `${name} binds ${needed} buffers at once; this device allows ${most}`);
    }
  }
}

/** @typedef {{ bridge: Bridge, states: State[], homes: number[] }} Access */

class Tensors {
  /** @param {Named[]} entries @param {Access} access */
  constructor(entries, access) {
    this.entries = new Map(entries.map((entry) => [entry.name, entry]));
    this.access = access;
  }

  get names() {
    return [...this.entries.keys()];
  }

  /** @param {string} name */
  shape(name) {
    return this.entry(name).shape;
  }

  /** @param {string} name */
  async get(name) {
    const { state, offset, shape } = this.entry(name);
    const { bridge, states, homes } = this.access;
    const { dtype } = states[state];
    const { begin, bytes, skipped } = around(dtype, offset, size(shape));
    const data = await bridge.read(homes[state], bytes, (found) => elements(dtype, found).slice(skipped, skipped + size(shape)), begin);
    return { data, shape };
  }

  async all() {
    const { bridge, states, homes } = this.access;
    const used = [...new Set([...this.entries.values()].map(({ state }) => state))];
    const found = await Promise.all(
      used.map((state) => {
        const { dtype, shape } = states[state];
        return bridge.read(homes[state], byteSize(dtype, size(shape)), (bytes) => elements(dtype, bytes));
      }),
    );
    const named = [...this.entries.values()].map(({ name, state, offset, shape }) => {
      const data = found[used.indexOf(state)].slice(offset, offset + size(shape));
      return [name, { data, shape }];
    });
    return /** @type {Record<string, import("./player.d.mts").Tensor>} */ (Object.fromEntries(named));
  }

  /** @param {Record<string, ArrayLike<number>>} values */
  set(values) {
    const { bridge, states, homes } = this.access;
    const ready = Object.entries(values).map(([name, list]) => {
      const { state, offset, shape } = this.entry(name);
      const count = size(shape);
      if (list?.length !== count) throw refuse(`${name} has ${count} elements; it was given ${list?.length}`);
      const { dtype, shape: whole } = states[state];
      const bytes = toBytes(dtype, list);
      const isLast = offset + count === size(whole); // What follows in its last word is nobody's.
      return { id: homes[state], bytes: isLast ? bytes : bytes.subarray(0, count * itemSize(dtype)), offset: offset * itemSize(dtype) };
    });
    for (const { id, bytes, offset } of ready) bridge.write(id, bytes, offset);
  }

  /** @param {string} name */
  entry(name) {
    const found = this.entries.get(name);
    if (!found) throw refuse(`there is no tensor ${name}; there are ${this.names.join(", ") || "none"}`);
    return found;
  }
}

class Moments extends Tensors {
  /** @param {Named[]} entries @param {Access} access @param {() => void} forgetCounts */
  constructor(entries, access, forgetCounts) {
    super(entries, access);
    this.forgetCounts = forgetCounts;
  }

  reset() {
    const zeros = this.names.map((name) => [name, new Float32Array(size(this.shape(name)))]);
    this.set(Object.fromEntries(zeros));
    this.forgetCounts();
  }
}

/** The cells by name: `lr` is all of that name, `lr:1` the second of them. @param {Cell[]} described @param {number[]} cells */
function optionsOf(described, cells) {
  /** @type {Map<string, number[]>} */
  const indices = new Map();
  described.forEach(({ name }, at) => indices.set(name, [...(indices.get(name) ?? []), at]));
  const plain = [...indices.keys()];
  for (const name of plain) indices.get(name)?.forEach((at, k) => indices.set(`${name}:${k}`, [at]));
  const at = (/** @type {string | symbol} */ name) => {
    const found = indices.get(String(name));
    if (!found) throw refuse(`there is no option ${String(name)}; there are ${plain.join(", ") || "none"}`);
    return found;
  };
  return new Proxy(/** @type {Record<string, number>} */ ({}), {
    get: (_, name) => (typeof name === "symbol" || name === "then" ? undefined : cells[at(name)[0]]),
    set(_, name, number) {
      if (typeof number !== "number") throw refuse(`${String(name)} is a number, not ${number}`);
      for (const index of at(name)) cells[index] = number;
      return true;
    },
    has: (_, name) => indices.has(String(name)),
    ownKeys: () => plain,
    getOwnPropertyDescriptor: (_, name) => (plain.includes(String(name)) ? { value: cells[at(name)[0]], enumerable: true, configurable: true, writable: true } : undefined),
  });
}
