/** The page's service worker: what was loaded once is kept, so that the page opens at once, and without a network too. */

/** @type {any} */
const scope = self;
const CACHE = `pywebgpu-page ${scope.registration.scope}`; // An origin may have several such pages.
const FOREVER = /\/(?:kept|modules)\//; // addresses that name a version: they never mean anything else

scope.addEventListener("install", () => scope.skipWaiting());
scope.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(scope.clients.claim()));
scope.addEventListener("fetch", (/** @type {any} */ event) => {
  /** @type {Request} */
  const request = event.request;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== location.origin) return;
  event.respondWith(FOREVER.test(pathname) ? kept(request) : fresh(request));
});
scope.addEventListener("message", (/** @type {any} */ event) => {
  event.waitUntil(keep(event.data).then(() => event.source?.postMessage({ is: "kept" })));
});

/** @param {Request} request */
async function kept(request) {
  return (await (await caches.open(CACHE)).match(request, { ignoreVary: true })) ?? fetch(request);
}

/** From the server where it answers, else as it was. @param {Request} request */
async function fresh(request) {
  const cache = await caches.open(CACHE);
  try {
    const answer = await fetch(request);
    if (answer.ok && (await cache.match(request, { ignoreSearch: true }))) void cache.put(withoutQuery(request.url), answer.clone());
    return answer;
  } catch (error) {
    const found = await cache.match(request, { ignoreSearch: true, ignoreVary: true });
    if (!found) throw error;
    return found;
  }
}

/** Keeps the files of these addresses, each in one version. @param {string[]} addresses */
async function keep(addresses) {
  const cache = await caches.open(CACHE);
  const wanted = new Set(addresses.map(withoutQuery));
  const newest = new Map(Array.from(wanted, (address) => [unversioned(address), address]));
  for (const { url } of await cache.keys()) if ((newest.get(unversioned(url)) ?? url) !== url) await cache.delete(url);
  for (const address of wanted) {
    if (!(await cache.match(address, { ignoreVary: true }))) await cache.add(new Request(address, { cache: "force-cache" }));
  }
}

/** @param {string} address */
function unversioned(address) {
  return address.replace(/\/kept\/[^/]+|(?<=\/modules\/.+)@[\d.]+/, "");
}

/** @param {string} address */
function withoutQuery(address) {
  const { origin, pathname } = new URL(address);
  return origin + pathname;
}
