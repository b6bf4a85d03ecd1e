/**
 * A worker with a Python in it: Pyodide, pywebgpu and one script, which takes the page's messages from here. The
 * worker's name says which: "training" or "editing".
 */

/**
 * What a page sends. A file goes to PATH before Python sees the message.
 * @typedef {{ do: string, file?: ArrayBuffer, interrupts?: Uint8Array } & Record<string, unknown>} Command
 */

const FOLDER = "/page";
const PATH = `${FOLDER}/checkpoint.safetensors`;
const START = `
import sys
sys.path.insert(0, folder)
import parts
parts.unpack(archive.tobytes())
if rest:
    sys.meta_path.append(parts.Rest(rest))`;
const ARCHIVES = { training: "training.xz", editing: "editor.xz" };
/** What the first archive lacks, by the worker's name: fetched when Python first imports some of it. */
const RESTS = { training: "rest.xz", editing: "" };
/** Messages of output that may go out in one WINDOW of milliseconds; the rest is gathered. */
const BURST = 20;
const WINDOW = 100;

const role = /** @type {keyof typeof ARCHIVES} */ (self.name);
/** @type {Command[]} */
const inbox = [];
let wake = () => {};

self.addEventListener("message", ({ data }) => {
  inbox.push(data);
  wake();
});
main().catch((error) => tell({ is: "broken", text: error instanceof Error ? error.message : String(error) }));

/** @param {Record<string, unknown>} message @param {Transferable[]} [transfer] */
function tell(message, transfer = []) {
  self.postMessage(message, { transfer });
}

async function main() {
  tell({ is: "loading", what: "Python" });
  const files = Promise.all(["parts.py", ARCHIVES[role]].map(bytes));
  files.catch(() => undefined); // told when they are needed
  const config = await (await load("config.json")).json();
  const python = await startPython(config.pyodide);
  tell({ is: "loading", what: "pywebgpu" });
  python.FS.mkdirTree(FOLDER);
  const [parts, archive] = await files;
  python.FS.writeFile(`${FOLDER}/parts.py`, parts);
  const rest = RESTS[role] && new URL(RESTS[role], self.location.href).href;
  python.runPython(START, { globals: python.toPy({ folder: FOLDER, archive, rest }) });
  if (config.is_cdn && role === "editing") await python.loadPackage("numpy", { messageCallback: () => undefined });
  connectOutput(python);
  const names = python.toPy({});
  names.set("port", port(python));
  // Under runPythonAsync Python may wait for the GPU wherever it is.
  await python.runPythonAsync(`import ${role}; await ${role}.main(port)`, { globals: names });
}

/** @param {string} folder where Pyodide lies */
async function startPython(folder) {
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
    /** @type {typeof import("pyodide")} */
    const { loadPyodide } = await import(new URL("pyodide.mjs", new URL(folder, self.location.href)).href);
    return await Promise.race([loadPyodide({ indexURL: folder }), /** @type {Promise<never>} */ (failing)]);
  } catch (error) {
    console.info(error);
    throw new Error(`Python cannot be loaded from ${new URL(folder, self.location.href).origin}. Is the network there?`);
  } finally {
    self.fetch = fetch;
  }
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

/** What Python has of the page. @param {import("pyodide").PyodideAPI} python */
function port(python) {
  return {
    /** The next message as JSON, or "". */
    take() {
      const message = inbox.shift();
      if (!message) return "";
      const { file, interrupts, ...rest } = message;
      if (file) python.FS.writeFile(PATH, new Uint8Array(file));
      if (interrupts) python.setInterruptBuffer(interrupts);
      return JSON.stringify(rest);
    },
    /** Settles when there is a message. @returns {Promise<void>} */
    arrived: () => (inbox.length ? Promise.resolve() : new Promise((resolve) => (wake = resolve))),
    /** @param {string} json */
    tell: (json) => tell(JSON.parse(json)),
    /** The file at PATH, to the page. @param {string} json the rest of the message */
    give(json) {
      const bytes = python.FS.readFile(PATH);
      python.FS.unlink(PATH);
      tell({ ...JSON.parse(json), bytes }, [bytes.buffer]);
    },
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
