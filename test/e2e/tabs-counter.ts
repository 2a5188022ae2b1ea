/** Counts outside of the browser how often a tool has run, and holds it as long as a test wants. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Counter {
  /** What stands behind it is the id of a run. */
  readonly url: string;
  /** How often the tool has run with this id. */
  runs(id: string): number;
  /** Resolves when it runs. */
  started(id: string): Promise<void>;
  /** Lets it end: now, or when it comes. */
  release(id: string): void;
  close(): void;
}

export async function startCounter(): Promise<Counter> {
  const runs = new Map<string, number>();
  const held = new Map<string, ServerResponse[]>();
  const released = new Set<string>();
  const waiting = new Set<() => void>();
  const server = createServer(({ url = "/", method }, response) => {
    response.setHeader("access-control-allow-origin", "*");
    const id = url.slice(1);
    if (method !== "POST") return void response.end();
    runs.set(id, (runs.get(id) ?? 0) + 1);
    for (const look of [...waiting]) look();
    if (released.has(id)) response.end("charged");
    else held.set(id, [...(held.get(id) ?? []), response]);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    runs: (id) => runs.get(id) ?? 0,
    started: (id) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!runs.has(id)) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    release(id) {
      released.add(id);
      for (const response of held.get(id) ?? []) response.end("charged");
      held.delete(id);
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
