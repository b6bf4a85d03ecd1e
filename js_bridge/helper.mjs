/**
 * Compiles pipelines beside the device that runs them: in another thread, on a device of its own. Drivers keep what
 * they compiled for the whole process, so there it then takes milliseconds. Dawn gives each device two threads.
 */

import { availableParallelism } from "node:os";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";

import { Bridge } from "./bridge.mjs";
import { offerWebGPU } from "./dawn.mjs";

const CORES = 8;
// What a helper and who started it share: how much it does, whether the process ends. How long that waits, in milliseconds.
const [BUSY, ENDS, LONGEST] = [0, 1, 5000];

/**
 * @typedef {import("./wire.d.ts").Kernel} Kernel
 * @typedef {import("./program.mjs").Helper} Helper
 */

/** What starts helpers for an adapter, where they help. @param {GPUAdapterInfo} adapter @param {string} dawn its address */
export function helperFor(adapter, dawn) {
  // Only of this driver it was measured; without its cache nothing is shared.
  const shares = adapter.vendor === "nvidia" && process.env.__GL_SHADER_DISK_CACHE !== "0";
  return shares && availableParallelism() >= CORES ? () => startHelper(dawn) : null;
}

/** A helper, which starts meanwhile. `compile` settles when it is done, or when the helper is gone. @param {string} dawn its address @returns {Helper} */
export function startHelper(dawn) {
  const state = new Int32Array(new SharedArrayBuffer(8));
  state[BUSY] = 1; // It starts.
  const worker = new Worker(new URL(import.meta.url), { workerData: { dawn, state } });
  /** @type {Map<number, () => void>} */
  const waiting = new Map();
  let [count, isGone] = [0, false];
  worker.unref();
  const finish = (/** @type {number} */ number) => {
    waiting.get(number)?.();
    waiting.delete(number);
    if (!waiting.size) worker.unref();
  };
  const halt = () => {
    Atomics.store(state, ENDS, 1);
    for (let busy = state[BUSY]; busy > 0; busy = Atomics.load(state, BUSY)) {
      if (Atomics.wait(state, BUSY, busy, LONGEST) === "timed-out") return;
    }
  };
  process.on("exit", halt); // Dawn ends the process where a thread with promises of its own is stopped.
  worker.on("message", finish);
  for (const end of ["error", "exit"]) {
    worker.on(end, () => {
      isGone = true;
      process.off("exit", halt);
      for (const number of [...waiting.keys()]) finish(number);
    });
  }
  const compile = (/** @type {Kernel} */ kernel) =>
    /** @type {Promise<void>} */ (
      new Promise((resolve) => {
        if (isGone) return resolve();
        waiting.set(++count, resolve);
        worker.ref();
        worker.postMessage({ number: count, kernel });
      })
    );
  return { compile, close: () => worker.postMessage({ number: 0 }) };
}

async function serve() {
  /** @type {Int32Array} */
  const state = workerData.state;
  const rest = async () => {
    for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
    Atomics.sub(state, BUSY, 1);
    Atomics.notify(state, BUSY);
  };
  try {
    await offerWebGPU(workerData.dawn);
    const { pipelines, gpu } = await Bridge.open();
    parentPort?.on("message", async ({ number, kernel }) => {
      Atomics.add(state, BUSY, 1);
      if (!number) gpu.destroy();
      // The device that runs it tells what is wrong.
      else if (!Atomics.load(state, ENDS)) await pipelines.get(kernel).catch(() => null);
      parentPort?.postMessage(number);
      await rest();
      if (!number) parentPort?.close();
    });
  } finally {
    await rest();
  }
}

if (!isMainThread && workerData?.dawn) await serve();
