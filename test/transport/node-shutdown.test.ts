/** A Node host that closes in the middle of an answer. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SessionEvent } from "turnloop";
import { nodeSqliteStorage } from "turnloop/node-sqlite";
import { scriptedModel } from "turnloop/testing";
import { connectAgent, sse, webSocket } from "turnloop/transport";
import { expect, onTestFinished, test, vi } from "vitest";
import { open } from "./sse-parts.ts";

test.for([
  ["server-sent events", (url: string) => sse(url)],
  ["WebSockets", (url: string) => webSocket(url.replace("http", "ws"))],
] as const)("over %s a host that closes ends the open turn, and stores all that was said", async ([, wire]) => {
  const folder = mkdtempSync(join(tmpdir(), "turnloop-shutdown-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "sessions.db");
  const storage = nodeSqliteStorage(file);
  const { host, harness, url } = await open({ model: scriptedModel([{ text: "one two", hang: "polite" }]), storage });
  const { agent, dispose } = await connectAgent({ connect: wire(url), session: "s" });
  const chunk = new Promise<void>((resolve) => void agent.on("assistant/chunk", () => resolve()));
  agent.send("go");
  await chunk;
  await host.close();
  expect(harness.agents.get("s")).toBeUndefined();

  const stored: SessionEvent[] = [];
  for await (const batch of (await nodeSqliteStorage(file).load("s"))!.batches) stored.push(...batch);
  expect(stored.slice(0, agent.session.seq)).toEqual(agent.session.events);
  expect(stored.findLast(({ type }) => type === "turn/end")?.data).toMatchObject({ turn: 1 });
  await vi.waitUntil(() => agent.getSnapshot().connection === "connecting");
  await dispose();
});
