/** O: what stands behind a batch of calls, and what becomes of it when it is stopped. */
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, deafBody, resultsOf, staged, talk, tool } from "../support/calls.ts";
import { anywhere, local } from "../support/fixture.ts";
import { dataOf, linesOf } from "../support/scene.ts";
import { deferred, endOf, textOf, typesOf } from "../support/wait.ts";

/** The types from the answer with the calls on, without chunks. */
const batchOf = (session: Parameters<typeof typesOf>[0]): string[] =>
  typesOf(session).slice(typesOf(session).indexOf("assistant/message") + 1);

local("#188 contexts of calls wait for all results of the step, and come in call order", async () => {
  const { agent, hooks, session, model } = await staged({
    model: scriptedModel([calls("a", "b"), "done"]),
    tools: [tool("a"), tool("b")],
  });
  hooks.on("tools/post-execute", ({ execution }) => ({
    kind: "accept",
    additionalContext: { content: `about ${execution.name}`, source: { kind: "hint" } },
  }));
  await talk(agent);
  expect(batchOf(session)).toEqual([
    "tool/call",
    "tool/start",
    "tool/result",
    "inbox/queued",
    "tool/call",
    "tool/start",
    "tool/result",
    "inbox/queued",
    "context/message",
    "context/message",
    "step/end",
    "step/start",
    "assistant/message",
    "step/end",
    "turn/end",
  ]);
  expect(linesOf(model.requests[1]!.messages)).toEqual([
    "user: go",
    "assistant: ",
    "tool: done",
    "tool: done",
    "user: <hint>\nabout a\n</hint>",
    "user: <hint>\nabout b\n</hint>",
  ]);
});

local(
  "#188 D13 the contexts of calls that settle out of order come in call order, then injects by acceptance",
  async () => {
    const second = deferred();
    const { agent, hooks, session } = await staged({
      model: scriptedModel([calls("a", "b"), "done"]),
      tools: [
        tool("a", async (_, call) => (call.agent.inject("from a"), second.promise), { parallel: true }),
        tool("b", (_, call) => void call.agent.inject("from b"), { parallel: true }),
      ],
    });
    hooks.on("tools/post-execute", ({ execution }) => ({
      kind: "accept",
      additionalContext: { content: `about ${execution.name}`, source: { kind: "hint" } },
    }));
    hooks.on("tools/result", ({ execution }) => void (execution.name === "b" && second.resolve()));
    await talk(agent);
    expect(resultsOf(session).map((one) => one.tool)).toEqual(["b", "a"]);
    expect(dataOf(session, "context/message").map(({ content }) => textOf(content))).toEqual([
      "about a",
      "about b",
      "from a",
      "from b",
    ]);
  },
);

local("#65 D18 what is injected while a batch runs lands after all of its results", async () => {
  const { agent, session, model } = await staged({
    model: scriptedModel([calls("a", "b"), "done"]),
    tools: [tool("a", (_, call) => void call.agent.inject("by the way")), tool("b")],
  });
  await talk(agent);
  expect(batchOf(session).slice(0, 9)).toEqual([
    "tool/call",
    "tool/start",
    "inbox/queued",
    "tool/result",
    "tool/call",
    "tool/start",
    "tool/result",
    "context/message",
    "step/end",
  ]);
  expect(linesOf(model.requests[1]!.messages).at(-1)).toBe("user: <user>\nby the way\n</user>");
});

anywhere("#189 a cancel stops the batch: what has not started does not run, no step follows", async (open) => {
  const ran: string[] = [];
  const { body, running } = deafBody(() => void ran.push("a"));
  const agent = await open({
    model: scriptedModel([calls("a", "b")]),
    tools: [tool("a", body), tool("b", () => void ran.push("b"))],
  });
  agent.send("go");
  await running;
  agent.cancel("enough");
  await agent.whenIdle();
  expect(ran).toEqual(["a"]);
  expect(dataOf(agent.session, "step/start")).toHaveLength(1);
  expect(endOf(agent.session)).toEqual({ kind: "aborted", reason: "enough" });
});

local("#191 D18 contexts of results that were there before the cancel are kept, and so are injects", async () => {
  const { body, running } = deafBody((_, call) => void call.agent.inject("by the way"));
  const { agent, hooks, session } = await staged({
    model: scriptedModel([calls("a", "deaf", "late"), "next turn"]),
    tools: [tool("a"), tool("deaf", body), tool("late")],
  });
  hooks.on("tools/post-execute", () => ({
    kind: "accept",
    additionalContext: { content: "about a", source: { kind: "hint" } },
  }));
  agent.send("go");
  await running;
  agent.cancel();
  await agent.whenIdle();
  expect(batchOf(session).slice(-8)).toEqual([
    "agent/cancelled",
    "tool/result",
    "tool/call",
    "tool/result",
    "context/message",
    "context/message",
    "step/end",
    "turn/end",
  ]);
  expect(linesOf(session.deriveMessages()).slice(-2)).toEqual([
    "user: <hint>\nabout a\n</hint>",
    "user: <user>\nby the way\n</user>",
  ]);
  expect(dataOf(session, "agent/cancelled")[0]!.dropped).toEqual([]);
});

local("#193 a result does not end the turn: the model reads it first", async () => {
  const { agent, session } = await staged({ model: scriptedModel([calls("a"), "done"]), tools: [tool("a")] });
  await talk(agent);
  expect(dataOf(session, "step/start")).toHaveLength(2);
});
