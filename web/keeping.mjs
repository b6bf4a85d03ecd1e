/** Has the service worker keep what this page and its workers loaded. */

/** Settles once all is kept; nothing is where the browser has no service workers. @param {string[]} loadedByWorker */
export async function keepLoaded(loadedByWorker) {
  const { serviceWorker } = navigator;
  if (!serviceWorker) return;
  await serviceWorker.register("offline.mjs");
  const { active } = await serviceWorker.ready;
  const mine = performance.getEntriesByType("resource").map(({ name }) => name);
  const addresses = [location.href, ...mine, ...loadedByWorker].filter((address) => address.startsWith(location.origin));
  const isDone = new Promise((resolve) => serviceWorker.addEventListener("message", resolve, { once: true }));
  active?.postMessage(addresses);
  await isDone;
  document.documentElement.dataset.kept = "";
}
