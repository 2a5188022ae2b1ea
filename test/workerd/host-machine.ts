/** A Worker and its agents in workerd, and the model that they ask, which is played by the test. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { Miniflare } from "miniflare";
import { programOf } from "../deaths/program.ts";

/** What an object says to the world outside: to its model, or by paying. */
export interface Said {
  readonly path: "model" | "pay";
  readonly session?: string;
  readonly role?: string;
  readonly callId?: string;
}

export interface HostMachine {
  readonly address: URL;
  /** Calls a method of the object by RPC, or one of the Worker's own. */
  ask(verb: string, object: string, ...args: readonly unknown[]): Promise<unknown>;
  /** Who plays the world from now on. */
  play(world: (said: Said) => string | Promise<string>): void;
  close(): Promise<void>;
}

/** The platform wants the worker as a default export. */
const MAIN = `export { worker as default, Agents, Own } from "./worker.js";`;

export async function createHostMachine(): Promise<HostMachine> {
  const folder = mkdtempSync(join(tmpdir(), "turnloop-host-"));
  let world: (said: Said) => string | Promise<string> = () => "Hello.";
  const outside = createServer(async (request, response) => {
    const path = request.url!.slice(1) as Said["path"];
    response.end(await world({ path, ...(JSON.parse(await text(request)) as object) }));
  });
  await new Promise<void>((resolve) => outside.listen(0, "127.0.0.1", resolve));

  process.env["WRANGLER_SEND_METRICS"] = "false";
  const miniflare = new Miniflare({
    port: 0,
    cf: false,
    resourcePersistencePath: folder,
    workers: [
      {
        config: {
          name: "agents",
          compatibilityDate: "2026-10-01",
          compatibilityFlags: ["unsafe_module"],
          manifest: {
            mainModule: "main.js",
            modules: {
              "main.js": { type: "esm", contents: MAIN },
              "worker.js": {
                type: "esm",
                contents: await programOf(join(import.meta.dirname, "host-worker.ts")),
              },
            },
          },
          env: {
            AGENTS: { type: "durable-object", worker: "agents", exportName: "Agents" },
            OWN: { type: "durable-object", worker: "agents", exportName: "Own" },
            OUTSIDE: { type: "text", value: `http://127.0.0.1:${(outside.address() as AddressInfo).port}` },
          },
          exports: {
            Agents: { type: "durable-object", storage: "sqlite" },
            Own: { type: "durable-object", storage: "sqlite" },
          },
        },
      },
    ],
  });
  const address = await miniflare.ready;

  return {
    address,
    async ask(verb, object, ...args) {
      const url = new URL(`/${verb}?${new URLSearchParams({ object }).toString()}`, address);
      const response = await fetch(url, { method: "POST", body: JSON.stringify(args) });
      const answer = await response.text();
      if (!response.ok) throw new Error(answer);
      return JSON.parse(answer) as unknown;
    },
    play: (played) => void (world = played),
    async close() {
      await miniflare.dispose();
      outside.closeAllConnections();
      outside.close();
      rmSync(folder, { recursive: true });
    },
  };
}
