/**
 * Runs a Python script in Node: Pyodide, with WebGPU by Dawn. `python -m pywebgpu node` writes the job and starts it:
 *
 *     node node.mjs '{"modules": "node_modules", "package": "pywebgpu", ...}' SCRIPT [ARGUMENT...]
 */

import { existsSync, readFileSync, readSync, readdirSync, writeSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, join, resolve, sep } from "node:path";
import { isatty } from "node:tty";
import { fileURLToPath, pathToFileURL } from "node:url";
import { setFlagsFromString } from "node:v8";
import { Worker } from "node:worker_threads";

import { offerWebGPU } from "./dawn.mjs";
import { helperFor } from "./helper.mjs";
import { startPython } from "./interpreter.mjs";

/**
 * modules: the folder with pyodide and webgpu. package: the folder of pywebgpu. packages: others to load, by name.
 * interrupts: a pipe on which a byte is a Ctrl-C; null where nobody sends any.
 * @typedef {{ modules: string, package: string, packages: string[], interrupts: number | null }} Job
 */

const SIGINT = 2;
/** Settings of the Python that started this one, and what only its own processes understand. */
const OTHERS = /^(PYTHON(HOME|PATH|STARTUP|EXECUTABLE|HASHSEED)|VIRTUAL_ENV|PATH|LD_.*)$/;

/** @type {Job} */
const job = JSON.parse(process.argv[2]);
const command = process.argv.slice(3);
const interrupt = listenForInterrupts();
process.on("uncaughtException", (error) => process.exit(statusOf(error)));
process.exit(await main().catch(statusOf));

async function main() {
  // What Python's interpreter runs at all is optimised at once, beside it, and not only after seconds of running.
  setFlagsFromString("--no-wasm-dynamic-tiering");
  const dawn = pathToFileURL(join(job.modules, "webgpu/index.js")).href;
  await offerWebGPU(dawn);
  Object.assign(navigator.gpu, { helperFor: (/** @type {GPUAdapterInfo} */ adapter) => helperFor(adapter, dawn) });
  offerPackages(job.modules);
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !OTHERS.test(name)));
  const python = await startPython(job.modules, /** @type {Record<string, string>} */ (env));
  connectStreams(python);
  mountHost(python);
  // Pyodide imports from the working folder; Python does so only where the command says it.
  python.runPython("import sys; sys.path[:] = [entry for entry in sys.path if entry]");
  python.FS.chdir(process.cwd());
  if (job.packages.length) await python.loadPackage(job.packages, { messageCallback: () => undefined });
  python.setInterruptBuffer(interrupt.subarray(0, 1));
  const file = join(job.package, "hosts", "script.py");
  const script = python.toPy({ __name__: "pywebgpu.hosts.script", __file__: file });
  python.runPython(readFileSync(file, "utf8"), { globals: script, filename: file });
  script.set("arguments", python.toPy([job.package, command]));
  return await python.runPythonAsync("run(*arguments)", { globals: script });
}

/** Where packages of npm lie that Python's programs may ask for. @param {string} modules */
function offerPackages(modules) {
  /** @param {string} name @param {string} _version @param {string} file */
  const addressOf = (name, _version, file) => {
    const path = join(modules, name, file);
    return existsSync(path) ? pathToFileURL(path).href : "";
  };
  Object.assign(globalThis, { pywebgpuPackages: addressOf });
}

/** What to exit with after something that Python did not catch. @param {any} error */
function statusOf(error) {
  if (typeof error?.status === "number") return error.status; // os._exit
  if (interrupt[1]) return 128 + SIGINT;
  console.error(error?.stack ?? error);
  return 1;
}

/**
 * Where Pyodide looks for a Ctrl-C; the second number stays set after one. The main thread hears nothing while Python
 * runs on it, so a worker listens.
 */
function listenForInterrupts() {
  const flag = new Int32Array(new SharedArrayBuffer(8));
  process.on("SIGINT", () => {
    if (job.interrupts === null) flag.fill(SIGINT);
  });
  if (job.interrupts !== null) {
    const text = `const { workerData } = require("node:worker_threads");
      const pipe = new (require("node:net").Socket)({ fd: workerData.interrupts, readable: true, writable: false });
      pipe.on("data", () => workerData.flag.fill(${SIGINT}));`;
    new Worker(text, { eval: true, workerData: { flag, interrupts: job.interrupts } }).unref();
  }
  return flag;
}

/** @param {import("pyodide").PyodideAPI} python */
function connectStreams(python) {
  python.setStdin({ read: (buffer) => retry(() => readSync(0, buffer)), isatty: isatty(0) });
  python.setStdout({ write: (buffer) => retry(() => writeSync(1, buffer)), isatty: isatty(1) });
  python.setStderr({ write: (buffer) => retry(() => writeSync(2, buffer)), isatty: isatty(2) });
}

/** A pipe may be full, or empty, for a moment. @param {() => number} act */
function retry(act) {
  for (;;) {
    try {
      return act();
    } catch (error) {
      const { code } = /** @type {NodeJS.ErrnoException} */ (error);
      if (code === "EOF") return 0;
      if (code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

/** The host's files, under their own paths. @param {import("pyodide").PyodideAPI} python */
function mountHost(python) {
  const { FS } = python;
  const own = new Set(FS.readdir("/"));
  const whole = readdirSync("/", { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !own.has(entry.name))
    .map((entry) => `/${entry.name}`);
  const bridge = dirname(fileURLToPath(import.meta.url));
  const script = command.length && !command[0].startsWith("-") ? [dirname(resolve(command[0]))] : [];
  /** @type {string[]} */
  const mounted = [];
  for (const path of [...whole, tmpdir(), homedir(), process.cwd(), ...script, job.package, bridge]) {
    const isThere = mounted.some((root) => path === root || path.startsWith(root + sep));
    if (path === "/" || isThere || !existsSync(path)) continue;
    FS.mkdirTree(path);
    FS.mount(FS.filesystems.NODEFS, { root: path }, path);
    mounted.push(path);
  }
}
