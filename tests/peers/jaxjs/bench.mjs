/**
 * The workloads of pywebgpu/bench/workloads.py in jax-js: one jitted function a training step, with value_and_grad and
 * the update inside. jax-js counts references: an array is consumed by what takes it, and `x.ref` is one more of it.
 */

import { defaultDevice, init, jit, lax, nn, numpy as np, tree, valueAndGrad } from "@jax-js/jax";

import { steps } from "../steps.mjs";

export { run } from "../steps.mjs";

// Models. A matrix lies as (inputs, outputs), as JAX's users keep it.

const dense = (p, name, x) => np.matmul(x, p[`${name}.weight`]).add(p[`${name}.bias`]);

function crossEntropy(scores, labels) {
  const [rows, classes] = scores.shape;
  return nn.logSoftmax(scores).mul(nn.oneHot(labels, classes)).sum().div(-rows);
}

function mlp(p, images, labels) {
  return crossEntropy(dense(p, "2", nn.relu(dense(p, "0", images))), labels);
}

function cnn(p, images, labels) {
  const layer = (name, x) => {
    const bias = p[`${name}.bias`];
    const found = lax.conv(x, p[`${name}.weight`], [1, 1], "SAME").add(bias.reshape([-1, 1, 1]));
    return lax.reduceWindow(nn.relu(found), np.max, [2, 2], [2, 2]);
  };
  const found = layer("3", layer("0", images));
  return crossEntropy(dense(p, "7", found.reshape([images.shape[0], -1])), labels);
}

const gpt = (heads) => (p, characters, targets) => {
  const [batch, length] = characters.shape;
  const width = p["character.weight"].shape[1];
  const layers = Object.keys(p).filter((name) => name.endsWith("into.weight")).length;
  const norm = (name, x) => nn.standardize(x).mul(p[`${name}.weight`]).add(p[`${name}.bias`]);
  const attention = (name, x) => {
    const parts = np.split(dense(p, `${name}.into`, x), 3, -1);
    const [query, key, value] = parts.map((part) => part.reshape([batch, length, heads, width / heads]));
    const found = nn.dotProductAttention(query, key, value, { isCausal: true });
    return dense(p, `${name}.out`, found.reshape([batch, length, width]));
  };
  let x = p["character.weight"].slice(characters).add(p["position.weight"]);
  for (let at = 0; at < layers; at++) {
    const name = `blocks.${at}`;
    x = x.ref.add(attention(`${name}.attention`, norm(`${name}.attention_norm`, x)));
    const wide = nn.gelu(dense(p, `${name}.wide`, norm(`${name}.network_norm`, x.ref)));
    x = x.add(dense(p, `${name}.narrow`, wide));
  }
  const scores = np.matmul(norm("norm", x), p["head.weight"]);
  return crossEntropy(scores.reshape([batch * length, -1]), targets);
};

// Updates: of parameters, gradients and state, the parameters and the state.

const sgd = (rate) => ({
  start: () => ({}),
  update: (p, g, state) => [tree.map((p, g) => p.sub(g.mul(rate)), p, g), state],
});

const adamw = (rate, [b1, b2] = [0.9, 0.999], eps = 1e-8, decay = 0.01) => ({
  start: (p) => ({ step: np.array(0), m: tree.map(np.zerosLike, tree.ref(p)), v: tree.map(np.zerosLike, tree.ref(p)) }),
  update: (p, g, { step, m, v }) => {
    step = step.add(1);
    const first = np.power(b1, step.ref).mul(-1).add(1);
    const second = np.power(b2, step.ref).mul(-1).add(1);
    m = tree.map((m, g) => m.mul(b1).add(g.mul(1 - b1)), m, tree.ref(g));
    v = tree.map((v, g) => v.mul(b2).add(np.square(g).mul(1 - b2)), v, g);
    const next = (p, m, v) => {
      const change = m.div(first.ref).div(np.sqrt(v.div(second.ref)).add(eps));
      return p.ref.sub(change.add(p.mul(decay)).mul(rate));
    };
    p = tree.map(next, p, tree.ref(m), tree.ref(v));
    first.dispose();
    second.dispose();
    return [p, { step, m, v }];
  },
});

const WORKLOADS = {
  mlp: [mlp, sgd(0.1)],
  cnn: [cnn, sgd(0.05)],
  gpt: [gpt(4), adamw(1e-3)],
  gpt1: [gpt(4), adamw(1e-3)],
};

export const trained = Object.keys(WORKLOADS);

let isOpen = false;

async function open() {
  if (isOpen) return;
  if (!(await init("webgpu")).includes("webgpu")) throw new Error("jax-js finds no WebGPU");
  defaultDevice("webgpu");
  isOpen = true;
}

/** Makes a workload of what Python's has: { parameters: { name: { shape, values } }, inputs, targets }. */
export async function build(name, start) {
  await open();
  const [loss, optimizer] = WORKLOADS[name];
  let p = Object.fromEntries(Object.entries(start.parameters).map(([name, data]) => [name, parameter(name, data)]));
  const [inputs, targets] = [array(start.inputs), array(start.targets)];
  let state = optimizer.start(p);
  const step = jit((p, state, inputs, targets) => {
    const [value, gradients] = valueAndGrad(loss)(tree.ref(p), inputs, targets);
    return [...optimizer.update(p, gradients, state), value];
  });
  steps.set(name, async () => {
    let value;
    [p, state, value] = step(p, state, inputs.ref, targets.ref);
    return (await value.data())[0];
  });
}

/** What multiplies a square matrix by itself so many times, and waits. @param {number} side */
export async function product(side) {
  await open();
  const x = np.ones([side, side]);
  const multiply = jit((x) => np.matmul(x.ref, x));
  return async (/** @type {number} */ count) => {
    let last;
    for (let at = 0; at < count; at++) {
      last?.dispose();
      last = multiply(x.ref);
    }
    await last.blockUntilReady();
    last.dispose();
  };
}

function array({ shape, values, kind }) {
  return np.array(kind === "int" ? new Int32Array(values) : new Float32Array(values)).reshape(shape);
}

/** PyTorch keeps the weight of a Linear as (outputs, inputs). */
function parameter(name, data) {
  const [rows, columns, ...others] = data.shape;
  const isLinear = columns && !others.length && !/^(character|position)/.test(name);
  if (!isLinear) return array(data);
  const values = new Float32Array(rows * columns);
  for (let at = 0; at < values.length; at++) values[(at % columns) * rows + Math.floor(at / columns)] = data.values[at];
  return array({ shape: [columns, rows], values });
}
