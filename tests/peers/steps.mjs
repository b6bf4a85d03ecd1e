/** What each library's bench.mjs has: what goes to the GPU is counted, and its steps are timed. */

const counts = { dispatches: 0, submits: 0 };
count(GPUComputePassEncoder.prototype, "dispatchWorkgroups", "dispatches");
count(GPUComputePassEncoder.prototype, "dispatchWorkgroupsIndirect", "dispatches");
count(GPUQueue.prototype, "submit", "submits");

/** @param {any} owner @param {string} name @param {keyof typeof counts} counter */
function count(owner, name, counter) {
  const original = owner[name];
  owner[name] = function (...args) {
    counts[counter] += 1;
    return original.apply(this, args);
  };
}

/** By workload: does a step, and reads its loss. @type {Map<string, () => Promise<number>>} */
export const steps = new Map();

/** Runs some steps and reads each loss: [{ ms, loss, counts }]. */
export async function run(name, n) {
  const step = steps.get(name);
  const samples = [];
  for (let at = 0; at < n; at++) {
    const before = { ...counts };
    const start = performance.now();
    const loss = await step();
    const ms = performance.now() - start;
    const counted = Object.entries(counts).map(([counter, value]) => [counter, value - before[counter]]);
    samples.push({ ms, loss, counts: Object.fromEntries(counted) });
  }
  return samples;
}
