/** One program of an export: its buffers, and what the host does for a run. */

import { refuse } from "./errors.mjs";
import { HostProgram } from "./host_program.mjs";
import { arranged, around, put, size, toBytes } from "./values.mjs";

/** @typedef {import("./bridge.mjs").Bridge} Bridge */
/**
 * @typedef {import("./player.d.mts").Input} Input
 * @typedef {import("./player.d.mts").Value} Value
 * @typedef {{ cells: ["cell" | "argument", number][], program: any[][], words: number[] }} Host
 * @typedef {["argument" | "state" | "output", number]} Where
 * @typedef {{ dtype: string, shape: number[], strides: number[], offset: number }} View
 * @typedef {{ program: import("./wire.d.ts").Program, tensors: { name: string, dtype: string, shape: number[] }[],
 *   numbers: string[], sources: Where[], takers: number[][], host: Host, result: any,
 *   captures: Record<string, any>, notes: string[] }} Step
 */

export class Runner {
  hasRun = false;
  /** @type {number[]} of each output, the buffer of the last run */
  outputs = [];
  /** @type {number[]} of each output that changes places with a state, the buffer of the next run */
  #spares = [];
  #host;
  #over;

  /**
   * @param {string} name @param {number} id @param {Step} step @param {Bridge} bridge @param {number[]} homes
   * @param {() => number} newBuffer
   */
  constructor(name, id, step, bridge, homes, newBuffer) {
    this.name = name;
    this.id = id;
    this.step = step;
    this.bridge = bridge;
    this.homes = homes;
    this.newBuffer = newBuffer;
    this.given = step.tensors.map(() => newBuffer());
    this.numbers = new Uint32Array(step.program.numbers.length);
    this.#over = new Map(step.program.written);
    this.#host = new HostProgram(step.host.program, step.host.cells.length);
    bridge.load(id, JSON.stringify(step.program));
  }

  /** Queues a run; nothing is changed where what was given does not fit. @param {Record<string, Input>} inputs @param {number[]} cells */
  queue(inputs, cells) {
    const { step, bridge } = this;
    const given = this.#given(inputs);
    const [after, values] = this.#hosted(inputs, cells);
    step.host.words.forEach((index, at) => put(this.numbers, step.program.numbers[at], at, values[index]));
    given.forEach((bytes, at) => bridge.write(this.given[at], bytes));
    const sources = step.sources.map(([kind, at]) => (kind === "argument" ? this.given[at] : this.homes[at]));
    this.outputs = this.#destinations(sources);
    bridge.run(this.id, sources, this.outputs, this.numbers);
    step.takers.forEach((taken, at) => this.#take(taken, at));
    after.forEach((number, at) => (cells[at] = number));
    this.hasRun = true;
  }

  /** What a template of the export stands for after the last run. @param {any} template @returns {Promise<Value>} */
  async shown(template) {
    if ("tensor" in template) {
      const [kind, at] = /** @type {Where} */ (template.tensor);
      const id = kind === "argument" ? this.given[at] : kind === "state" ? this.homes[at] : this.outputs[at];
      const { dtype, shape, strides, offset } = /** @type {View} */ (template);
      const last = shape.reduce((sum, n, axis) => sum + (n - 1) * strides[axis], 0);
      const { begin, bytes, skipped } = around(dtype, offset, size(shape) && last + 1);
      const data = await this.bridge.read(id, bytes, (found) => arranged(template, found, skipped), begin);
      if (shape.length) return { data, shape };
      return dtype === "bool" ? data[0] !== 0 : data[0];
    }
    if ("list" in template) return Promise.all(template.list.map((/** @type {any} */ item) => this.shown(item)));
    if ("dict" in template) {
      const entries = Object.entries(template.dict).map(async ([key, item]) => [key, await this.shown(item)]);
      return Object.fromEntries(await Promise.all(entries));
    }
    return "number" in template ? this.#host.values[template.number] : template.plain;
  }

  /** The bytes of each input. @param {Record<string, Input>} inputs */
  #given(inputs) {
    const { tensors, numbers } = this.step;
    const wanted = [...tensors.map(({ name }) => name), ...numbers];
    const names = Object.keys(inputs);
    if (names.length !== wanted.length || wanted.some((name) => !Object.hasOwn(inputs, name))) {
      throw refuse(`${this.name} takes ${wanted.join(", ") || "nothing"}; it was given ${names.join(", ") || "nothing"}`);
    }
    return tensors.map(({ name, dtype, shape }) => {
      const count = size(shape);
      const input = inputs[name];
      const list = typeof input === "number" ? [input] : input;
      if (list?.length !== count) {
        throw refuse(`${this.name}: ${name} has shape [${shape}], which is ${count} elements; it was given ${list?.length}`);
      }
      return toBytes(dtype, list);
    });
  }

  /** The cells after what the host does, and all its values. @param {Record<string, Input>} inputs @param {number[]} cells @returns {[number[], any[]]} */
  #hosted(inputs, cells) {
    const after = [...cells];
    const where = this.step.host.cells;
    const read = (/** @type {number} */ cell) => {
      const [kind, at] = where[cell];
      return kind === "cell" ? after[at] : Number(inputs[this.step.numbers[at]]);
    };
    try {
      return [after, this.#host.run(read, (cell, value) => (after[where[cell][1]] = value))];
    } catch (error) {
      throw refuse(`${this.name}: ${error instanceof Error ? error.message : error}`);
    }
  }

  /** Where outputs go: over the input that they replace, into a state's own memory, or into a spare buffer. @param {number[]} sources */
  #destinations(sources) {
    const { step, homes } = this;
    const { outputs } = step.program;
    /** @type {number[]} */
    const found = [];
    for (const [at, taken] of step.takers.entries()) {
      const same = outputs.findIndex(({ buffer }) => buffer === outputs[at].buffer);
      const own = taken.length === 1 ? homes[taken[0]] : -1;
      const isFree = own >= 0 && !sources.includes(own) && homes.indexOf(own) === homes.lastIndexOf(own);
      const over = this.#over.get(at);
      if (same < at) found.push(found[same]);
      else if (over !== undefined) found.push(sources[over]);
      else found.push(isFree ? own : (this.#spares[at] ??= this.newBuffer()));
    }
    return found;
  }

  /** The states that take an output have its buffer; one that is now nobody's is the next spare. @param {number[]} taken @param {number} at */
  #take(taken, at) {
    const { homes, outputs } = this;
    for (const state of taken) {
      const old = homes[state];
      if (old === outputs[at]) continue;
      homes[state] = outputs[at];
      if (homes.includes(old)) delete this.#spares[at];
      else if (this.#spares[at] === outputs[at] || this.#spares[at] === undefined) this.#spares[at] = old;
      else this.bridge.free(old);
    }
  }
}
