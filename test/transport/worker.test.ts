/** An agent in a thread of Node, driven from outside it. */
import { Worker } from "node:worker_threads";
import { run } from "turnloop";
import { connectAgent, messagePort } from "turnloop/transport";
import { expect, onTestFinished, test } from "vitest";

test("a handle drives an agent that runs in a worker thread, beside other messages", async () => {
  const worker = new Worker(new URL("./worker-host.ts", import.meta.url));
  onTestFinished(async () => void (await worker.terminate()));
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  worker.postMessage("not ours");
  const { agent, dispose } = await connectAgent({ connect: () => messagePort(worker), session: "s" });
  onTestFinished(dispose);
  expect((await run(agent, "hello").result).text).toContain("hello");
  expect(agent.session.events.at(-1)).toMatchObject({ type: "turn/end", data: { reason: { kind: "completed" } } });
}, 60_000);

test("messagePort takes nothing that cannot post messages", () => {
  expect(() => messagePort({})).toThrow(expect.objectContaining({ code: "INVALID_OPTIONS" }));
});
