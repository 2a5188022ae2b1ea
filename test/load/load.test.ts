/**
 * Many sessions that stream at once from one Node host, to a client each: a few always, 500 with `--mode soak`. How
 * large the host grows, and how late it gets, is printed and not asserted.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { AgentHandle } from "turnloop";
import { connectAgent, webSocket } from "turnloop/transport";
import { expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";

const soaks = import.meta.env.MODE === "soak";
const SESSIONS = soaks ? 500 : 50;
const CHUNKS = soaks ? 250 : 50;
/** Fifty a second. */
const EVERY_MS = 20;

interface Load {
  readonly port: number;
  /** Of the time since the last question. */
  ask(): Promise<unknown>;
}

async function startHost(): Promise<Load> {
  const child = spawn(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", join(import.meta.dirname, "host.ts"), `${CHUNKS}`, `${EVERY_MS}`],
    { stdio: ["pipe", "pipe", "inherit"] },
  );
  onTestFinished(() => void child.kill("SIGKILL"));
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const read = async (): Promise<unknown> => JSON.parse((await lines.next()).value as string) as unknown;
  const port = (await read()) as number;
  return {
    port,
    ask() {
      child.stdin.write("\n");
      return read();
    },
  };
}

/** A client that says hello and then reads nothing until it is told to; it is there all the same, and says so. */
async function slowClient(port: number, session: string): Promise<{ readonly texts: string[]; read(): void }> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/agents/${session}`);
  onTestFinished(() => socket.terminate());
  const texts: string[] = [];
  socket.on("message", (data: Buffer) => texts.push(data.toString()));
  await new Promise((resolve) => socket.once("open", resolve));
  socket.send(JSON.stringify({ type: "hello", version: 1, session, client: "slow", history: "all" }));
  await new Promise((resolve) => socket.once("message", resolve));
  socket.pause();
  const alive = setInterval(() => socket.send('{"type":"ping"}'), 1000);
  onTestFinished(() => clearInterval(alive));
  return { texts, read: () => socket.resume() };
}

function textOf({ agent }: AgentHandle): string {
  const last = agent.session.deriveMessages().at(-1);
  return last?.content.map((block) => (block.type === "text" ? block.text : "")).join("") ?? "";
}

test(
  `${SESSIONS} sessions stream at once, and a client that reads nothing holds up nobody`,
  { timeout: 240_000 },
  async () => {
    const host = await startHost();
    const handles = await Promise.all(
      Array.from({ length: SESSIONS }, (_, i) =>
        connectAgent({ connect: webSocket(`ws://127.0.0.1:${host.port}/agents/s${i}`), session: `s${i}` }),
      ),
    );
    console.log(`${SESSIONS} sessions at rest:`, await host.ask());
    const slow = await slowClient(host.port, "s0");
    for (const { agent } of handles) agent.send("Talk.");
    await Promise.all(handles.map(({ agent }) => agent.flush()));
    await Promise.all(handles.map(({ agent }) => agent.whenIdle()));
    console.log(`${SESSIONS} sessions, ${CHUNKS} chunks each, one every ${EVERY_MS} ms:`, await host.ask());

    const said = Array.from({ length: CHUNKS }, (_, chunk) => `${chunk} `).join("");
    for (const handle of handles) {
      expect(textOf(handle)).toBe(said);
      expect(handle.agent.session.events.map(({ seq }) => seq)).toEqual(handle.agent.session.events.map((_, i) => i));
    }
    const read = slow.texts.length;
    slow.read();
    await expect.poll(() => slow.texts.some((frame) => frame.includes('"turn/end"')), { timeout: 60_000 }).toBe(true);
    expect(slow.texts.length).toBeGreaterThan(read);
    await Promise.all(handles.map((handle) => handle.dispose()));
  },
);
