/** Has the browser keep the page, so that it opens without a network. */

/** Only where the page was built, and the agent is in it: in development the files change. */
export function startOffline(): void {
  if (!import.meta.env.PROD || import.meta.env.VITE_PLACE === "edge" || !("serviceWorker" in navigator)) return;
  // Where it is refused, as in some private windows, the page needs its network.
  navigator.serviceWorker.register("./offline.js").catch(() => {});
}
