/** Buffers that wait to be used again, by size class, within a budget: the rule of pywebgpu/devices/pool.py. */

/**
 * A GPUBuffer of a size class. `serial` tells it from every other one, for keys.
 * @typedef {{ buffer: GPUBuffer, size: number, serial: number }} Chunk
 */

/** Rounds up to one of eight sizes between powers of two: at most an eighth is wasted. @param {number} bytes */
export function sizeClass(bytes) {
  if (bytes <= 256) return 256;
  const bits = Math.floor(Math.log2(bytes - 1)) + 1;
  const step = 2 ** Math.max(bits - 4, 8);
  return Math.ceil(bytes / step) * step;
}

export class Pool {
  /** @type {Map<number, Chunk[]>} sizes in the order of their last use */
  #waiting = new Map();
  #make;
  waitingBytes = 0;

  /** @param {(size: number) => Chunk} make @param {number} budget bytes that may wait unused */
  constructor(make, budget) {
    this.#make = make;
    this.budget = budget;
  }

  /** @param {number} bytes */
  take(bytes) {
    const size = sizeClass(bytes);
    const stack = this.#waiting.get(size);
    const chunk = stack?.pop();
    if (!chunk) return this.#make(size);
    this.waitingBytes -= size;
    return chunk;
  }

  /** @param {Chunk} chunk */
  give(chunk) {
    const { size } = chunk;
    const stack = this.#waiting.get(size) ?? [];
    this.#waiting.delete(size); // Set again, it is the newest of the map.
    this.#waiting.set(size, stack);
    // The oldest on top: the same requests get the same chunks again, so bind groups made for them serve again.
    let at = stack.length;
    while (at > 0 && stack[at - 1].serial < chunk.serial) at--;
    stack.splice(at, 0, chunk);
    this.waitingBytes += size;
    if (this.waitingBytes > this.budget) this.#shrink(this.budget);
  }

  clear() {
    this.#shrink(0);
  }

  /** Destroys the sizes first that nobody asked for the longest. @param {number} budget */
  #shrink(budget) {
    for (const [size, stack] of this.#waiting) {
      while (stack.length && this.waitingBytes > budget) {
        const chunk = /** @type {Chunk} */ (stack.shift()); // The youngest: it is in the fewest bind groups.
        chunk.buffer.destroy();
        this.waitingBytes -= size;
      }
      if (!stack.length) this.#waiting.delete(size);
    }
  }
}
