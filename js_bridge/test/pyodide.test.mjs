/** Python without JSPI, as in a browser that lacks it: nothing waits, and the awaitable forms do everything. */

import assert from "node:assert/strict";
import { dirname, resolve } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import "./fixtures.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
for (const name of ["Suspending", "promising"]) Reflect.deleteProperty(WebAssembly, name);
const { loadPyodide } = await import("pyodide");
const python = await loadPyodide();
python.FS.mkdirTree("/checkout");
python.FS.mount(python.FS.filesystems.NODEFS, { root }, "/checkout");
python.runPython("import sys; sys.path.insert(0, '/checkout'); sys.dont_write_bytecode = True");

/** @param {string} code its last line is the value @returns {Promise<any>} */
async function run(code) {
  const found = await python.runPythonAsync(code);
  return found?.toJs ? found.toJs() : found;
}

test("a device that nobody opened yet is told of, with the way to open it", async () => {
  const said = await run(`
import pywebgpu as torch
from pywebgpu.errors import DeviceError
try:
    torch.ones(3, device="webgpu")
    said = ""
except DeviceError as error:
    said = str(error)
said`);
  assert.match(said, /cannot wait.*: await torch\.webgpu\.init\(\)/);
});

test("neither does the default become cpu before that, nor is NumPy asked for", async () => {
  const said = await run(`
try:
    torch.ones(3)
    said = ""
except torch.errors.CannotWaitError as error:
    said = str(error)
from pywebgpu import doctor, nn
nn.Linear  # Its files are imported before the device is known.
[said, torch.tensor([1, 2], device="cpu").tolist(), doctor.as_text(doctor.examine())]`);
  assert.match(said[0], /: await torch\.webgpu\.init\(\)$/);
  assert.deepEqual(said[1], [1, 2]);
  assert.match(said[2], /Python can wait: no, JSPI is missing/);
  assert.match(said[2], /default device: not known yet/);
});

test("a chain of thousands of ops of a device that cannot compute ends in words, and not with the stack", async () => {
  const said = await run(`
x = torch.ones(2, device="cpu", requires_grad=True)
for _ in range(2000):
    x = x * 0.999 + 0.0001
try:
    x.tolist()
    said = ""
except DeviceError as error:
    said = str(error)
said`);
  assert.match(said, /device cpu computes with NumPy, which is not installed/);
});

test("after init tensors live on webgpu, and reading names the awaitable forms", async () => {
  const said = await run(`
await torch.webgpu.init()
x = torch.arange(4.0)
said = [str(x.device)]
for read in (x.tolist, x[0].item, x.tobytes, lambda: x.to("cpu"), lambda: float(x[0]), lambda: bool(x[0]), torch.webgpu.synchronize):
    try:
        read()
    except DeviceError as error:
        said.append(str(error))
said`);
  assert.equal(said[0], "webgpu");
  assert.equal(said.length, 8);
  for (const text of said.slice(1, 7)) assert.match(text, /cannot wait for the device here; use: await x\.item_async/);
  assert.match(said[7], /await torch\.webgpu\.synchronize_async/);
});

test("showing a value never raises, and a whole state is saved", async () => {
  const said = await run(`
await torch.save_async({"x": x, "again": [x]}, "saved.pt")
back = torch.load("saved.pt", map_location="cpu")
[repr(x), str(torch.nn.Linear(2, 2).bias), back["x"].tolist(), back["again"][0] is back["x"]]`);
  assert.match(said[0], /^tensor\(<not read: await x\.cpu_async\(\)>, device='webgpu', size=\(4,\)/);
  assert.match(said[1], /Parameter containing:\ntensor\(<not read/);
  assert.deepEqual(said.slice(2), [[0, 1, 2, 3], true]);
});

test("the awaitable forms give what the others would", async () => {
  const found = await run(`
import asyncio
one, many, raw = await asyncio.gather(x[2].item_async(), (x * 2).tolist_async(), x.to(torch.uint8).tobytes_async())
[one, many, list(raw)]`);
  assert.deepEqual(found, [2, [0, 2, 4, 6], [0, 1, 2, 3]]);
});

test("a model trains", async () => {
  const losses = await run(`
from pywebgpu import nn
torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
x, y = torch.randn(8, 3), torch.randn(8, 1)
losses = []
for _ in range(20):
    optimizer.zero_grad()
    loss = (model(x) - y).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(await loss.item_async())
losses`);
  assert.equal(losses.length, 20);
  assert.ok(losses[19] < losses[0] / 2, String(losses));
});

test("an index that a kernel finds out of range is an IndexError of the next read", async () => {
  const said = await run(`
index = torch.tensor([0, 5]) + 0
try:
    await torch.arange(4.0)[index].tolist_async()
    said = ""
except IndexError as error:
    said = str(error)
said`);
  assert.match(said, /index 5 is out of bounds/);
});

test("a shader that does not compile is a CompileError with its line", async () => {
  const said = await run(`
from dataclasses import replace
from pywebgpu import devices
from pywebgpu.errors import CompileError
from pywebgpu.compiler import wire
device = devices.open_device("webgpu")
original = wire.to_json
wire.to_json = lambda program: original(replace(program, kernels=tuple(
    replace(kernel, wgsl=kernel.wgsl.replace("fn main(", "fn mistaken(")) for kernel in program.kernels)))
try:
    await (torch.arange(5.0) * 3).exp().tolist_async()
    said = ""
except CompileError as error:
    said = str(error)
wire.to_json = original
said`);
  assert.match(said, /the shader does not compile/);
});

test("a lost device is a DeviceLostError, and is opened again", async () => {
  const found = await run(`
from pywebgpu.errors import DeviceLostError
device = devices.open_device("webgpu")
x = torch.arange(4.0)
kept = await x.tolist_async()
device._bridge.bridge.gpu.destroy()
await asyncio.sleep(0.1)
said = []
for attempt in (lambda: x.tolist_async(), lambda: (x + 1).tolist_async()):
    try:
        await attempt()
    except DeviceLostError as error:
        said.append(str(error))
again = [await torch.webgpu.recover_async(), await torch.webgpu.recover_async()]
try:
    await x.tolist_async()
except DeviceLostError as error:
    said.append(str(error))
assert devices.open_device("webgpu") is device
[*said, again, kept, await x.copy_(torch.tensor(kept) * 2).tolist_async()]`);
  assert.match(found[0], /the device is gone/);
  assert.match(found[1], /the device is gone/);
  assert.match(found[2], /was on a device that was lost/);
  assert.deepEqual(found.slice(3), [[true, false], [0, 1, 2, 3], [0, 2, 4, 6]]);
});
