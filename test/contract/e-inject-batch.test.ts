/** E, 65, with D13 and D18: what is injected while tools run stands behind all of their results. */
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, staged, tool } from "../support/calls.ts";
import { anywhere, harnessWith, local } from "../support/fixture.ts";
import { heldTool, storedUpTo, textsOf } from "../support/held.ts";
import { dataOf, linesOf } from "../support/scene.ts";
import { endOf, eventOf, typesOf } from "../support/wait.ts";

const NOTE = { source: { kind: "note" } };
const note = (text: string): string => `user: <note>\n${text}\n</note>`;

anywhere("#65 D13 an inject during a tool batch waits in the queue, and lands behind all results", async (open) => {
  const held = heldTool();
  const model = scriptedModel([calls("look", "held", "look"), "done"]);
  const agent = await open({ model, tools: [held.tool, tool("look")] });
  agent.send("go");
  const { callId } = await held.started;
  await eventOf(agent.session, "tool/start", ({ data }) => data.callId === callId);
  agent.inject("it rains", { ...NOTE, id: "m2" });
  agent.inject("it pours", { ...NOTE, id: "m3" });
  expect(agent.queue.map(({ id, as }) => [id, as])).toEqual([
    ["m2", "inject"],
    ["m3", "inject"],
  ]);
  await agent.flush();
  held.answer("ok");
  await agent.whenIdle();
  expect(typesOf(agent.session).slice(5, -3)).toEqual([
    "assistant/message",
    "tool/call",
    "tool/start",
    "tool/result",
    "tool/call",
    "tool/start",
    "inbox/queued",
    "inbox/queued",
    "tool/result",
    "tool/call",
    "tool/start",
    "tool/result",
    "context/message",
    "context/message",
    "step/end",
    "step/start",
  ]);
  expect(linesOf(model.requests[1]!.messages)).toEqual([
    "user: go",
    "assistant: ",
    "tool: done",
    "tool: ok",
    "tool: done",
    note("it rains"),
    note("it pours"),
  ]);
  expect(agent.queue).toEqual([]);
});

local("#65 an inject from inside the body, or from any hook of the batch, lands behind the results too", async () => {
  const model = scriptedModel([calls("look"), "done"]);
  const look = tool("look", (_, { agent }) => void agent.inject("body", NOTE));
  const harness = harnessWith({ model, tools: [look] });
  const { agent } = await harness.agents.open({ id: "s" });
  harness.hooks.on("tools/pre-execute", (_, next) => {
    agent.inject("pre", NOTE);
    return next();
  });
  harness.hooks.on("tools/execute", async (_, next) => {
    const outcome = await next();
    agent.inject("around", NOTE);
    return outcome;
  });
  harness.hooks.on("tools/post-execute", (_, next) => {
    agent.inject("post", NOTE);
    return next();
  });
  for (const type of ["assistant/message", "tool/call", "tool/start"] as const) {
    const off = agent.on(type, () => {
      off();
      agent.inject(type, NOTE);
    });
  }
  agent.send("go");
  await agent.whenIdle();
  expect(textsOf(agent.session, "context/message")).toEqual([
    "assistant/message",
    "tool/call",
    "pre",
    "tool/start",
    "body",
    "around",
    "post",
  ]);
  expect(linesOf(model.requests[1]!.messages).slice(0, 4)).toEqual([
    "user: go",
    "assistant: ",
    "tool: done",
    note("assistant/message"),
  ]);
});

local("#65 D13 the contexts of the calls come first, in call order, then what was injected, as it came", async () => {
  const model = scriptedModel([calls("one", "two"), "done"]);
  const harness = harnessWith({ model, tools: [tool("one"), tool("two")] });
  const { agent } = await harness.agents.open({ id: "s" });
  harness.hooks.on("tools/post-execute", async ({ execution: { name } }) => {
    agent.inject(`injected in ${name}`, NOTE);
    return { kind: "accept", additionalContext: { content: `context of ${name}`, source: { kind: "hook" } } };
  });
  agent.send("go");
  await agent.whenIdle();
  expect(textsOf(agent.session, "context/message")).toEqual([
    "context of one",
    "context of two",
    "injected in one",
    "injected in two",
  ]);
});

for (const [where, hear] of [
  ["a listener of the last tool/result", "tool/result"],
  ["a listener of tools/result", "tools/result"],
] as const) {
  local(`#65 D13 an inject from ${where} stands behind what waits already`, async () => {
    const held = heldTool();
    const harness = harnessWith({ model: scriptedModel([calls("held"), "done"]), tools: [held.tool] });
    const { agent } = await harness.agents.open({ id: "s" });
    harness.hooks.on("tools/post-execute", async () => ({
      kind: "accept",
      additionalContext: { content: "context of the call", source: { kind: "hook" } },
    }));
    const inject = (): void => void agent.inject("second", NOTE);
    if (hear === "tool/result") agent.on(hear, inject);
    else harness.hooks.on(hear, inject);
    agent.send("go");
    await held.started;
    agent.inject("first", NOTE);
    held.answer("ok");
    await agent.whenIdle();
    expect(textsOf(agent.session, "context/message")).toEqual(["context of the call", "first", "second"]);
  });
}

// In the listener's own frame, which only the loop itself can show.
local("#65 an inject from a listener of the contexts that land behind a batch lands there too", async () => {
  const held = heldTool();
  const model = scriptedModel([calls("held"), "done"]);
  const { agent } = await staged({ model, tools: [held.tool] });
  agent.send("go");
  await held.started;
  agent.inject("one", NOTE);
  agent.inject("two", NOTE);
  const off = agent.on("context/message", () => {
    off();
    agent.inject("three", NOTE);
  });
  held.answer("ok");
  await agent.whenIdle();
  expect(linesOf(model.requests[1]!.messages).slice(3)).toEqual([note("one"), note("two"), note("three")]);
  expect(agent.queue).toEqual([]);
});

anywhere("#65 D13 D18 a cancel in the middle of a batch keeps what was injected, behind every result", async (open) => {
  const held = heldTool();
  const agent = await open({ model: scriptedModel([calls("held", "look")]), tools: [held.tool, tool("look")] });
  agent.send("go");
  await held.started;
  agent.inject("it rains", { ...NOTE, id: "m2" });
  agent.send("dropped", { id: "m3" });
  agent.cancel("enough");
  await agent.whenIdle();
  expect(dataOf(agent.session, "agent/cancelled").map(({ dropped }) => dropped)).toEqual([["m3"]]);
  expect(typesOf(agent.session).slice(-6)).toEqual([
    "tool/result",
    "tool/call",
    "tool/result",
    "context/message",
    "step/end",
    "turn/end",
  ]);
  expect(linesOf(agent.session.deriveMessages()).at(-1)).toBe(note("it rains"));
  expect(endOf(agent.session)).toEqual({ kind: "aborted", reason: "enough" });
});

local("#65 D13 what was injected into a batch whose host died is a turn of its own at the next opening", async () => {
  const held = heldTool();
  const { agent } = await harnessWith({
    model: scriptedModel([calls("held")]),
    tools: [held.tool],
  }).agents.open({ id: "s" });
  agent.send("go");
  await held.started;
  agent.inject("it rains", { ...NOTE, id: "m2" });
  await eventOf(agent.session, "inbox/queued", ({ data }) => data.id === "m2");
  const storage = await storedUpTo(agent.session, agent.session.seq);
  const again = await harnessWith({ model: scriptedModel([]), storage }).agents.open({ id: "s" });
  await again.agent.whenIdle();
  expect(typesOf(again.agent.session).slice(-6)).toEqual([
    "tool/result",
    "step/end",
    "turn/end",
    "turn/start",
    "context/message",
    "turn/end",
  ]);
  expect(dataOf(again.agent.session, "turn/start").at(-1)).toMatchObject({ turn: 2, trigger: { kind: "injection" } });
  expect(again.agent.queue).toEqual([]);
});
