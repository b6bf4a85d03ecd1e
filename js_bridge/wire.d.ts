// A Program as JSON: what pywebgpu/compiler/wire.py writes. Both carry the version; a bridge refuses any other.

/** A value that goes in or comes out: the number of its buffer, and what its elements are. They lie there as values.mjs says. */
export interface Value {
  buffer: number;
  dtype: string;
  shape: number[];
}

export interface Kernel {
  name: string;
  wgsl: string;
  grid: [number, number, number];
  /** A letter a binding, in order: r is read, w is written, n the host numbers, f the fault words. */
  bindings: string;
  /** Features that the device must have, where it needs any. */
  needs?: string[];
  /** Multiplications, of large products: who brings a value back in the middle of a run asks what is left to do. */
  work?: number;
}

export interface Program {
  version: number;
  kernels: Kernel[];
  /**
   * The number of a kernel, then what its bindings r and w are: buffers, or sizes.length + the number of a range; last,
   * where it has the binding n, a block.
   */
  steps: number[][];
  /** Bytes of each buffer. */
  sizes: number[];
  /** Parts of buffers that are bound by themselves: the buffer, the first byte, the number of bytes. */
  ranges: [number, number, number][];
  /** Buffers that are neither an input's nor an output's. */
  scratch: number[];
  inputs: Value[];
  outputs: Value[];
  /** Dtypes of the host numbers; each takes one word. */
  numbers: string[];
  /** Host numbers, by their places in `numbers`, that a binding n has. */
  blocks: number[][];
  /** Pairs of an output and the input whose buffer it writes. */
  written: [number, number][];
  /** The bytes of all values in use at the fullest step; `sizes` together are at least that. */
  lower_bound: number;
}
