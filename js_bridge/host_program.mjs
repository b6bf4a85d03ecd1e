/**
 * What the host does for a run, as instructions: docs/guides/export.md lists them. Numbers are as in Python: a float or an int,
 * and what Python refuses (a division by zero, a power that overflows) is refused. Ints beyond 2 ** 53 are refused, too.
 */

import { refuse } from "./errors.mjs";

const MOST = 65536;

/**
 * @typedef {"float" | "int" | "bool"} Kind @typedef {(a: any, b?: any) => any} Rule @typedef {any[]} Instruction
 * @typedef {(cell: number) => any} Read @typedef {(cell: number, value: any) => void} Write @typedef {(read: Read, write: Write) => any} Step
 */

/** @param {number} result */
const whole = (result) => (Number.isSafeInteger(result) ? result + 0 : wrong("an int that no double holds")); // No -0.
/** @param {string} what @returns {never} */
const wrong = (what) => {
  throw refuse(`it cannot compute with these numbers: ${what}`);
};
/** Python raises where a function of finite numbers is none, or of no NaN is one. @param {number} result @param {number[]} operands */
const fit = (result, ...operands) => {
  const isFit = operands.every(Number.isFinite) ? Number.isFinite(result) : !Number.isNaN(result) || operands.some(Number.isNaN);
  return isFit ? result : wrong(`a function of ${operands.join(" and ")}`);
};
/** @param {(a: number) => number} rule @returns {Rule} */
const checked = (rule) => (a) => fit(rule(a), a);
/** @param {Rule} rule @returns {Rule} */
const divided = (rule) => (a, b) => (b === 0 ? wrong("a division by zero") : rule(a, b));
/** The remainder has the sign of b. @type {Rule} */
const mod = divided((a, b) => {
  const rest = a % b;
  if (rest === 0) return b < 0 ? -0 : 0;
  return rest < 0 === b < 0 ? rest : rest + b;
});
/** @type {Rule} */
const floordiv = divided((a, b) => {
  const rest = a % b;
  const quotient = (a - rest) / b - (rest && rest < 0 !== b < 0 ? 1 : 0);
  if (quotient === 0) return a / b < 0 || Object.is(a / b, -0) ? -0 : 0;
  return Math.floor(quotient) + (quotient - Math.floor(quotient) > 0.5 ? 1 : 0);
});
/** @type {Rule} */
const power = (a, b) => (a === 1 || (a === -1 && Math.abs(b) === Infinity) ? 1 : fit(a ** b, a, b));
/** Exact, where ** of doubles may be off by one. @type {Rule} */
const wholePower = (a, b) => {
  let result = b < 0 ? wrong("an int to a negative power") : 1;
  for (; b; b = Math.floor(b / 2), a *= a) if (b % 2) result *= a;
  return result;
};
/** Halves go to the even neighbour. @type {Rule} */
const round = (a) => (Math.abs(a % 1) === 0.5 ? 2 * Math.round(a / 2) : Math.round(a));

/** Of each operation the rule, then the type of its result where that is not the operands' own. @type {Record<string, [Rule, Kind?]>} */
const RULES = {
  add: [(a, b) => a + b], sub: [(a, b) => a - b], mul: [(a, b) => a * b], div: [divided((a, b) => a / b), "float"],
  floordiv: [floordiv], mod: [mod], pow: [power], min: [(a, b) => (b < a ? b : a)], max: [(a, b) => (b > a ? b : a)],
  lt: [(a, b) => a < b, "bool"], le: [(a, b) => a <= b, "bool"], gt: [(a, b) => a > b, "bool"],
  ge: [(a, b) => a >= b, "bool"], eq: [(a, b) => a === b, "bool"], ne: [(a, b) => a !== b, "bool"],
  neg: [(a) => -a], abs: [Math.abs], to_float: [(a) => a, "float"], trunc: [Math.trunc, "int"], floor: [Math.floor, "int"],
  ceil: [Math.ceil, "int"], round: [round, "int"], sqrt: [checked(Math.sqrt), "float"], exp: [checked(Math.exp), "float"],
  log: [checked(Math.log), "float"], sin: [checked(Math.sin), "float"], cos: [checked(Math.cos), "float"],
};
/** @type {Record<string, number>} */
const SPECIAL = { inf: Infinity, "-inf": -Infinity, nan: NaN };

/** @type {Record<string, number>} */
const LENGTHS = { float: 2, int: 2, read: 3, write: 3, guard: 4 };

export class HostProgram {
  /** @type {Kind[]} of each instruction's value; none where it has none */
  kinds = [];
  /** @type {any[]} of the last run, the value of each instruction */
  values = [];
  /** @type {Step[]} */
  #steps;

  /** Refuses what is no program. @param {Instruction[]} instructions @param {number} nCells */
  constructor(instructions, nCells) {
    if (!Array.isArray(instructions) || instructions.length > MOST) throw refuse("a host program is a list of instructions");
    this.#steps = instructions.map((instruction, at) => {
      try {
        return this.#step(instruction, nCells);
      } catch (error) {
        throw refuse(`instruction ${at} of a host program: ${error instanceof Error ? error.message : error}`);
      }
    });
  }

  /** Does it all; `read` gives a cell, `write` takes one. @param {Read} read @param {Write} write */
  run(read, write) {
    const before = this.values;
    this.values = [];
    try {
      for (const step of this.#steps) this.values.push(step(read, write));
    } catch (error) {
      this.values = before;
      throw error;
    }
    return this.values;
  }

  /** Refuses what is not the index of a value. @param {any} index @returns {Kind} */
  kind(index) {
    return (Number.isInteger(index) && this.kinds[index]) || wrong(`no value at ${index}`);
  }

  /** @param {Instruction} instruction @param {number} nCells @returns {Step} */
  #step(instruction, nCells) {
    const [op, a, b, text] = instruction;
    if (typeof op !== "string") wrong(`no operation ${instruction}`); // A list of one text is that text to an object.
    const [rule, result] = Object.hasOwn(RULES, op) ? RULES[op] : [];
    if (instruction.length !== (rule ? rule.length + 1 : LENGTHS[op])) wrong(`no operation ${instruction}`);
    const index = this.kinds.length++;
    if (op === "float" || op === "int") {
      const value = number(a, op);
      this.kinds[index] = op;
      return () => value;
    }
    if (op === "read" || op === "write") below(a, nCells);
    if (op === "read") {
      this.kinds[index] = b === "int" || b === "float" ? b : wrong(`no type ${b}`);
      return (read) => number(read(a), b);
    }
    const kinds = (op === "write" ? [b] : rule?.length === 2 ? [a, b] : [a]).map((operand) => this.kind(operand));
    if (op === "write") return (_, write) => write(a, this.values[b]);
    if (op === "guard") {
      if (typeof text !== "string") wrong("a guard without its text");
      const expected = kinds[0] === "bool" && typeof b === "boolean" ? b : number(b, kinds[0]);
      return () => Object.is(this.values[a], expected) || wrong(`${text} was ${expected} and is ${this.values[a]}; export it again with these`);
    }
    if (kinds.includes("bool") || (["min", "max"].includes(op) && kinds[0] !== kinds[1])) wrong(`${op} of ${kinds}`);
    const kind = (this.kinds[index] = result ?? (kinds.includes("float") ? "float" : "int"));
    const found = /** @type {Rule} */ (op === "pow" && kind === "int" ? wholePower : rule);
    return kind === "int" ? () => whole(found(this.values[a], this.values[b])) : () => found(this.values[a], this.values[b]);
  }
}

/** @param {any} value @param {Kind} kind */
function number(value, kind) {
  const found = kind === "float" && typeof value === "string" && Object.hasOwn(SPECIAL, value) ? SPECIAL[value] : value;
  if (typeof found !== "number" || (kind === "int" && !Number.isSafeInteger(found))) wrong(`${value} is no ${kind}`);
  return found;
}

/** @param {any} index @param {number} end */
function below(index, end) {
  if (!Number.isInteger(index) || index < 0 || index >= end) wrong(`${index} is none of ${end}`);
}
