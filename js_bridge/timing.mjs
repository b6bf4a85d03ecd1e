/** Timestamps around each step of one run, on a device with the feature timestamp-query. */

const QUERIES = 4096; // that WebGPU allows in one set

export class Stamps {
  /** @param {GPUDevice} gpu @param {number} steps */
  constructor(gpu, steps) {
    /** @type {{ queries: GPUQuerySet, result: GPUBuffer, staging: GPUBuffer, count: number }[]} */
    this.parts = [];
    for (let at = 0; at < 2 * steps; at += QUERIES) {
      const count = Math.min(QUERIES, 2 * steps - at);
      const size = 8 * count;
      this.parts.push({
        count,
        queries: gpu.createQuerySet({ type: "timestamp", count }),
        result: gpu.createBuffer({ size, usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC }),
        staging: gpu.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST }),
      });
    }
  }

  /** What the pass that is this step writes. @param {number} step @returns {GPUComputePassTimestampWrites} */
  around(step) {
    const { queries: querySet } = this.parts[Math.floor((2 * step) / QUERIES)];
    const beginningOfPassWriteIndex = (2 * step) % QUERIES;
    return { querySet, beginningOfPassWriteIndex, endOfPassWriteIndex: beginningOfPassWriteIndex + 1 };
  }

  /** Adds what brings them to the host, after the last pass. @param {GPUCommandEncoder} encoder */
  resolve(encoder) {
    for (const { queries, result, staging, count } of this.parts) {
      encoder.resolveQuerySet(queries, 0, count, result, 0);
      encoder.copyBufferToBuffer(result, 0, staging, 0, 8 * count);
    }
  }

  /** Start and end of each step in nanoseconds, one after the other. Waits for the run. */
  async read() {
    /** @type {number[]} */
    const found = [];
    for (const { queries, result, staging } of this.parts) {
      await staging.mapAsync(GPUMapMode.READ);
      for (const tick of new BigUint64Array(staging.getMappedRange())) found.push(Number(tick));
      staging.unmap();
      for (const ended of [queries, result, staging]) ended.destroy();
    }
    return found;
  }
}

/** The same for a whole run on a device without that feature: when it was queued, and when the host knew that it was done. */
export class Watch {
  #span;

  /** Right after the run was submitted. @param {GPUDevice} gpu @param {number} start by performance.now() */
  constructor(gpu, start) {
    this.#span = gpu.queue.onSubmittedWorkDone().then(() => [1e6 * start, 1e6 * performance.now()]);
  }

  read() {
    return this.#span;
  }
}
