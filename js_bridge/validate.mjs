/**
 * Whether data is an export, and its programs Programs: all of it is held against itself before anything is made of it.
 * The rules and their words are those of pywebgpu/compiler/validate.py and pywebgpu/exporter/validate.py.
 */

import { BridgeError, refuse } from "./errors.mjs";
import { HostProgram } from "./host_program.mjs";
import { WORD } from "./pool.mjs";
import { VERSION } from "./program.mjs";
import { DTYPES, byteSize, size } from "./values.mjs";

const MAX_GROUPS = 65535;
const MAX_NUMBERS = 16384;
const MAX_RANK = 64;
const MAX_DEPTH = 100;
const NEEDED = ["shader-f16", "subgroups", "chromium-experimental-subgroup-matrix"];
/** @type {Record<string, string>} */
const KINDS = { r: "storage, read", w: "storage, read_write", n: "uniform", f: "storage, read_write" };

/** @param {any} holds @param {string} where @param {string} rule */
function require(holds, where, rule) {
  if (!holds) throw refuse(`${where}: ${rule}`);
}

const isList = Array.isArray;
export const isObject = (/** @type {any} */ value) => typeof value === "object" && value !== null && !isList(value);
export const isText = (/** @type {any} */ value) => typeof value === "string";
const isDtype = (/** @type {any} */ value) => DTYPES.includes(value);
/** @param {any} value */
export const isSize = (value) => Number.isSafeInteger(value) && value >= 0;
/** @param {any} at @param {any[]} things */
const isAt = (at, things) => isSize(at) && at < things.length;
/** @param {any} value @param {number} [n] */
const areSizes = (value, n) => isList(value) && (n ?? value.length) === value.length && value.every(isSize);
/** @param {any} value */
export const isShape = (value) =>
  areSizes(value) && value.length <= MAX_RANK && value.reduce((/** @type {number} */ n, /** @type {number} */ m) => n * (m || 1), 1) <= Number.MAX_SAFE_INTEGER;
/** Whether it has a shape, and beside it a dtype or a name. @param {any} value @param {"dtype" | "name"} key */
const isSpec = (value, key) => isObject(value) && (key === "dtype" ? isDtype(value.dtype) : isText(value.name)) && isShape(value.shape);
/** @param {any} found @param {any} value */
const isLike = (found, value) => found && found.dtype === value.dtype && size(found.shape) === size(value.shape);
/** @param {any[]} list */
const areDistinct = (list) => new Set(list).size === list.length;

/** Throws BridgeError: "compile" for a Program of another version, "usage" for any other. @param {any} data */
export function checkProgram(data) {
  require(isObject(data), "a program", "it is an object");
  if (data.version !== VERSION) throw new BridgeError("compile", `a program of version ${data.version}; this player runs version ${VERSION}`);
  for (const name of ["kernels", "steps", "sizes", "ranges", "scratch", "inputs", "outputs", "numbers", "blocks", "written"]) require(isList(data[name]), name, "it is a list");
  const { kernels, sizes, ranges, numbers, blocks } = data;
  sizes.forEach((/** @type {any} */ bytes, /** @type {number} */ at) => require(isSize(bytes) && bytes >= WORD && bytes % WORD === 0, `sizes[${at}]`, "a buffer has words, one at least"));
  ranges.forEach((/** @type {any} */ found, /** @type {number} */ at) => {
    const fits = areSizes(found, 3) && found[0] < sizes.length && found[1] % 256 === 0 && found[2] % WORD === 0 && found[2] > 0 && found[1] + found[2] <= sizes[found[0]];
    require(fits, `ranges[${at}]`, "a buffer, a multiple of 256, and bytes that it has");
  });
  checkEnds(data);
  kernels.forEach((/** @type {any} */ kernel, /** @type {number} */ at) => checkKernel(`kernels[${at}]`, kernel, blocks.length));
  blocks.forEach((/** @type {any} */ block, /** @type {number} */ at) => {
    const fits = areSizes(block) && block.length > 0 && block.length <= MAX_NUMBERS && block.every((/** @type {number} */ n) => n < numbers.length);
    require(fits, `blocks[${at}]`, "it has host numbers, one at least");
  });
  checkSteps(data);
  const total = sizes.reduce((/** @type {number} */ n, /** @type {number} */ m) => n + m, 0);
  require(isSize(data.lower_bound) && data.lower_bound <= total, "lower_bound", "at most the bytes of all buffers");
}

/** What goes in and comes out. @param {any} data */
function checkEnds({ inputs, outputs, written, sizes, scratch, numbers }) {
  for (const [name, values] of Object.entries({ inputs, outputs })) {
    values.forEach((/** @type {any} */ value, /** @type {number} */ at) => {
      const fits = isSpec(value, "dtype") && isAt(value.buffer, sizes) && byteSize(value.dtype, size(value.shape)) <= sizes[value.buffer];
      require(fits, `${name}[${at}]`, "a value has a dtype of webgpu, and a buffer that holds its shape");
    });
  }
  /** @type {number[][]} */
  const [given, made] = [inputs, outputs].map((values) => values.map((/** @type {any} */ { buffer }) => buffer));
  require(areDistinct(given), "inputs", "each has a buffer of its own");
  written.forEach((/** @type {any} */ pair, /** @type {number} */ at) => {
    const fits = areSizes(pair, 2) && isAt(pair[0], made) && isAt(pair[1], given) && made[pair[0]] === given[pair[1]];
    require(fits, `written[${at}]`, "an output, and the input whose buffer it has");
  });
  const replaced = written.map((/** @type {number[]} */ [output]) => output);
  require(areDistinct(replaced), "written", "an output replaces one input");
  made.forEach((buffer, at) => require(replaced.includes(at) || !given.includes(buffer), `outputs[${at}]`, "it has the buffer of an input that stays"));
  const ends = new Set([...given, ...made]);
  const fits = areSizes(scratch, sizes.length - ends.size) && areDistinct(scratch) && scratch.every((/** @type {number} */ at) => at < sizes.length && !ends.has(at));
  require(fits, "scratch", "the buffers that are neither an input's nor an output's");
  require(numbers.length <= MAX_NUMBERS && numbers.every(isDtype), "numbers", "dtypes of webgpu");
}

/** @param {string} where @param {any} kernel @param {number} count of blocks */
function checkKernel(where, kernel, count) {
  require(isObject(kernel) && isText(kernel.name) && isText(kernel.wgsl) && isText(kernel.bindings), where, "name, wgsl and bindings are text");
  const { grid, bindings, wgsl } = kernel;
  require(areSizes(grid, 3) && grid.every((/** @type {number} */ n) => n > 0 && n <= MAX_GROUPS), where, `a grid is three numbers from 1 to ${MAX_GROUPS}`);
  require(/^(?=.*w)[rw]+n?f?$/.test(bindings), where, "bindings are r and w, some w among them, then n, then f");
  require(!bindings.includes("n") || count, where, "it reads host numbers, and there are none");
  const declared = [...wgsl.matchAll(/@group\(0\) @binding\((\d+)\) var<([a-z_, ]+)>/g)].map(([, at, kind]) => Number(at) + kind);
  const fits = declared.join() === [...bindings].map((letter, at) => at + KINDS[letter]).join();
  const isWhole = wgsl.split("@binding(").length === bindings.length + 1 && /@compute\b[^{}]*\bfn main\(/.test(wgsl);
  require(fits && isWhole, where, "its text has the entry main, and binds what the letters say");
  const needs = kernel.needs ?? [];
  const areKnown = isList(needs) && areDistinct(needs) && needs.every((/** @type {any} */ name) => NEEDED.includes(name));
  require(areKnown, where, "it needs features that kernels may need, each told once");
  require(isSize(kernel.work ?? 0), where, "its work is a number of multiplications");
}

/** @param {any} data */
function checkSteps({ kernels, steps, sizes, ranges, blocks, inputs, outputs }) {
  const known = new Set(inputs.map((/** @type {any} */ { buffer }) => buffer));
  steps.forEach((/** @type {any} */ step, /** @type {number} */ at) => {
    const where = `steps[${at}]`;
    const isStep = areSizes(step) && isAt(step[0], kernels);
    const bindings = isStep ? kernels[step[0]].bindings : "";
    const letters = bindings.replace(/[nf]/g, "");
    const [places, own] = isStep ? [step.slice(1, 1 + letters.length), step.slice(1 + letters.length)] : [[], []];
    const areThere = places.length === letters.length && places.every((/** @type {number} */ n) => n < sizes.length + ranges.length);
    const fits = isStep && areThere && own.length === Number(bindings.includes("n")) && own.every((/** @type {number} */ n) => n < blocks.length);
    require(fits, where, "a kernel, a buffer or a range for each letter r and w of it, and a block for n");
    const bound = places.map((/** @type {number} */ n) => (n < sizes.length ? [n, 0, Infinity] : ranges[n - sizes.length]));
    /** @type {number[][][]} */
    const [read, written] = ["r", "w"].map((letter) => bound.filter((/** @type {any} */ _, /** @type {number} */ i) => letters[i] === letter));
    written.forEach(([buffer, begin, bytes], k) => {
      const isApart = written.slice(0, k).every(([b, e, n]) => b !== buffer || e + n <= begin || begin + bytes <= e);
      require(!read.some(([b]) => b === buffer) && isApart, where, "it writes what it binds twice");
      known.add(buffer);
    });
  });
  outputs.forEach((/** @type {any} */ { buffer, shape }, /** @type {number} */ at) => require(known.has(buffer) || shape.includes(0), `outputs[${at}]`, "no step writes it"));
}

/**
 * Throws BridgeError as checkProgram, for what `program.json` holds and the tensors of the weights.
 * @param {any} data @param {Map<string, { shape: number[] }>} weights
 */
export function checkExport(data, weights) {
  require(isObject(data), "an export", "it is an object");
  for (const name of ["states", "tensors", "cells"]) require(isList(data[name]), name, "it is a list");
  require(isObject(data.programs), "programs", "it is an object");
  const { states, tensors, cells } = data;
  states.forEach((/** @type {any} */ state, /** @type {number} */ at) => {
    require(isSpec(state, "dtype") && isList(state.parts), `states[${at}]`, "a dtype of webgpu, a shape and parts");
    for (const part of state.parts) {
      const found = isList(part) && part.length === 2 && isSize(part[1]) ? weights.get(part[0]) : null;
      require(found && part[1] + size(found.shape) <= size(state.shape), `states[${at}]`, "a part is a tensor of the weights, and where it begins inside the state");
    }
  });
  tensors.forEach((/** @type {any} */ tensor, /** @type {number} */ at) => {
    const fits = isSpec(tensor, "name") && ["parameter", "buffer", "optimizer", "gradient"].includes(tensor.kind) && isAt(tensor.state, states);
    const isInside = fits && isSize(tensor.offset) && tensor.offset + size(tensor.shape) <= size(states[tensor.state].shape);
    require(isInside, `tensors[${at}]`, "a name, a kind, and elements of a state");
  });
  cells.forEach((/** @type {any} */ cell, /** @type {number} */ at) => {
    const fits = isObject(cell) && isText(cell.name) && ["option", "count", "draws"].includes(cell.kind) && Number.isFinite(cell.value);
    require(fits, `cells[${at}]`, "a name, a kind and a number");
  });
  for (const [name, step] of Object.entries(data.programs)) checkStep(name, step, states, cells);
}

/** One program of an export, with what its runs are given and do. @param {string} name @param {any} step @param {any[]} states @param {any[]} cells */
function checkStep(name, step, states, cells) {
  require(isObject(step), name, "it is an object");
  const lists = ["tensors", "numbers", "sources", "takers", "notes"];
  for (const key of lists) require(isList(step[key]), `${name}.${key}`, "it is a list");
  try {
    checkProgram(step.program);
  } catch (error) {
    throw error instanceof BridgeError ? new BridgeError(error.kind, `${name}.${error.message}`) : error;
  }
  const { program, tensors, numbers, sources, takers } = step;
  require(tensors.every((/** @type {any} */ one) => isSpec(one, "name") && isDtype(one.dtype)), `${name}.tensors`, "each has a name, a dtype of webgpu and a shape");
  const wanted = [...tensors.map((/** @type {any} */ one) => one.name), ...numbers];
  require(wanted.every(isText) && areDistinct(wanted), `${name}.numbers`, "names that are there once");
  require(step.notes.every(isText), `${name}.notes`, "they are text");

  /** What ["state", 3] and the like name. @param {any} pair @param {Record<string, any[]>} lists */
  const at = (pair, lists) => (isList(pair) && pair.length === 2 && isText(pair[0]) && Object.hasOwn(lists, pair[0]) && isAt(pair[1], lists[pair[0]]) ? lists[pair[0]][pair[1]] : null);
  const ends = { argument: tensors, state: states };
  require(sources.length === program.inputs.length, `${name}.sources`, "one for each input of the program");
  sources.forEach((/** @type {any} */ source, /** @type {number} */ i) => require(isLike(at(source, ends), program.inputs[i]), `${name}.sources`, "an argument or a state with the input's dtype and elements"));
  require(takers.length === program.outputs.length, `${name}.takers`, "one for each output of the program");
  takers.forEach((/** @type {any} */ taken, /** @type {number} */ i) => {
    const fits = isList(taken) && taken.every((state) => isAt(state, states) && isLike(states[state], program.outputs[i]));
    require(fits, `${name}.takers`, "states with the output's dtype and elements");
  });
  require(areDistinct(takers.flat()), `${name}.takers`, "a state takes one output");
  for (const [output, given] of program.written) {
    const [kind, state] = sources[given];
    const isOnce = sources.filter((/** @type {any} */ one) => one[0] === kind && one[1] === state).length === 1;
    require(isOnce && kind === "state" && takers[output].length === 1 && takers[output][0] === state, `${name}.takers`, "what overwrites a state is taken by it alone");
  }

  const host = checkedHost(`${name}.host`, step, (pair) => at(pair, { cell: cells, argument: numbers }) !== null);

  /** @param {string} where @param {any} template @param {number} depth */
  const checkTemplate = (where, template, depth = 0) => {
    require(isObject(template) && depth <= MAX_DEPTH, where, "an object, in few others");
    if (Object.hasOwn(template, "tensor")) {
      const found = at(template.tensor, { ...ends, output: program.outputs });
      require(isView(template, found), where, "elements of an argument, a state or an output");
    } else if (Object.hasOwn(template, "list")) {
      require(isList(template.list), where, "it is a list");
      for (const item of template.list) checkTemplate(where, item, depth + 1);
    } else if (Object.hasOwn(template, "dict")) {
      require(isObject(template.dict), where, "it is an object");
      for (const item of Object.values(template.dict)) checkTemplate(where, item, depth + 1);
    } else if (Object.hasOwn(template, "number")) {
      require(isValue(template.number, host), where, "an index of a value of the host program");
    } else {
      const { plain } = template;
      require(plain === null || isText(plain) || typeof plain === "boolean" || Number.isFinite(plain), where, "a tensor, a list, a dict, a number or what is plain");
    }
  };
  checkTemplate(`${name}.result`, step.result);
  require(isObject(step.captures), `${name}.captures`, "it is an object");
  for (const [title, template] of Object.entries(step.captures)) checkTemplate(`${name}.captures.${title}`, template);
}

/** What the host does; its instructions look for their operands themselves. @param {string} where @param {any} step @param {(pair: any) => boolean} isCell */
function checkedHost(where, { host, program }, isCell) {
  require(isObject(host), where, "it is an object");
  const { cells, words } = host;
  for (const key of ["cells", "program", "words"]) require(isList(host[key]), `${where}.${key}`, "it is a list");
  require(cells.every(isCell), `${where}.cells`, "cells of the export and numbers that a run is given");
  let made;
  try {
    made = new HostProgram(host.program, cells.length);
  } catch (error) {
    throw error instanceof BridgeError ? refuse(`${where}.program: ${error.message}`) : error;
  }
  const stays = host.program.every((/** @type {any[]} */ [op, cell]) => op !== "write" || cells[cell][0] === "cell");
  require(stays, `${where}.program`, "a number that a run is given stays what it is");
  const fits = words.length === program.numbers.length && words.every((/** @type {any} */ index) => isValue(index, made));
  require(fits, `${where}.words`, "an index of a value for each number of the program");
  return made;
}

/** @param {any} index @param {HostProgram} host */
const isValue = (index, host) => isAt(index, host.kinds) && host.kinds[index] !== undefined;

/** Whether strides and an offset pick elements that are there. @param {any} view @param {any} found */
function isView({ dtype, shape, strides, offset }, found) {
  if (!found || dtype !== found.dtype || !isShape(shape) || !isSize(offset) || !areSizes(strides, shape.length)) return false;
  const last = shape.reduce((/** @type {number} */ sum, /** @type {number} */ n, /** @type {number} */ axis) => sum + (n - 1) * strides[axis], offset);
  return shape.includes(0) || last < size(found.shape);
}
