/**
 * Starts Pyodide in Node. What starting takes seconds for is its memory, so that is kept beside Pyodide, and the next
 * process restores it in a tenth of the time.
 */

import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

/** @typedef {import("pyodide").PyodideAPI} PyodideAPI */

/** Variables that only a Python that starts heeds, as PYTHONOPTIMIZE. Of these two, the first is heeded below, the other by script.py. */
const HEEDED = /^PYTHON(?!(UNBUFFERED|DONTWRITEBYTECODE)$)/;
/** What every process has of its own. */
const OWN = `
import os, random, sys
os.environ.update(environment)
random.seed()
if os.environ.get("PYTHONUNBUFFERED"):
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(write_through=True)`;

/**
 * A Python with these environment variables; with one that must be there when it starts, nothing is restored.
 * @param {string} modules the folder that has Pyodide
 * @param {Record<string, string>} env
 * @returns {Promise<PyodideAPI>}
 */
export async function startPython(modules, env) {
  const folder = join(modules, "pyodide");
  /** @type {typeof import("pyodide")} */
  const { loadPyodide } = await import(pathToFileURL(join(folder, "pyodide.mjs")).href);
  if (Object.keys(env).some((name) => HEEDED.test(name))) return loadPyodide({ env });
  const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = join(modules, ".cache", "pywebgpu", `pyodide-${version}.snapshot`);
  const python = (await restored(file, loadPyodide)) ?? (await kept(file, loadPyodide));
  const globals = python.toPy({ environment: env });
  python.runPython(OWN, { globals });
  globals.destroy();
  return python;
}

/** @param {string} file @param {typeof import("pyodide").loadPyodide} loadPyodide @returns {Promise<PyodideAPI | null>} */
async function restored(file, loadPyodide) {
  try {
    return await loadPyodide({ _loadSnapshot: readFileSync(file) });
  } catch {
    rmSync(file, { force: true }); // Missing, or not what this Pyodide understands: it is made anew.
    return null;
  }
}

/** One that has started, after its memory was kept for others where that can be. @param {string} file @param {typeof import("pyodide").loadPyodide} loadPyodide */
async function kept(file, loadPyodide) {
  const python = await loadPyodide({ _makeSnapshot: true });
  const part = `${file}.${process.pid}`;
  try {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(part, /** @type {any} */ (python).makeMemorySnapshot());
    renameSync(part, file);
  } catch {
    rmSync(part, { force: true }); // A folder that cannot be written to, or a full disk.
  }
  return python;
}
