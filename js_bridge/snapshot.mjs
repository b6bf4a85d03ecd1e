/**
 * Makes the memory of a Python that has imported what a page's worker imports, so that a page need not do it again:
 *
 *     node snapshot.mjs '{"pyodide": "node_modules/pyodide", "parts": "parts.py", "archive": "training.xz", …}'
 */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";

/**
 * pyodide: its folder. parts: the file parts.py. archive: what it unpacks. rest: what imports may also need. modules: to import. into: the file to write.
 * @typedef {{ pyodide: string, parts: string, archive: string, rest: string, modules: string[], into: string }} Job
 */

/** @type {Job} */
const job = JSON.parse(process.argv[2]);
const FOLDER = "/page"; // as in the page's worker
const MAKE = `
import sys
sys.path.insert(0, "${FOLDER}")
import parts
parts.unpack(open("${FOLDER}/rest", "rb").read())
parts.carry("${FOLDER}/archive", ${JSON.stringify(job.modules)})`;

/** @type {typeof import("pyodide")} */
const { loadPyodide } = await import(pathToFileURL(join(job.pyodide, "pyodide.mjs")).href);
const python = await loadPyodide({ indexURL: job.pyodide, _makeSnapshot: true });
python.FS.mkdirTree(FOLDER);
python.FS.writeFile(`${FOLDER}/parts.py`, readFileSync(job.parts));
python.FS.writeFile(`${FOLDER}/archive`, readFileSync(job.archive));
python.FS.writeFile(`${FOLDER}/rest`, readFileSync(job.rest));
python.runPython(MAKE);
writeFileSync(job.into, gzipSync(/** @type {any} */ (python).makeMemorySnapshot(), { level: 6 }));
process.exit(0);
