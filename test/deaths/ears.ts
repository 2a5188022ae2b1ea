/** Somebody outside, who hears over HTTP what those who may die have to tell. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { Told } from "./life.ts";

export interface Ears<T = Told> {
  /** The address for whoever has this name. From now on `heard` is what hears it, in place of what did before. */
  listen(name: string, heard: (told: T) => void): string;
  close(): void;
}

export async function openEars<T = Told>(): Promise<Ears<T>> {
  const listeners = new Map<string, (told: T) => void>();
  const server = createServer(async (request, response) => {
    // One that is cut short is told by somebody who is dead by now.
    const body = await text(request).catch(() => "");
    if (body !== "") listeners.get(request.url!)?.(JSON.parse(body) as T);
    response.setHeader("access-control-allow-origin", "*").end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    listen(name, heard) {
      const path = `/${encodeURIComponent(name)}`;
      listeners.set(path, heard);
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`;
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
