/** Random schedules against a Node host that is killed: over WebSockets and server-sent events, on one file. */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { SessionEvent } from "turnloop";
import { nodeSqliteStorage } from "turnloop/node-sqlite";
import { sse, webSocket } from "turnloop/transport";
import { expect, test } from "vitest";
import type { Effect } from "./agents.ts";
import { countOf, runSchedules, type Host } from "./schedule.ts";

const program = join(import.meta.dirname, "node-host.ts");

interface Life {
  readonly port: number;
  kill(): Promise<void>;
}

async function start(file: string, port: number, effects: Effect[]): Promise<Life> {
  const child: ChildProcess = spawn(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", program, file, `${port}`],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const listening = Promise.withResolvers<number>();
  createInterface(child.stdout!).on("line", (line) => {
    const said = JSON.parse(line) as number | Effect;
    if (typeof said === "number") listening.resolve(said);
    else effects.push(said);
  });
  child.once("exit", (code) => listening.reject(new Error(`the host ended with ${code}`)));
  return {
    port: await listening.promise,
    async kill() {
      child.kill("SIGKILL");
      await closed;
    },
  };
}

async function hostIn(folder: string): Promise<Host & { close(): Promise<void> }> {
  const file = join(folder, "sessions.db");
  const effects: Effect[] = [];
  let life = await start(file, 0, effects);
  const { port } = life;
  return {
    effects,
    dial: (session, wire) =>
      wire % 2 === 0
        ? webSocket(`ws://127.0.0.1:${port}/agents/${session}`)()
        : sse(`http://127.0.0.1:${port}/agents/${session}`)(),
    async restart() {
      await life.kill();
      life = await start(file, port, effects);
    },
    async read(session) {
      const events: SessionEvent[] = [];
      for await (const batch of (await nodeSqliteStorage(file).load(session))?.batches ?? []) events.push(...batch);
      return events;
    },
    close: () => life.kill(),
  };
}

const count = countOf(80);

test(
  "nothing is lost, doubled or out of order, whatever happens to the lines and to the host",
  { timeout: 120_000 + count * 5000 },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "turnloop-schedules-"));
    const host = await hostIn(folder);
    try {
      await runSchedules("a Node host", host, count);
      expect(host.effects.length).toBeGreaterThan(0);
    } finally {
      await host.close();
      rmSync(folder, { recursive: true });
    }
  },
);
