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

test.each([
  ["", ""],
  ["long", "x".repeat(5000)],
  ["__proto__", "__proto__"],
  ["a number", 7],
])("an id that is nothing's is answered as it is here, and the handle lives: %s", async (_, id) => {
  const { harness, connect } = serve({ model: scriptedModel(["hello there"]) });
  const { agent, dispose } = await connect();
  const { agent: local } = await harness.agents.open({ id: "s" });
  const given = id as string;
  for (const one of [local, agent]) {
    expect(await one.withdraw(given)).toBe(false);
    await expect(one.respond(given, 1)).rejects.toMatchObject({ code: "INTERACTION_NOT_FOUND" });
    await expect(one.claim(given)).rejects.toMatchObject({ code: "INTERACTION_NOT_FOUND" });
  }
  expect(agent.send("hi", { id: given })).toBe(String(id));
  await agent.flush();
  await agent.whenIdle();
  expect(agent.getSnapshot()).toMatchObject({ connection: "open", queue: [] });
  expect(agent.session.events).toEqual(local.session.events);
  await dispose();
});
