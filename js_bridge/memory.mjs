/** Buffers by the numbers that the caller chooses: each has memory from a pool, or the reason why its value never came to be. */

import { BridgeError, as } from "./errors.mjs";

/** @typedef {import("./pool.mjs").Chunk} Chunk */

export class Memory {
  /** @type {Map<number, Chunk>} */
  #chunks = new Map();
  /** @type {Map<number, BridgeError>} */
  #spoiled = new Map();
  #pool;

  /** @param {import("./pool.mjs").Pool} pool */
  constructor(pool) {
    this.#pool = pool;
  }

  /** Memory that holds whatever lay there. @param {number} id @param {number} bytes */
  make(id, bytes) {
    const chunk = this.#pool.take(bytes);
    this.#chunks.set(id, chunk);
    return chunk;
  }

  /** What the number has, or gets. @param {number} id @param {number} bytes */
  found(id, bytes) {
    return this.#chunks.get(id) ?? this.make(id, bytes);
  }

  /** @param {number} id */
  chunk(id) {
    const found = this.#chunks.get(id);
    if (!found) throw new BridgeError("device", `there is no buffer ${id}`);
    return found;
  }

  /** @param {number} id */
  free(id) {
    const chunk = this.#chunks.get(id);
    if (!chunk) return;
    this.#chunks.delete(id);
    this.#spoiled.delete(id);
    this.#pool.give(chunk);
  }

  /** Lets `act` write a buffer, which is made where it is not there. What it throws spoils the value. @param {number} id @param {number} bytes @param {(chunk: Chunk) => void} act */
  write(id, bytes, act) {
    try {
      act(this.found(id, bytes));
    } catch (error) {
      this.#spoiled.set(id, as("device", error));
    }
  }

  /** The values of a run that `failed`; those of one that did not are whole again. @param {ArrayLike<number>} ids @param {BridgeError | null} failed */
  settle(ids, failed) {
    for (let i = 0; i < ids.length && (failed || this.#spoiled.size); i++) {
      if (failed) this.#spoiled.set(ids[i], failed);
      else this.#spoiled.delete(ids[i]);
    }
  }

  /** A value was written as a whole. @param {number} id */
  restore(id) {
    this.#spoiled.delete(id);
  }

  /** Why one of these has no value. @param {ArrayLike<number>} ids */
  spoiledBy(ids) {
    if (!this.#spoiled.size) return null;
    for (let i = 0; i < ids.length; i++) {
      const error = this.#spoiled.get(ids[i]);
      if (error) return error;
    }
    return null;
  }
}
