/** A workload of pywebgpu/bench/workloads.py in TensorFlow.js: variables, tf.variableGrads, and the update by hand. */

import { steps } from "../steps.mjs";

export { run } from "../steps.mjs";

const tf = /** @type {any} */ (globalThis).tf; // its bundles are plain scripts

const dense = (p, name, x) => tf.add(tf.matMul(x, p[`${name}.weight`], false, true), p[`${name}.bias`]);

/** The mean of -log softmax at the labels. */
function crossEntropy(scores, labels) {
  return tf.div(tf.sum(tf.mul(tf.logSoftmax(scores), tf.oneHot(labels, scores.shape[1]))), -scores.shape[0]);
}

/** The loss and the learning rate of SGD. */
const WORKLOADS = {
  mlp: [(p, images, labels) => crossEntropy(dense(p, "2", tf.relu(dense(p, "0", images))), labels), 0.1],
};
export const trained = Object.keys(WORKLOADS);

let isOpen = false;

async function open() {
  if (isOpen) return;
  if (!(await tf.setBackend("webgpu"))) throw new Error("TensorFlow.js finds no WebGPU");
  await tf.ready();
  isOpen = true;
}

/** Makes a workload of what Python's has: { parameters: { name: { shape, values } }, inputs, targets }. */
export async function build(name, start) {
  if (!(name in WORKLOADS)) throw new Error(`TensorFlow.js has no ${name} here: only ${trained.join(", ")}`);
  await open();
  const [loss, rate] = WORKLOADS[name];
  const p = Object.fromEntries(Object.entries(start.parameters).map(([name, data]) => [name, tf.variable(array(data))]));
  const [inputs, targets] = [array(start.inputs), array(start.targets)];
  steps.set(name, async () => {
    const value = tf.tidy(() => {
      const { value, grads } = tf.variableGrads(() => loss(p, inputs, targets), Object.values(p));
      for (const one of Object.values(p)) one.assign(tf.sub(one, tf.mul(grads[one.name], rate)));
      return value;
    });
    const [found] = await value.data();
    value.dispose();
    return found;
  });
}

/** What multiplies a square matrix by itself so many times, and waits. @param {number} side */
export async function product(side) {
  await open();
  const x = tf.ones([side, side]);
  return async (/** @type {number} */ count) => {
    for (let at = 0; at < count; at++) tf.matMul(x, x).dispose();
    const last = tf.tidy(() => tf.slice(tf.matMul(x, x), [0, 0], [1, 1]));
    await last.data();
    last.dispose();
  };
}

function array({ shape, values, kind }) {
  return tf.tensor(values, shape, kind === "int" ? "int32" : "float32");
}
