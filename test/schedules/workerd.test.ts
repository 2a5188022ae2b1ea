/** Random schedules against agents in Durable Objects, in a workerd that is killed. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { connectAgent, webSocket } from "turnloop/transport";
import { expect, test } from "vitest";
import { openEars } from "../deaths/ears.ts";
import { programOf } from "../deaths/program.ts";
import type { Effect } from "./agents.ts";
import { countOf, runSchedules, type Host } from "./schedule.ts";

interface Life {
  readonly address: string;
  kill(): Promise<void>;
}

async function start(folder: string, outside: string): Promise<Life> {
  const program = join(import.meta.dirname, "../workerd/host.ts");
  const args = [program, join(folder, "worker.js"), join(folder, "databases"), "Agents", outside];
  // A group of its own, so that workerd dies with the program that has started it.
  const child = spawn(process.execPath, args, { detached: true, stdio: ["ignore", "pipe", "ignore"] });
  const gone = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const address = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).once("line", resolve);
    child.once("exit", (code) => reject(new Error(`workerd ended with ${code}`)));
  });
  return {
    address,
    async kill() {
      process.kill(-child.pid!, "SIGKILL");
      await gone;
    },
  };
}

async function hostIn(folder: string): Promise<Host & { close(): Promise<void> }> {
  writeFileSync(join(folder, "worker.js"), await programOf(join(import.meta.dirname, "worker.ts")));
  const effects: Effect[] = [];
  const ears = await openEars<Effect>();
  const outside = ears.listen("effects", (effect) => effects.push(effect));
  let life: Life | undefined = await start(folder, outside);
  const dial: Host["dial"] = (session) => {
    if (!life) throw new Error("there is no host at the moment");
    const url = new URL(`/agents/${session}`, life.address);
    url.protocol = "ws:";
    return webSocket(url.href)();
  };
  return {
    effects,
    dial,
    async restart() {
      const dying = life!;
      life = undefined;
      await dying.kill();
      life = await start(folder, outside);
    },
    async read(session) {
      const { agent, dispose } = await connectAgent({ connect: () => dial(session, 0), session });
      const { events } = agent.session;
      await dispose();
      return events;
    },
    async close() {
      await life?.kill();
      ears.close();
    },
  };
}

const count = countOf(20);

test(
  "nothing is lost, doubled or out of order, whatever happens to the lines and to workerd",
  { timeout: 120_000 + count * 5000 },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "turnloop-schedules-"));
    const host = await hostIn(folder);
    try {
      await runSchedules("Durable Objects", host, count);
      expect(host.effects.length).toBeGreaterThan(0);
    } finally {
      await host.close();
      rmSync(folder, { recursive: true });
    }
  },
);
