/** A Node host that is killed in mid stream, again and again, and the handles of its clients, which go on. */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Agent } from "turnloop";
import { nodeSqliteStorage } from "turnloop/node-sqlite";
import { connectAgent, sse, webSocket, type Connection } from "turnloop/transport";
import { afterAll, expect, onTestFinished, test } from "vitest";

const program = join(import.meta.dirname, "node-process.ts");
const folder = mkdtempSync(join(tmpdir(), "turnloop-node-death-"));
afterAll(() => rmSync(folder, { recursive: true }));

interface Life {
  readonly port: number;
  /** Resolves when the process is no more. */
  kill(): Promise<void>;
}

async function start(file: string, port = 0): Promise<Life> {
  const child: ChildProcess = spawn(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", program, file, `${port}`],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    await closed;
  };
  onTestFinished(kill);
  const line = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout!).once("line", resolve);
    child.once("exit", (code) => reject(new Error(`the host ended with ${code}`)));
  });
  return { port: Number(line), kill };
}

/** When so many more pieces of an answer have come. */
function chunks(agent: Agent, count: number): Promise<void> {
  let left = count;
  return new Promise((resolve) => {
    const off = agent.on("assistant/chunk", () => {
      left -= 1;
      if (left > 0) return;
      off();
      resolve();
    });
  });
}

const WIRES: readonly [string, (port: number) => () => Promise<Connection>][] = [
  ["server-sent events", (port) => sse(`http://127.0.0.1:${port}/agents/s`)],
  ["WebSockets", (port) => webSocket(`ws://127.0.0.1:${port}/agents/s`)],
];

test.for(WIRES)(
  "over %s nothing is lost and nothing comes twice, though the host is killed in mid stream",
  { timeout: 60_000 },
  async ([name, wire]) => {
    const file = join(folder, `${name}.db`);
    let life = await start(file);
    const { port } = life;
    const { agent, dispose } = await connectAgent({ connect: wire(port), session: "s" });
    const told: number[] = [];
    agent.session.subscribe((event) => void told.push(event.seq));
    const sent: string[] = [];
    const say = (): void => {
      sent.push(`message ${sent.length}`);
      agent.send(sent.at(-1)!);
    };
    for (const count of [1, 40, 120]) {
      const reached = chunks(agent, count);
      say();
      say();
      await reached;
      await life.kill();
      // Said to nobody: it waits.
      say();
      life = await start(file, port);
    }
    say();
    await agent.flush();
    await agent.whenIdle();

    const { events } = agent.session;
    expect(told).toEqual(events.map((_, seq) => seq));
    const texts = events.flatMap(({ type, data }) => (type === "user/message" ? [JSON.stringify(data)] : []));
    expect(texts.map((text) => /message \d+/.exec(text)?.[0])).toEqual(sent);
    expect(new Set(events.flatMap(({ type, data }) => (type === "turn/end" ? [data.reason.kind] : [])))).toContain(
      "interrupted",
    );
    await dispose();
    await life.kill();
    const stored = [];
    for await (const batch of (await nodeSqliteStorage(file).load("s"))!.batches) stored.push(...batch);
    expect(stored).toEqual(events);
  },
);
