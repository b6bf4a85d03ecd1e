/** Models that this browser keeps: each a folder of the origin's private file system, with its files and what is known of them. */

const FOLDER = "models";
const PART = ".part"; // ends the name of a file that is not whole yet
const ABOUT = "kept.json";
const SLICE = 1 << 20; // bytes that are copied at a time

/**
 * sha256: of the weights; "" while they are not whole.
 * @typedef {{ name: string, size: number, isWhole: boolean, sha256: string }} Kept
 */
/** Versions are what servers call those of the files that are not whole. @typedef {{ sha256: string, versions: Record<string, string> }} About */
/** A file to keep, or the address of one. @typedef {{ name: string, isOptional?: boolean } & ({ blob: Blob } | { address: string })} Source */
/**
 * kind: the models' kind.  name: the model's.  sources: its files, the weights last.  sha256: what the weights must have; "": not known.
 * progress: told how many bytes there are, of how many (0: not known); false ends it.  digest: the SHA-256 of a file, in hexadecimal.
 * @typedef {{ kind: string, name: string, sources: Source[], sha256: string,
 *   progress: (came: number, total: number) => boolean, digest: (blob: Blob) => string }} Request
 */

/** @param {string} kind */
async function folder(kind) {
  const root = await navigator.storage.getDirectory();
  return (await root.getDirectoryHandle(FOLDER, { create: true })).getDirectoryHandle(kind, { create: true });
}

/** @param {FileSystemDirectoryHandle} model @returns {AsyncIterable<[string, FileSystemFileHandle]>} */
const entries = (model) => /** @type {any} */ (model).entries();

/** @param {string} kind @returns {Promise<Kept[]>} */
export async function keptModels(kind) {
  const kept = [];
  for await (const [name, model] of /** @type {any} */ (await folder(kind)).entries()) {
    let [size, isWhole] = [0, false];
    for await (const [file, handle] of entries(model)) {
      size += (await handle.getFile()).size;
      isWhole ||= file !== ABOUT && !file.endsWith(PART);
    }
    kept.push({ name: decodeURIComponent(name), size, isWhole, sha256: (await readAbout(model)).sha256 });
  }
  return kept.sort((a, b) => a.name.localeCompare(b.name));
}

/** The files of a model by their names. @param {string} kind @param {string} name @returns {Promise<Record<string, File>>} */
export async function keptFiles(kind, name) {
  /** @type {Record<string, File>} */
  const files = {};
  const model = await (await folder(kind)).getDirectoryHandle(encodeURIComponent(name));
  for await (const [file, handle] of entries(model)) {
    if (file !== ABOUT && !file.endsWith(PART)) files[decodeURIComponent(file)] = await handle.getFile();
  }
  return files;
}

/** Deletes a model, and what came of it. @param {string} kind @param {string} name */
export async function dropModel(kind, name) {
  await (await folder(kind)).removeEntry(encodeURIComponent(name), { recursive: true });
}

/**
 * Keeps a model; files of addresses go on where an earlier attempt ended. Returns whether it came whole: not where it was
 * stopped. Only a worker may write so.
 * @param {Request} request
 */
export async function keepModel({ kind, name, sources, sha256, progress, digest }) {
  const model = await (await folder(kind)).getDirectoryHandle(encodeURIComponent(name), { create: true });
  const about = await readAbout(model);
  const whole = [];
  for (const source of sources) {
    const file = encodeURIComponent(source.name);
    const note = async (/** @type {string} */ version) => {
      about.versions[file] = version;
      await writeAbout(model, about);
    };
    const handle = await model.getFileHandle(file + PART, { create: true });
    const access = await /** @type {any} */ (handle).createSyncAccessHandle();
    try {
      const stream = "blob" in source ? ofBlob(source.blob) : await ofAddress(source.address, access.getSize(), about.versions[file] ?? "", note);
      if (stream && !(await copy(source.name, stream, access, progress))) return false;
      if (stream) whole.push({ file, handle });
      else if (!source.isOptional) throw new Error(`${"address" in source ? source.address : source.name}: there is no such file`);
    } finally {
      access.close();
    }
  }
  const actual = digest(await whole[whole.length - 1].handle.getFile());
  if (sha256 && actual !== sha256) {
    await dropModel(kind, name);
    throw new Error(`${name}: its SHA-256 is ${actual}, not ${sha256}; it was deleted`);
  }
  for (const { file, handle } of whole) {
    await model.removeEntry(file).catch(() => undefined);
    await /** @type {any} */ (handle).move(file);
  }
  for await (const [file] of entries(model)) if (file.endsWith(PART)) await model.removeEntry(file);
  await writeAbout(model, { sha256: actual, versions: {} });
  return true;
}

/** Bytes from `start` on. total: of the whole file; 0: not known. @typedef {{ body: ReadableStream<Uint8Array>, start: number, total: number }} Stream */

/** @param {Blob} blob @returns {Stream} */
const ofBlob = (blob) => ({ body: blob.stream(), start: 0, total: blob.size });

/**
 * The rest of an address's file, of which `start` bytes came earlier, or all of it where they are of another version or of
 * an unknown one; null where there is no such file.
 * @param {string} address @param {number} start @param {string} version @param {(version: string) => Promise<void>} note
 * @returns {Promise<Stream | null>}
 */
async function ofAddress(address, start, version, note) {
  /** @type {Record<string, string>} */
  const headers = {};
  if (start && version) headers.Range = `bytes=${start}-`;
  // Few servers let pages of other origins send it; the answer says its version in any case.
  if (headers.Range && new URL(address, location.href).origin === location.origin) headers["If-Range"] = version;
  const answer = await fetch(address, { headers, cache: "no-store" });
  const isRest = answer.status === 206;
  if (headers.Range && (answer.status === 416 || (isRest && versionOf(answer) !== version))) {
    await answer.body?.cancel();
    return ofAddress(address, 0, "", note);
  }
  if (answer.status === 404) return null;
  if (!answer.ok || !answer.body) throw new Error(`${address}: ${answer.status} ${answer.statusText}`);
  if (!isRest) await note(versionOf(answer));
  const isPacked = answer.headers.has("Content-Encoding");
  const begin = isRest ? start : 0;
  return { body: answer.body, start: begin, total: isPacked ? 0 : begin + Number(answer.headers.get("Content-Length") ?? -begin) };
}

/** What tells a file from another one at its address; "" where nothing does. @param {Response} answer */
function versionOf({ headers }) {
  const tag = headers.get("ETag") ?? "";
  return tag && !tag.startsWith("W/") ? tag : (headers.get("Last-Modified") ?? "");
}

/** Writes what comes. Returns whether it came to its end. @param {string} name @param {Stream} stream @param {any} access @param {Request["progress"]} progress */
async function copy(name, { body, start, total }, access, progress) {
  access.truncate(start);
  let came = start;
  const reader = body.getReader();
  /** The next part; undefined where the connection breaks. */
  const next = () => reader.read().catch(() => undefined);
  let part = await next();
  for (; part && !part.done; part = await next()) {
    for (let from = 0; from < part.value.length; from += SLICE) {
      came += access.write(part.value.subarray(from, from + SLICE), { at: came });
    }
    if (!progress(came, total)) {
      await reader.cancel();
      return false;
    }
  }
  if (!part || came < total) {
    throw new Error(`${name}: the connection ended at ${came}${total ? ` of ${total}` : ""} bytes; what came is kept`);
  }
  return true;
}

/** @param {FileSystemDirectoryHandle} model @returns {Promise<About>} */
async function readAbout(model) {
  const text = await model.getFileHandle(ABOUT).then(async (handle) => (await handle.getFile()).text()).catch(() => "");
  return { sha256: "", versions: {}, ...JSON.parse(text || "{}") };
}

/** @param {FileSystemDirectoryHandle} model @param {About} about */
async function writeAbout(model, about) {
  const access = await /** @type {any} */ (await model.getFileHandle(ABOUT, { create: true })).createSyncAccessHandle();
  try {
    access.truncate(0);
    access.write(new TextEncoder().encode(JSON.stringify(about)));
    access.flush();
  } finally {
    access.close();
  }
}
