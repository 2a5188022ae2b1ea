/** workerd in a process of its own, on databases in a folder. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { programOf } from "../deaths/program.ts";

export interface Workerd {
  /** The answer of an object to a verb; rejects with what it threw, and when it dies meanwhile. `given` is sent as JSON. */
  ask(object: string, verb: string, query?: Readonly<Record<string, string>>, given?: unknown): Promise<unknown>;
  /** Ends every object, not the process. */
  abortObjects(): Promise<void>;
  /** SIGKILL, of it and of all that it has started. */
  kill(): Promise<void>;
}

export interface Machine {
  /** Starts it on what is left of the last time. */
  start(): Promise<Workerd>;
  /** After the last process was killed. */
  destroy(): void;
}

export async function createMachine(): Promise<Machine> {
  const folder = mkdtempSync(join(tmpdir(), "turnloop-workerd-"));
  const module = join(folder, "worker.js");
  writeFileSync(module, await programOf(join(import.meta.dirname, "worker.ts")));
  return {
    start: () => start(module, join(folder, "databases")),
    destroy: () => rmSync(folder, { recursive: true }),
  };
}

async function start(module: string, databases: string): Promise<Workerd> {
  // A group of its own, so that workerd dies with the program that has started it.
  const child = spawn(process.execPath, [join(import.meta.dirname, "host.ts"), module, databases], {
    detached: true,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const gone = new Promise<void>((resolve) => {
    child.once("close", () => resolve());
  });
  const [address] = await Promise.race([
    new Promise<[string]>((resolve) => {
      createInterface(child.stdout).once("line", (line) => resolve([line]));
    }),
    gone.then((): [] => []),
  ]);
  if (address === undefined) throw new Error("workerd did not start");

  async function get(path: string, init?: RequestInit): Promise<unknown> {
    const response = await fetch(new URL(path, address), init);
    const text = await response.text();
    if (!response.ok) throw new Error(text);
    return JSON.parse(text) as unknown;
  }

  return {
    ask: (object, verb, query = {}, given) =>
      get(`/${verb}?${new URLSearchParams({ object, ...query }).toString()}`, {
        method: "POST",
        body: JSON.stringify(given ?? null),
      }),
    abortObjects: async () => void (await get("/abort")),
    async kill() {
      process.kill(-child.pid!, "SIGKILL");
      await gone;
    },
  };
}
