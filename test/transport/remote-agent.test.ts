/** A remote handle, over a real message port: the ordinary interface. */
import { run } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect, test } from "vitest";
import { serve } from "./support.ts";

test("a remote handle sends, and follows the turn to its end", async () => {
  const { harness, connect } = serve({ model: scriptedModel(["hello there"]) });
  const { agent, dispose } = await connect();
  const { text, reason } = await run(agent, "hi").result;
  expect({ text, reason }).toEqual({ text: "hello there", reason: { kind: "completed" } });
  expect(agent.session.events).toEqual(harness.agents.get("s")!.session.events);
  await agent.whenIdle();
  expect(agent.getSnapshot()).toMatchObject({ status: "idle", durable: "stored", connection: "open", queue: [] });
  await dispose();
});
