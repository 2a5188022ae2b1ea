/** The service worker that lets the page open without a network: made at build, it holds what was built. */
import { createHash } from "node:crypto";
import type { Plugin } from "vite";

/** Where it goes, beside the page. */
const FILE = "offline.js";

/**
 * Holds from the start what the page needs to open, and each further part once it was used. Addresses of others pass
 * by it: it never holds what a model said. A page that is open keeps the build that it began with.
 */
export function offlineWorker(): Plugin {
  return {
    name: "offline-worker",
    apply: "build",
    enforce: "post",
    generateBundle(_, bundle) {
      const files = Object.keys(bundle).filter((file) => bundle[file]!.type === "asset" || isNeeded(file, bundle));
      const contents = files.map((file) => {
        const made = bundle[file]!;
        return made.type === "asset" ? String(made.source) : made.code;
      });
      const version = createHash("sha256").update(contents.join("\0")).digest("hex").slice(0, 12);
      this.emitFile({ type: "asset", fileName: FILE, source: workerOf(version, files) });
    },
  };
}

type Bundle = Parameters<Extract<Plugin["generateBundle"], (...args: never[]) => unknown>>[1];

/** An entry imports it, and not only when something is asked for. */
function isNeeded(file: string, bundle: Bundle): boolean {
  const reached = new Set<string>();
  const reach = (name: string): void => {
    const chunk = bundle[name];
    if (reached.has(name) || chunk?.type !== "chunk") return;
    reached.add(name);
    chunk.imports.forEach(reach);
  };
  for (const [name, made] of Object.entries(bundle)) if (made.type === "chunk" && made.isEntry) reach(name);
  return reached.has(file);
}

function workerOf(version: string, files: readonly string[]): string {
  return `const NAME = "turnloop-demo-${version}";
const FILES = ${JSON.stringify(["./", ...files.filter((file) => file !== "index.html")])};
const PARTS = new URL("assets/", location.href).href;

addEventListener("install", (event) => {
  event.waitUntil(caches.open(NAME).then((cache) => cache.addAll(FILES)));
});

addEventListener("activate", (event) => {
  const old = (name) => name.startsWith("turnloop-demo-") && name !== NAME;
  event.waitUntil(
    caches.keys()
      .then((names) => Promise.all(names.filter(old).map((name) => caches.delete(name))))
      .then(() => clients.claim()),
  );
});

addEventListener("fetch", (event) => {
  const { method, mode, url } = event.request;
  if (method !== "GET") return;
  if (mode === "navigate") event.respondWith(page(event.request));
  else if (url.startsWith(PARTS)) event.respondWith(part(event.request));
});

/** A new page where there is a network; the one that is kept where there is none. */
async function page(request) {
  try {
    return await fetch(request);
  } catch (error) {
    const kept = await caches.match(request, { ignoreSearch: true, ignoreVary: true });
    if (kept) return kept;
    throw error;
  }
}

/** Each part has its content in its name: it is the same for whoever asks, whatever a server says it varies by. */
async function part(request) {
  const kept = await caches.match(request, { ignoreVary: true });
  if (kept) return kept;
  const response = await fetch(request);
  if (response.ok) await (await caches.open(NAME)).put(request, response.clone());
  return response;
}
`;
}
