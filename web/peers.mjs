/** The same work by other libraries, where this server has them: each in a frame of its own. */

/**
 * What the bench.mjs of tests/peers/NAME has.
 * @typedef {{ trained: string[], build?: (name: string, start: unknown) => Promise<void>, run?: (name: string, n: number) => Promise<unknown>,
 *   product: (side: number) => Promise<(count: number) => Promise<void>> }} Bench
 * @typedef {import("./measure.mjs").Result} Result
 * @typedef {{ begin: (name: string) => Promise<unknown>, doing: (text: string) => void, found: (result: Result) => void }} Around
 */

const [SECONDS, ENOUGH, WARM] = [1, 0.1, 4]; // as measuring.py has them
const SIDES = [256, 512, 1024, 2048, 4096];
const [TRAINING, PRODUCT] = ["training ", "product in float32"];

/** Tells what each reached; returns what went wrong. @param {string[]} peers @param {Result[]} ours @param {Around} around */
export async function measurePeers(peers, ours, { begin, doing, found }) {
  const wrong = [];
  const names = ours.filter(({ of }) => !of).map(({ name }) => name);
  for (const peer of peers) {
    const frame = Object.assign(document.createElement("iframe"), { src: `peers/${peer}/index.html`, hidden: true, title: peer });
    try {
      await new Promise((resolve) => {
        frame.addEventListener("load", resolve);
        document.body.append(frame);
      });
      const name = frame.contentDocument?.title || peer;
      const bench = /** @type {Bench} */ (await /** @type {any} */ (frame.contentWindow).bench);
      for (const of of names) {
        const workload = of.replace(TRAINING, "");
        doing(`${name}: ${of}`);
        if (bench.trained.includes(workload)) found({ name, of, unit: "steps/s", value: await steps(bench, workload, await begin(workload)) });
        else if (of === PRODUCT) found({ name, of, unit: "GFLOP/s", value: await rate(bench) });
      }
    } catch (error) {
      wrong.push(`${peer}: ${error instanceof Error ? error.message : error}`);
    }
    frame.remove();
  }
  return wrong;
}

/** Steps a second, each loss read. @param {Bench} bench @param {string} name @param {unknown} start */
async function steps(bench, name, start) {
  await bench.build?.(name, start);
  await bench.run?.(name, WARM);
  const begun = performance.now();
  let [count, taken] = [0, 0];
  while (taken < SECONDS || count < 3) {
    await bench.run?.(name, 1);
    count++;
    taken = (performance.now() - begun) / 1000;
  }
  return count / taken;
}

/** The highest rate of a product, until one size takes long. @param {Bench} bench */
async function rate(bench) {
  let best = 0;
  for (const side of SIDES) {
    const work = await bench.product(side);
    const few = await timed(work, 3);
    const seconds = await timed(work, Math.max(3, Math.min(200, Math.floor(ENOUGH / few))));
    best = Math.max(best, (2 * side ** 3) / seconds / 1e9);
    if (seconds > ENOUGH / 3) break;
  }
  return best;
}

/** Seconds of one. @param {(count: number) => Promise<void>} work @param {number} count */
async function timed(work, count) {
  const begun = performance.now();
  await work(count);
  return Math.max(1e-6, (performance.now() - begun) / 1000 / count);
}
