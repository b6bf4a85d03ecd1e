/** ONNX Runtime Web multiplies matrices. It trains nothing, so `pywebgpu bench` does not know it. */

import * as ort from "./node_modules/onnxruntime-web/dist/ort.webgpu.bundle.min.mjs";

const FLOAT = 1; // of ONNX's types
const [IR, OPSET] = [8, 13];

export const trained = [];

/** What multiplies a square matrix by itself so many times, and waits. @param {number} side */
export async function product(side) {
  const session = await ort.InferenceSession.create(model(side), {
    executionProviders: ["webgpu"],
    preferredOutputLocation: "gpu-buffer",
  });
  const device = await ort.env.webgpu.device;
  const buffer = device.createBuffer({ size: 4 * side * side, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST });
  device.queue.writeBuffer(buffer, 0, new Float32Array(side * side).fill(1));
  const x = ort.Tensor.fromGpuBuffer(buffer, { dataType: "float32", dims: [side, side] });
  return async (/** @type {number} */ count) => {
    for (let at = 0; at < count; at++) (await session.run({ x })).y.dispose();
    await device.queue.onSubmittedWorkDone();
  };
}

/** An ONNX model of one MatMul of x by x, as protobuf writes it. @param {number} side */
function model(side) {
  const dim = bytes(1, number(1, side));
  const value = (/** @type {string} */ name) => [...text(1, name), ...bytes(2, bytes(1, [...number(1, FLOAT), ...bytes(2, [...dim, ...dim])]))];
  const node = [...text(1, "x"), ...text(1, "x"), ...text(2, "y"), ...text(4, "MatMul")];
  const graph = [...bytes(1, node), ...text(2, "product"), ...bytes(11, value("x")), ...bytes(12, value("y"))];
  return Uint8Array.from([...number(1, IR), ...bytes(7, graph), ...bytes(8, number(2, OPSET))]);
}

/** @param {number} value @returns {number[]} */
const varint = (value) => (value < 128 ? [value] : [(value & 127) | 128, ...varint(value >> 7)]);
/** @param {number} field @param {number} value */
const number = (field, value) => [...varint(field << 3), ...varint(value)];
/** @param {number} field @param {number[]} content */
const bytes = (field, content) => [...varint((field << 3) | 2), ...varint(content.length), ...content];
/** @param {number} field @param {string} content */
const text = (field, content) => bytes(field, Array.from(content, (letter) => letter.charCodeAt(0)));
