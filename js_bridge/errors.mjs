/** What goes wrong, in seven kinds: whoever catches an error decides by `kind` and never by its text. */

/**
 * absent: there is no WebGPU here.  compile: a shader was refused.  fault: a kernel met an index that is out of range.
 * overflow: a kernel met an int64 that 32 bits do not hold.
 * device: the device refused the work.  lost: the device is gone, with all that it held.
 * usage: what the caller gave does not fit; nothing was done.
 * @typedef {"absent" | "compile" | "fault" | "overflow" | "device" | "lost" | "usage"} Kind
 */

export class BridgeError extends Error {
  /** @param {Kind} kind @param {string} message */
  constructor(kind, message) {
    super(message);
    this.name = "BridgeError";
    this.kind = kind;
  }
}

/** What the caller gave does not fit. @param {string} text */
export const refuse = (text) => new BridgeError("usage", text);

/** Any exception as a BridgeError. @param {unknown} error @param {Kind} kind */
export function as(kind, error) {
  return error instanceof BridgeError ? error : new BridgeError(kind, error instanceof Error ? error.message : String(error));
}

/**
 * The compiler's messages about a shader, each with its line of WGSL.
 * @param {string} name @param {string} wgsl @param {GPUCompilationInfo} info @param {unknown} cause
 */
export function compileError(name, wgsl, info, cause) {
  const lines = wgsl.split("\n");
  const found = [...info.messages].filter((message) => message.type === "error");
  const texts = found.map(({ lineNum, linePos, message }) => {
    const line = lines[lineNum - 1];
    return `line ${lineNum}:${linePos}: ${message}` + (line === undefined ? "" : `\n${String(lineNum).padStart(4)} ${line}`);
  });
  const text = texts.length ? texts.join("\n") : as("compile", cause).message;
  return new BridgeError("compile", `${name}: the shader does not compile: ${text}`);
}
