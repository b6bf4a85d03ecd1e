import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { startHelper } from "../helper.mjs";
import { asFloats, floats, kernel, none, open, program, rejects, words } from "./fixtures.mjs";

const DAWN = pathToFileURL(createRequire(import.meta.url).resolve("webgpu")).href;

const SHUFFLED = `enable subgroups;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) lane: u32) {
  y[lane] = subgroupShuffleXor(x[lane], 1u);
}`;

test("a kernel that needs a feature runs where it is", async (t) => {
  const bridge = await open();
  if (!bridge.info.features.includes("subgroups")) return t.skip("this adapter has no subgroups");
  bridge.write(1, floats([0, 1, 2, 3]));
  bridge.load(1, program({ kernels: [{ ...kernel("", "rw"), wgsl: SHUFFLED, needs: ["subgroups"] }], numbers: [] }));
  bridge.run(1, [1], [2], none);
  assert.deepEqual(asFloats(await bridge.read(2, 16)), [1, 0, 3, 2]);
  bridge.close();
});

test("a kernel that needs what the device lacks says so", async () => {
  const bridge = await open();
  bridge.write(1, floats([0, 1, 2, 3]));
  bridge.load(1, program({ kernels: [{ ...kernel(""), name: "warped", needs: ["warp-drive"] }] }));
  await rejects(bridge.prepared(1), "compile", /^warped: this device lacks warp-drive$/);
  bridge.close();
});

test("a shader that does not compile names its kernel and line, and spoils what it should have written", async () => {
  const bridge = await open();
  bridge.write(1, floats([1, 2, 3, 4]));
  bridge.load(1, program({ kernels: [kernel("y[i] = x[i] + nothing;")], numbers: [] }));
  bridge.load(2, program());
  bridge.run(1, [1], [2], none);
  bridge.run(2, [2], [3], words([1]));
  const wrong = /test: the shader does not compile: line 6:\d+: unresolved value 'nothing'\n +6 +y\[i\] = x\[i\] \+ nothing;/;
  await rejects(bridge.read(2, 16), "compile", wrong);
  await rejects(bridge.read(3, 16), "compile", wrong);
  await rejects(bridge.prepared(1), "compile", wrong);
  assert.deepEqual(asFloats(await bridge.read(1, 16)), [1, 2, 3, 4]);
  bridge.write(2, floats([5, 5, 5, 5]));
  assert.deepEqual(asFloats(await bridge.read(2, 16)), [5, 5, 5, 5]);
  bridge.close();
});

test("pipelines go with the last program that has them", async () => {
  const bridge = await open();
  bridge.write(1, floats([1, 2, 3, 4]));
  for (let i = 1; i <= 12; i++) {
    const own = kernel(`y[i] = x[i] + ${i}.0;`);
    bridge.load(i, program({ kernels: [own, kernel("y[i] = x[i];")], steps: [[0, 0, 1]], numbers: [] }));
    bridge.run(i, [1], [2], none);
    assert.deepEqual(asFloats(await bridge.read(2, 16)), [1 + i, 2 + i, 3 + i, 4 + i]);
    if (i > 4) bridge.drop(i - 4);
    assert.equal(bridge.pipelines.size, Math.min(i, 4) + 1);
  }
  for (let i = 9; i <= 12; i++) bridge.drop(i);
  assert.equal(bridge.pipelines.size, 0);
  bridge.close();
});

test("programs that ran long ago lose their pipelines, and get them again", async () => {
  const bridge = await open();
  bridge.residents.textLength = 0;
  bridge.write(1, floats([1, 2, 3, 4]));
  const run = async (/** @type {number} */ i) => {
    bridge.run(i, [1], [2], none);
    assert.deepEqual(asFloats(await bridge.read(2, 16)), [1 + i, 2 + i, 3 + i, 4 + i]);
  };
  for (let i = 1; i <= 20; i++) {
    bridge.load(i, program({ kernels: [kernel(`y[i] = x[i] + ${i}.0;`)], numbers: [] }));
    for (let turn = 0; turn < 4; turn++) await run(i); // The next run is encoded ahead.
    assert.equal(bridge.residents.size, Math.min(i, 8));
    assert.equal(bridge.pipelines.size, Math.min(i, 8));
  }
  for (const i of [20, 13, 1, 2, 1]) await run(i);
  assert.equal(bridge.counters.pipelines_created, 22);
  for (let i = 3; i <= 20; i++) bridge.run(i, [1], [i], none); // Each waits for the pipelines of those before it.
  for (let i = 3; i <= 20; i++) assert.deepEqual(asFloats(await bridge.read(i, 16)), [1 + i, 2 + i, 3 + i, 4 + i]);
  await run(1);
  assert.equal(bridge.pipelines.size, 8);
  for (let i = 1; i <= 20; i++) bridge.drop(i);
  assert.equal(bridge.pipelines.size, 0);
  bridge.check();
  bridge.close();
});

test("a pipeline that was begun is the next program's, or goes", async () => {
  const bridge = await open();
  const [wanted, other] = [kernel("y[i] = x[i] + 1;"), kernel("y[i] = x[i] + 2;")];
  for (const one of [wanted, other, wanted, kernel("y[i] = nothing;")]) bridge.prepare(one);
  assert.equal(bridge.counters.pipelines_created, 3);
  bridge.load(1, program({ kernels: [wanted], numbers: [] }));
  assert.equal(bridge.pipelines.size, 1);
  bridge.write(1, floats([1, 2, 3, 4]));
  bridge.run(1, [1], [2], none);
  assert.deepEqual(asFloats(await bridge.read(2, 16)), [2, 3, 4, 5]);
  assert.equal(bridge.counters.pipelines_created, 3);
  bridge.check();
  bridge.close();
});

test("the main thread helps to compile, and tells what is wrong as others do", async () => {
  const bridge = await open();
  bridge.pipelines.threads = 0.01; // one at a time
  const kernels = Array.from({ length: 6 }, (_, i) => kernel(`y[i] = x[i] + ${20 + i}.0;`));
  bridge.prepare(kernels[0]);
  bridge.write(1, floats([1, 2, 3, 4]));
  bridge.load(1, program({ kernels, steps: kernels.map((_, i) => [i, 0, 1]), numbers: [] }));
  bridge.run(1, [1], [2], none);
  assert.deepEqual(asFloats(await bridge.read(2, 16)), [26, 27, 28, 29]);
  bridge.load(2, program({ kernels: [kernel("y[i] = x[i] + 30;"), kernel("y[i] = nothing;")], numbers: [] }));
  await rejects(bridge.prepared(2), "compile", /line 6:\d+: unresolved value 'nothing'/);
  bridge.check();
  bridge.close();
});

test("helpers compile what waits; one that cannot start does no harm", async () => {
  for (const address of [DAWN, "data:text/javascript,throw"]) {
    const bridge = await open();
    /** @type {string[]} */
    const helped = [];
    bridge.pipelines.startHelper = () => {
      const helper = startHelper(address);
      const compile = (/** @type {any} */ one) => helper.compile(one).then(() => void helped.push(one.wgsl));
      return { ...helper, compile };
    };
    const long = `// ${"-".repeat(50_000)}\n`;
    const kernels = Array.from({ length: 6 }, (_, i) => kernel(`y[i] = x[i] + ${20 + i}.0; ${long}`));
    for (const one of kernels) bridge.prepare(one);
    bridge.write(1, floats([1, 2, 3, 4]));
    bridge.load(1, program({ kernels, steps: kernels.map((_, i) => [i, 0, 1]), numbers: [] }));
    bridge.run(1, [1], [2], none);
    assert.deepEqual(asFloats(await bridge.read(2, 16)), [26, 27, 28, 29]);
    assert.ok(helped.length > 0);
    const wrong = kernels.map((_, i) => kernel(`y[i] = nothing${i}; ${long}`));
    bridge.load(2, program({ kernels: wrong, steps: [[0, 0, 1]], numbers: [] }));
    await rejects(bridge.prepared(2), "compile", /unresolved value 'nothing/);
    bridge.check();
    bridge.close();
  }
});

test("a process ends while a helper compiles", () => {
  const script = `import { startHelper } from ${JSON.stringify(new URL("../helper.mjs", import.meta.url).href)};
    const helper = startHelper(${JSON.stringify(DAWN)});
    for (const wgsl of ${JSON.stringify([0, 1, 2, 3].map((i) => kernel(`y[i] = x[i] + ${i}.0;`).wgsl))})
      void helper.compile({ name: "one", wgsl, bindings: "rw", grid: [1, 1, 1] });
    setTimeout(() => process.exit(0), 150);`;
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
  assert.equal(status, 0, stderr);
});
