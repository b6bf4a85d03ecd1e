/** Buffers that wait to be used again, by size class, within a budget: the rule of pywebgpu/devices/pool.py. */

export const WORD = 4; // bytes of which a buffer has whole ones, and a queue writes and copies whole ones

/**
 * A GPUBuffer of a size class. `serial` tells it from every other one, for keys.
 * @typedef {{ buffer: GPUBuffer, size: number, serial: number }} Chunk
 */

/** Rounds up to one of eight sizes between powers of two: at most an eighth, or 1 MiB, is wasted. @param {number} bytes */
export function sizeClass(bytes) {
  if (bytes <= 256) return 256;
  const bits = Math.floor(Math.log2(bytes - 1)) + 1;
  const step = 2 ** Math.min(Math.max(bits - 4, 8), 20);
  return Math.ceil(bytes / step) * step;
}

export class Pool {
  /** @type {Map<number, Chunk[]>} sizes in the order of their last use */
  #waiting = new Map();
  #make;
  #end;
  waitingBytes = 0;
  created = 0;
  reused = 0;

  /** @param {(size: number) => Chunk} make @param {(chunk: Chunk) => void} end @param {number} budget bytes that may wait unused */
  constructor(make, end, budget) {
    this.#make = make;
    this.#end = end;
    this.budget = budget;
  }

  /** @param {number} bytes */
  take(bytes) {
    const size = sizeClass(bytes);
    const stack = this.#waiting.get(size);
    const chunk = stack?.pop();
    if (!chunk) {
      this.created++;
      return this.#make(size);
    }
    this.reused++;
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
    if (stack[at - 1] === chunk) throw new Error("pool: a buffer comes back twice");
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
        this.#end(/** @type {Chunk} */ (stack.shift())); // The youngest: it is in the fewest bind groups.
        this.waitingBytes -= size;
      }
      if (!stack.length) this.#waiting.delete(size);
    }
  }
}

/** Memory for what passes inside Programs. They share it, because a queue runs one of them at a time. */
export class Scratch {
  /** @type {Map<Chunk, number>} how many Programs have it */
  #users = new Map();

  /** @param {Pool} pool */
  constructor(pool) {
    this.pool = pool;
  }

  get bytes() {
    return [...this.#users.keys()].reduce((total, chunk) => total + chunk.size, 0);
  }

  /** A chunk for each scratch buffer: the smallest that is large enough. @param {import("./wire.d.ts").Program} program */
  take({ scratch, sizes }) {
    const free = [...this.#users.keys()].sort((a, b) => a.size - b.size);
    /** @type {Map<number, Chunk>} */
    const found = new Map();
    for (const buffer of [...scratch].sort((a, b) => sizes[b] - sizes[a])) {
      const at = free.findIndex((chunk) => chunk.size >= sizes[buffer]);
      const chunk = at >= 0 ? free.splice(at, 1)[0] : this.pool.take(sizes[buffer]);
      this.#users.set(chunk, (this.#users.get(chunk) ?? 0) + 1);
      found.set(buffer, chunk);
    }
    return found;
  }

  /** Takes back what a Program had; the pool gets what no other one has. @param {Iterable<Chunk>} chunks */
  give(chunks) {
    for (const chunk of chunks) {
      const users = (this.#users.get(chunk) ?? 1) - 1;
      if (users) {
        this.#users.set(chunk, users);
      } else {
        this.#users.delete(chunk);
        this.pool.give(chunk);
      }
    }
  }
}
