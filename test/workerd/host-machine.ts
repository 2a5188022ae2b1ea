/** A Worker and its agents in workerd, and the model that they ask, which is played by the test. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { text } from "node:stream/consumers";
import { Miniflare, type MiniflareOptions } from "miniflare";
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
  /** Ends all objects and their connections, and goes on with the next version of the Worker. */
  redeploy(): Promise<void>;
  /** How often anything was written into the database of the object, alarms included, as another reader sees it. */
  commits(object: string): Promise<number>;
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

  const program = await programOf(join(import.meta.dirname, "host-worker.ts"));
  const outsideAddress = `http://127.0.0.1:${(outside.address() as AddressInfo).port}`;
  const deployed = (version: number): MiniflareOptions => ({
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
              "main.js": { type: "esm", contents: `${MAIN} // version ${version}` },
              "worker.js": { type: "esm", contents: program },
            },
          },
          env: {
            AGENTS: { type: "durable-object", worker: "agents", exportName: "Agents" },
            OWN: { type: "durable-object", worker: "agents", exportName: "Own" },
            OUTSIDE: { type: "text", value: outsideAddress },
          },
          exports: {
            Agents: { type: "durable-object", storage: "sqlite" },
            Own: { type: "durable-object", storage: "sqlite" },
          },
        },
      },
    ],
  });
  process.env["WRANGLER_SEND_METRICS"] = "false";
  const miniflare = new Miniflare(deployed(1));
  let address = await miniflare.ready;
  let version = 1;
  const databases = new Map<string, DatabaseSync>();

  /** One connection for each, as the number counts what others commit while it is open. */
  function databaseOf(id: string): DatabaseSync {
    let database = databases.get(id);
    if (!database) {
      const file = readdirSync(folder, { recursive: true, encoding: "utf8" }).find((name) =>
        name.endsWith(`${id}.sqlite`),
      );
      database = new DatabaseSync(join(folder, file!), { readOnly: true });
      databases.set(id, database);
    }
    return database;
  }

  async function ask(verb: string, object: string, ...args: readonly unknown[]): Promise<unknown> {
    const url = new URL(`/${verb}?${new URLSearchParams({ object }).toString()}`, address);
    const response = await fetch(url, { method: "POST", body: JSON.stringify(args) });
    const answer = await response.text();
    if (!response.ok) throw new Error(answer);
    return JSON.parse(answer) as unknown;
  }

  return {
    get address() {
      return address;
    },
    ask,
    async redeploy() {
      await miniflare.setOptions(deployed((version += 1)));
      address = await miniflare.ready;
    },
    async commits(object) {
      const { data_version: commits } = databaseOf((await ask("id", object)) as string)
        .prepare("PRAGMA data_version")
        .get()!;
      return commits as number;
    },
    play: (played) => void (world = played),
    async close() {
      for (const database of databases.values()) database.close();
      await miniflare.dispose();
      outside.closeAllConnections();
      outside.close();
      rmSync(folder, { recursive: true });
    },
  };
}
