/** Runs that this browser keeps by itself: checkpoints in the origin's own file system, the newest first. */

const FOLDER = "runs";
const NOWHERE = "This browser keeps no files.";
const MOST = 5; // the oldest goes first

/**
 * text: the user's own, or null for one that the page brings.  source: which.  model: the user's own, in Python.
 * @typedef {{ id: string, when: number, step: number, loss: number, parameters: number, text: string | null, source: string | null, model?: string | null }} About
 */

/** All that are kept; none where there is no such storage. @returns {Promise<About[]>} */
export async function keptRuns() {
  const folder = await open();
  const found = [];
  for (const name of folder ? await names(folder) : []) {
    if (name.endsWith(".json")) found.push(JSON.parse(await (await (await folder?.getFileHandle(name))?.getFile())?.text() ?? "null"));
  }
  return found.filter(Boolean).sort((a, b) => b.when - a.when);
}

/** Whether there is such a storage. */
export const canKeep = async () => Boolean(await open().catch(() => null));

/** @param {About} about @param {BufferSource & Uint8Array<ArrayBuffer>} checkpoint */
export async function keepRun(about, checkpoint) {
  const folder = await open();
  if (!folder) throw new Error(NOWHERE);
  await write(folder, `${about.id}.safetensors`, checkpoint);
  await write(folder, `${about.id}.json`, JSON.stringify(about)); // last: what has it is whole
  for (const { id } of (await keptRuns()).slice(MOST)) await dropRun(id);
}

/** @param {string} id @returns {Promise<ArrayBuffer>} */
export async function readRun(id) {
  const file = await (await open())?.getFileHandle(`${id}.safetensors`);
  if (!file) throw new Error(NOWHERE);
  return (await file.getFile()).arrayBuffer();
}

/** @param {string} id */
export async function dropRun(id) {
  const folder = await open();
  for (const end of ["json", "safetensors"]) await folder?.removeEntry(`${id}.${end}`).catch(() => undefined);
}

async function open() {
  const root = await navigator.storage?.getDirectory?.().catch(() => null);
  return root?.getDirectoryHandle(FOLDER, { create: true });
}

/** @param {FileSystemDirectoryHandle} folder @returns {Promise<string[]>} */
async function names(folder) {
  const found = [];
  for await (const name of /** @type {any} */ (folder).keys()) found.push(name);
  return found;
}

/** The file appears whole or not at all. @param {FileSystemDirectoryHandle} folder @param {string} name @param {string | BufferSource} content */
async function write(folder, name, content) {
  const file = await (await folder.getFileHandle(name, { create: true })).createWritable();
  await file.write(content);
  await file.close();
}
