/** What this browser lacks, and what its user can do about it. */

/** @typedef {{ title: string, text: string, advice: string[] }} Lack */

/** What keeps the page from computing. @returns {Promise<Lack | null>} */
export async function lack() {
  if (!globalThis.isSecureContext) {
    return {
      title: "This address may not use the GPU",
      text: "Browsers offer WebGPU to https: pages and to http://localhost only.",
      advice: [
        `Open http://localhost:${location.port || 80}/ on the machine that serves this page.`,
        "To reach it from another device, put a server with https before it.",
      ],
    };
  }
  if (!navigator.gpu) {
    return {
      title: "WebGPU is missing in this browser",
      text: "The page computes on the GPU through WebGPU, which this browser does not offer.",
      advice: [
        "Use a recent Chrome or Edge: version 137 or newer.",
        "On Linux, open chrome://flags/#enable-unsafe-webgpu, enable it, and start the browser anew.",
        "In Firefox, type about:config in the address bar and set dom.webgpu.enabled to true.",
      ],
    };
  }
  const adapter = await navigator.gpu.requestAdapter().catch(() => null);
  if (!adapter) {
    return {
      title: "WebGPU finds no GPU here",
      text: "The browser has WebGPU, but it offers no adapter: no GPU that it trusts, or graphics acceleration is off.",
      advice: [
        "Turn on graphics acceleration in the browser's settings, under System, and start the browser anew.",
        "Open chrome://gpu: its line on WebGPU says what is wrong. A newer graphics driver often helps.",
        "Without a GPU, start Chrome with --enable-unsafe-webgpu --use-webgpu-adapter=swiftshader: right, but slow.",
      ],
    };
  }
  return null;
}

/** Whether Python can be suspended while it waits for the GPU (JavaScript Promise Integration); else it must await. */
export const canSuspend = "Suspending" in WebAssembly && "promising" in WebAssembly;

/** Whether a CPU computes: there is no adapter, or one that plays the GPU. */
export async function isSoftware() {
  const adapter = await navigator.gpu?.requestAdapter().catch(() => null);
  if (!adapter) return true;
  const { isFallbackAdapter, architecture, description, device } = adapter.info;
  return isFallbackAdapter || /swiftshader|llvmpipe|lavapipe/i.test(`${architecture} ${description} ${device}`);
}
