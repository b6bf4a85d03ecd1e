// What player.mjs offers: programs exported from Python that train and infer without it. docs/guides/export.md explains it.

import type { Bridge } from "./bridge.mjs";

export { BridgeError } from "./errors.mjs";

/** The smallest array that holds the elements of a dtype; float16 and bfloat16 come as float32. */
export type Numbers = Float32Array | Int32Array | Uint32Array | Int16Array | Int8Array | Uint8Array;

/** A tensor on the host: its elements in row-major order. */
export interface Tensor {
  data: Numbers;
  shape: number[];
}

/** What a program is given for a tensor: its elements in row-major order; one number for a tensor of one element. */
export type Input = number | ArrayLike<number>;

/** What a function returned in Python: a tensor without dimensions is a number, a tuple an array. */
export type Value = Tensor | number | boolean | string | null | Value[] | { [name: string]: Value };

/** What a program takes, and what of its host code stayed in Python. */
export interface Program {
  readonly inputs: { name: string; dtype: string; shape: number[] }[];
  readonly numbers: string[];
  readonly notes: string[];
}

/** Tensors of the player by name, each on the device. */
export interface Tensors {
  readonly names: string[];
  /** Raises BridgeError "usage" for an unknown name, as everything here. */
  shape(name: string): number[];
  /** Brings a tensor's present value to the host. */
  get(name: string): Promise<Tensor>;
  /** Brings all of them, by one copy for each buffer that holds some. */
  all(): Promise<Record<string, Tensor>>;
  /** Gives some of them new values. Where a name or a size does not fit, none is changed. */
  set(values: Record<string, ArrayLike<number>>): void;
}

export interface Optimizer extends Tensors {
  /** Forgets all steps: what is kept of each parameter becomes zero, and so do the counts of steps. */
  reset(): void;
}

export interface Captures {
  readonly names: string[];
  has(name: string): boolean;
  /** Known before anything runs. */
  shape(name: string): number[];
  /** What the last run of the program that captures it left there. */
  get(name: string): Promise<Value>;
}

export interface Player {
  readonly bridge: Bridge;
  readonly programs: Record<string, Program>;
  readonly params: Tensors;
  readonly gradients: Tensors;
  readonly optimizer: Optimizer;
  readonly captures: Captures;
  /** The numbers of the host. `lr` is that of all groups which have one, `lr:1` that of the second. */
  readonly options: Record<string, number>;
  /** Queues a program, one submit, and returns at once. */
  queue(name: string, inputs?: Record<string, Input>): void;
  /** Queues a program, and brings back what its function returned. */
  run(name: string, inputs?: Record<string, Input>): Promise<Value>;
  /** The same by another name, for programs that train. */
  step(name: string, inputs?: Record<string, Input>): Promise<Value>;
  /** Ends the device, and all that is on it. */
  close(): void;
}

/** The two files of an export, where no address leads to them. */
export interface Files {
  program: string;
  weights: ArrayBuffer;
}

/**
 * Opens a device and makes all programs ready.
 *
 * @param source the folder's address (in Node a file: address, too), or its files
 * @throws BridgeError "absent" without WebGPU; "compile" for files of another version, or a shader that is refused;
 * "usage" for files that are missing or damaged
 */
export function load(source: string | URL | Files, options?: { gpu?: GPU; progress?: (done: number, all: number) => void }): Promise<Player>;
