/** Models that this browser keeps, as files of the origin's private file system. */

const FOLDER = "models";
const PART = ".part"; // ends the name of a file that is not whole yet
const SLICE = 1 << 20; // bytes that are copied at a time

/** @typedef {{ name: string, size: number, isWhole: boolean }} Kept */
/** Tells how many bytes there are, of how many (0: not known); false ends it. @typedef {(came: number, total: number) => boolean} Progress */

async function folder() {
  return (await navigator.storage.getDirectory()).getDirectoryHandle(FOLDER, { create: true });
}

/** @returns {Promise<Kept[]>} */
export async function keptModels() {
  const kept = [];
  for await (const [name, handle] of /** @type {any} */ (await folder()).entries()) {
    const { size } = await handle.getFile();
    kept.push({ name: name.endsWith(PART) ? name.slice(0, -PART.length) : name, size, isWhole: !name.endsWith(PART) });
  }
  return kept.sort((a, b) => a.name.localeCompare(b.name));
}

/** @param {string} name */
export async function keptModel(name) {
  return (await (await folder()).getFileHandle(name)).getFile();
}

/** Deletes a model, and what came of it. @param {string} name */
export async function dropModel(name) {
  const models = await folder();
  for (const each of [name, name + PART]) await models.removeEntry(each).catch(() => undefined);
}

/**
 * The file of an address, from where an earlier attempt ended; null when it was stopped. Only a worker may write so.
 * @param {string} address @param {Progress} progress
 */
export async function fetchModel(address, progress) {
  const name = decodeURIComponent(new URL(address, location.href).pathname.split("/").pop() ?? "") || "model.gguf";
  return keepStream(name, progress, async (start) => {
    const answer = await fetch(address, start ? { headers: { Range: `bytes=${start}-` } } : {});
    if (answer.status === 416) return { stream: null, start, total: start }; // All of it is there.
    if (!answer.ok || !answer.body) throw new Error(`${address}: ${answer.status} ${answer.statusText}`);
    const begin = answer.status === 206 ? start : 0;
    return { stream: answer.body, start: begin, total: begin + Number(answer.headers.get("Content-Length") ?? 0) };
  });
}

/** A copy of a file; null when it was stopped. @param {File} file @param {Progress} progress */
export async function keepModel(file, progress) {
  return keepStream(file.name, progress, async () => ({ stream: file.stream(), start: 0, total: file.size }));
}

/**
 * @param {string} name @param {Progress} progress
 * @param {(start: number) => Promise<{ stream: ReadableStream<Uint8Array> | null, start: number, total: number }>} open
 */
async function keepStream(name, progress, open) {
  const models = await folder();
  const handle = await models.getFileHandle(name + PART, { create: true });
  const access = await /** @type {any} */ (handle).createSyncAccessHandle();
  try {
    const { stream, start, total } = await open(access.getSize());
    access.truncate(start);
    let came = start;
    const reader = stream?.getReader();
    /** The next part; undefined where the connection breaks. */
    const next = () => reader?.read().catch(() => undefined);
    let part = await next();
    for (; part && !part.done; part = await next()) {
      for (let from = 0; from < part.value.length; from += SLICE) {
        came += access.write(part.value.subarray(from, from + SLICE), { at: came });
      }
      if (!progress(came, total)) {
        await reader?.cancel();
        return null;
      }
    }
    if (reader && (!part || came < total)) throw new Error(`${name}: the connection ended at ${came} of ${total} bytes; what came is kept`);
  } finally {
    access.close();
  }
  await models.removeEntry(name).catch(() => undefined);
  await /** @type {any} */ (handle).move(name);
  return keptModel(name);
}
