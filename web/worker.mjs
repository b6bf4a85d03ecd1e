/**
 * A worker with a Python in it: Pyodide, pywebgpu and one script, which takes the page's messages from here. The
 * worker's name says which: "training", "editing", "language" or "measuring".
 */

import { foreseen, remember } from "./kernels.mjs";

/**
 * What a page sends. A file goes to PATH before Python sees the message; blobs are read by ranges.
 * @typedef {{ do: string, file?: ArrayBuffer, blobs?: Record<string, Blob>, interrupts?: Uint8Array } & Record<string, unknown>} Command
 */

const FOLDER = "/page";
const PAGE = 65536; // bytes of WebAssembly's memory
const PATH = `${FOLDER}/checkpoint.safetensors`;
const START = `
import sys
sys.path.insert(0, folder)
import parts
parts.unpack(archive.tobytes())`;
/** In a snapshot all is imported. */
const RESTORE = `
import parts
parts.restore()`;
const LATER = `
import sys
import parts
if rest:
    sys.meta_path.append(parts.Rest(rest))`;
/** What the first archive lacks, by the worker's name: fetched when Python first imports some of it. */
const RESTS = { training: "rest.xz", editing: "", language: "", measuring: "" };
/** Messages of output that may go out in one WINDOW of milliseconds; the rest is gathered. */
const BURST = 20;
const WINDOW = 100;

/**
 * Where Pyodide lies, and by their names where archives, snapshots and the like do.
 * device: webgpu where none is named.
 * @typedef {{ pyodide: string, is_cdn: boolean, version: string, kept: Record<string, string>, device?: "cpu" }} Config
 */

const role = /** @type {keyof typeof RESTS} */ (self.name);
/** @type {Command[]} */
const inbox = [];
let wake = () => {};
/** Takes a message that is for the program that runs. @type {(message: Command) => boolean} */
let isTaken = () => false;
/** The page has nothing else to compile first. */
let mayForesee = () => {};
/** Keeps the kernels of what ran, for the next visit. @type {() => Promise<void>} */
let keepKernels = async () => {};

self.addEventListener("message", ({ data: config }) => {
  self.addEventListener("message", ({ data }) => {
    mayForesee();
    if (data.do === "foresee" || isTaken(data)) return;
    inbox.push(data);
    wake();
  });
  main(config).catch((error) => tell({ is: "broken", text: error instanceof Error ? error.message : String(error) }));
}, { once: true });

/** @param {Record<string, unknown>} message @param {Transferable[]} [transfer] */
function tell(message, transfer = []) {
  self.postMessage(message, { transfer });
}

/** @param {Config} config */
async function main(config) {
  tell({ is: "loading", what: "Python" });
  /** @param {string[]} part name, version, file */
  const addressOf = (...part) => new URL(`./modules/${part[0]}@${part[1]}/${part[2]}`, self.location.href).href;
  Object.assign(self, { pywebgpuPackages: addressOf });
  const isOnCpu = config.device === "cpu";
  if (!isOnCpu) openDevice(config);
  const also = role === "editing" ? await openInterplay(() => python) : role === "language" ? { ...(await import("./model_files.mjs")) } : {};
  const python = (!isOnCpu && (await fromSnapshot(config))) || (await fromArchive(config));
  if (isOnCpu) await loadNumPy(python);
  const rest = RESTS[role] && new URL(config.kept[RESTS[role]], self.location.href).href;
  python.runPython(LATER, { globals: python.toPy({ rest }) });
  connectOutput(python);
  const names = python.toPy({});
  names.set("port", Object.assign(also, port(python, rest), { device: config.device ?? "webgpu" }));
  // Under runPythonAsync Python may wait for the GPU wherever it is.
  await python.runPythonAsync(`import ${role}; await ${role}.main(port)`, { globals: names });
}

/** What programs of the editor show on the page, and are told by it. @param {() => import("pyodide").PyodideAPI} python */
async function openInterplay(python) {
  const { Interplay } = await import("./interplay.mjs");
  const made = new Interplay(tell, python);
  isTaken = (message) => made.hear(message);
  return made;
}

/** What device cpu computes by. @param {import("pyodide").PyodideAPI} python */
async function loadNumPy(python) {
  await python.loadPackage("numpy", { messageCallback: () => undefined, errorCallback: () => undefined }).catch(() => undefined);
  if (python.runPython("from importlib.util import find_spec; find_spec('numpy') is None")) {
    throw new Error("On the CPU it trains by NumPy, which this server's Pyodide lacks: pywebgpu serve --cdn takes it from the network.");
  }
}

/** Opens the device at once: its drivers take their time, and Python takes its own. @param {Config} config */
function openDevice(config) {
  // The first view's kernels come first: what a page shows at once is seen at once.
  const isFree = new Promise((/** @type {(value?: unknown) => void} */ resolve) => (mayForesee = resolve));
  const kernels = foreseen(config).then((found) => isFree.then(() => found)).catch(() => []);
  const bridge = import(new URL(config.kept["python.mjs"], self.location.href).href);
  Object.assign(self, { pywebgpuModules: { "python.mjs": bridge } });
  void bridge
    .then(async ({ openAhead }) => {
      const opened = await openAhead(kernels);
      keepKernels = () => remember(config.version, opened);
    })
    .catch(() => undefined); // Python tells what is wrong, and why.
}

/** Python as it was once all was imported; null where there is no snapshot, or none that fits. @param {Config} config */
async function fromSnapshot(config) {
  const address = config.kept[`${role}.gz`];
  if (!address) return null;
  try {
    const packed = await load(address);
    const open = counted(packed)?.pipeThrough(/** @type {ReadableWritablePair} */ (new DecompressionStream("gzip")));
    const python = await startPython(config.pyodide, new Response(open).arrayBuffer());
    python.runPython(RESTORE);
    return python;
  } catch (error) {
    console.info(error);
    return null;
  }
}

/** Python from its beginning, and the library from its archive. @param {Config} config */
async function fromArchive(config) {
  const files = Promise.all(["parts.py", config.kept[`${role}.xz`]].map(bytes));
  files.catch(() => undefined); // told when they are needed
  const python = await startPython(config.pyodide);
  tell({ is: "loading", what: "pywebgpu" });
  python.FS.mkdirTree(FOLDER);
  const [parts, archive] = await files;
  python.FS.writeFile(`${FOLDER}/parts.py`, parts);
  python.runPython(START, { globals: python.toPy({ folder: FOLDER, archive }) });
  return python;
}

/** @param {string} folder where Pyodide lies @param {Promise<ArrayBuffer>} [snapshot] */
async function startPython(folder, snapshot) {
  const { fetch } = self;
  // Pyodide waits without end for a file that it cannot fetch.
  const failing = new Promise((_, reject) => {
    self.fetch = async (...request) => {
      const response = await fetch(...request).catch((error) => {
        reject(error);
        throw error;
      });
      if (!response.ok) reject(new Error(`${response.status} ${response.url}`));
      return response;
    };
  });
  try {
    const place = new URL(folder, self.location.href);
    const [{ loadPyodide }, { default: make }] = await Promise.all([
      /** @type {Promise<typeof import("pyodide")>} */ (import(new URL("pyodide.mjs", place).href)),
      import(new URL("pyodide.asm.mjs", place).href),
    ]);
    const grown = async (/** @type {any} */ settings) => {
      const { instantiateWasm } = settings;
      const bytes = await snapshot;
      settings.instantiateWasm = (/** @type {any} */ imports, /** @type {Function} */ receive) =>
        instantiateWasm(imports, (/** @type {WebAssembly.Instance} */ instance, /** @type {any} */ module) => {
          const memory = /** @type {WebAssembly.Memory} */ (instance.exports.memory);
          // Pyodide copies a snapshot into memory as large as it begins with.
          if (bytes) memory.grow(Math.max(0, Math.ceil((bytes.byteLength - memory.buffer.byteLength) / PAGE)));
          receive(instance, module);
        });
      return make(settings);
    };
    const options = { indexURL: folder, createPyodideModule: grown, ...(snapshot && { _loadSnapshot: snapshot }) };
    return await Promise.race([loadPyodide(options), /** @type {Promise<never>} */ (failing)]);
  } catch (error) {
    console.info(error);
    throw new Error(`Python cannot be loaded from ${new URL(folder, self.location.href).origin}. Is the network there?`);
  } finally {
    self.fetch = fetch;
  }
}

/** What an answer brings; how much came of it is told now and then. @param {Response} answer */
function counted({ body, headers }) {
  const mega = (/** @type {number} */ count) => (count / 1e6).toFixed(1);
  const whole = Number(headers.get("Content-Length"));
  let [came, toldAt] = [0, 0];
  const count = new TransformStream({
    transform(/** @type {Uint8Array} */ chunk, next) {
      came += chunk.byteLength;
      next.enqueue(chunk);
      if (performance.now() - toldAt < WINDOW) return;
      toldAt = performance.now();
      tell({ is: "loading", what: `Python, ${mega(came)}${whole ? ` of ${mega(whole)}` : ""} MB` });
    },
    flush: () => tell({ is: "loading", what: "Python" }),
  });
  return body?.pipeThrough(count);
}

/** @param {string} address @returns {Promise<Uint8Array>} */
async function bytes(address) {
  return new Uint8Array(await (await load(address)).arrayBuffer());
}

/** @param {string} address */
async function load(address) {
  const response = await fetch(new URL(address, self.location.href)).catch(() => {
    throw new Error(`${self.location.origin} does not answer. Does its server still run?`);
  });
  if (!response.ok) throw new Error(`${address}: ${(await response.text()).trim()}`);
  return response;
}

/** What Python has of the page. @param {import("pyodide").PyodideAPI} python @param {string} rest the address of what it has not loaded */
function port(python, rest) {
  /** @type {Record<string, Blob>} */
  let newest = {};
  return {
    /** The next message as JSON, or "". */
    take() {
      const message = inbox.shift();
      if (!message) return "";
      const { file, blobs, interrupts, ...rest } = message;
      newest = blobs ?? newest;
      if (file) python.FS.writeFile(PATH, new Uint8Array(file));
      if (interrupts) python.setInterruptBuffer(interrupts);
      return JSON.stringify(rest);
    },
    /** The blobs that came last, by name. */
    blobs: () => newest,
    /** Settles when there is a message. @returns {Promise<void>} */
    arrived: () => (inbox.length ? Promise.resolve() : new Promise((resolve) => (wake = resolve))),
    /** @param {string} json */
    tell: (json) => tell(JSON.parse(json)),
    /** What this worker has loaded, to be kept for the next visit. */
    loaded() {
      const addresses = performance.getEntriesByType("resource").map(({ name }) => name);
      tell({ is: "loaded", addresses: rest ? [...addresses, rest] : addresses });
    },
    /** The file at PATH, to the page. @param {string} json the rest of the message */
    give(json) {
      const bytes = python.FS.readFile(PATH);
      python.FS.unlink(PATH);
      tell({ ...JSON.parse(json), bytes }, [bytes.buffer]);
    },
    /** A program ran to its end: what it needed will be needed again. */
    ran: () => void keepKernels(),
    heapBytes() {
      const probe = python.toPy(new Uint8Array(4));
      const view = probe.getBuffer("u8");
      const size = view.data.buffer.byteLength;
      view.release();
      probe.destroy();
      return size;
    },
  };
}

/** Python's output, to the page. @param {import("pyodide").PyodideAPI} python */
function connectOutput(python) {
  let text = "";
  let sent = 0;
  let since = 0;
  let timer = 0;
  const flush = () => {
    clearTimeout(timer);
    timer = 0;
    if (text) tell({ is: "output", text });
    text = "";
  };
  const stream = () => {
    const decoder = new TextDecoder();
    return (/** @type {Uint8Array} */ bytes) => {
      text += decoder.decode(bytes, { stream: true });
      const now = performance.now();
      if (now - since > WINDOW) [since, sent] = [now, 0];
      // A loop that prints without end must not bury the page in messages.
      if (++sent <= BURST || text.length > 1 << 16) flush();
      else timer ||= self.setTimeout(flush, WINDOW);
      return bytes.length;
    };
  };
  python.setStdin({ error: true });
  python.setStdout({ write: stream(), isatty: false });
  python.setStderr({ write: stream(), isatty: false });
}
