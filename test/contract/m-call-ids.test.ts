/** D8: the names that the loop gives to tool calls. */
import { createTranscript, type ContentBlock, type Message, type ModelChunk, type SessionView } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { anywhere, local } from "../support/fixture.ts";
import { dataOf, scene, tool } from "../support/scene.ts";
import { eventOf } from "../support/wait.ts";

type Call = Extract<ContentBlock, { type: "tool-call" }>;
const calls = ({ content }: Pick<Message, "content">): Call[] => content.filter((block) => block.type === "tool-call");
const callsOf = (session: SessionView): Call[] => dataOf(session, "assistant/message").flatMap(calls);
/** The numbers in an id: turn, step, attempt, index. */
const placeIn = ({ callId }: { callId: string }): number[] => callId.match(/\d+/gu)!.map(Number);
const look = { name: "look", args: {} };

anywhere("D8 #54 a call is named after its place: turn, step, attempt and index", async (open) => {
  const model = scriptedModel([
    {
      text: "let me",
      toolCalls: [
        { ...look, id: "z" },
        { ...look, id: "z" },
      ],
    },
    { toolCalls: [{ ...look, id: "z" }] },
    "done",
    { toolCalls: [look] },
    "done",
  ]);
  const agent = await open({ model, tools: [tool("look")] });
  agent.send("go");
  await eventOf(agent.session, "turn/end");
  agent.send("again");
  await eventOf(agent.session, "turn/end", ({ data }) => data.turn === 2);
  expect(callsOf(agent.session).map(placeIn)).toEqual([
    [1, 1, 1, 1],
    [1, 1, 1, 2],
    [1, 2, 1, 0],
    [2, 1, 1, 0],
  ]);
});

anywhere(
  "D8 one id goes through the call, its start and its result; the provider's own is kept beside it",
  async (open) => {
    const model = scriptedModel([{ toolCalls: [{ ...look, id: "toolu_7" }, look] }, "done"]);
    const agent = await open({ model, tools: [tool("look")] });
    agent.send("go");
    await eventOf(agent.session, "turn/end");
    const [first, second] = callsOf(agent.session) as [Call, Call];
    const { session } = agent;
    expect(first.meta).toEqual({ providerCallId: "toolu_7" });
    expect(second).not.toHaveProperty("meta");
    const ids = [first.callId, second.callId];
    for (const type of ["tool/call", "tool/start", "tool/result"] as const) {
      expect(
        dataOf(session, type).map(({ callId }) => callId),
        type,
      ).toEqual(ids);
    }
    expect(dataOf(session, "tool/call").map(({ providerCallId }) => providerCallId)).toEqual(["toolu_7", undefined]);
    const asked = model.requests[1]!.messages;
    expect(calls(asked[1]!).map(({ callId }) => callId)).toEqual(ids);
    expect(asked.slice(2).map(({ content: [block] }) => (block as { callId: string }).callId)).toEqual(ids);
  },
);

local("D8 the attempt is part of the name, so no two attempts share one", async () => {
  const { hooks, session, say } = await scene(
    [{ toolCalls: [look], error: { message: "no" } }, { toolCalls: [look] }, "done"],
    { tools: [tool("look")] },
  );
  hooks.on("agent/request-error", () => ({ kind: "retry" }));
  await say("go");
  expect(callsOf(session).map(placeIn)).toEqual([[1, 1, 2, 0]]);
});

local("D8 the name is known while the call is still being written", async () => {
  const { agent, session, say } = await scene([{ text: "so", toolCalls: [look] }, "done"], { tools: [tool("look")] });
  const transcript = createTranscript(agent);
  const writing = new Set<string>();
  session.subscribe(() => {
    const parts = transcript.getSnapshot().messages.flatMap((message) => message.parts);
    for (const part of parts) if (part.type === "tool" && part.state === "writing") writing.add(part.callId);
  });
  await say("go");
  expect([...writing]).toEqual(callsOf(session).map(({ callId }) => callId));
});

local("D8 a call that step-result adds takes the next free index, whatever id it brings", async () => {
  const { hooks, session, say } = await scene([{ text: "so", toolCalls: [look] }, "done"], { tools: [tool("look")] });
  const mine = (callId: string): Call => ({ type: "tool-call", callId, name: "look", arguments: "{}" });
  hooks.on("agent/step-result", ({ step, message }) =>
    step === 1
      ? {
          ...message,
          content: [mine("first"), ...message.content, mine(calls(message)[0]!.callId), mine("call_1_1_1_4")],
        }
      : message,
  );
  await say("go");
  const ids = callsOf(session).map(placeIn);
  expect(ids).toEqual([
    [1, 1, 1, 2],
    [1, 1, 1, 1],
    [1, 1, 1, 3],
    [1, 1, 1, 4],
  ]);
  expect(dataOf(session, "tool/result").map(placeIn)).toEqual(ids);
});

local("D8 free means not taken by any block: behind a text the first added call is the second", async () => {
  const { hooks, session, say } = await scene(["so", "done"], { tools: [tool("look")] });
  hooks.on("agent/step-result", ({ step, message }) =>
    step === 1
      ? {
          ...message,
          content: [...message.content, { type: "tool-call", callId: "", name: "look", arguments: "{}" }],
        }
      : message,
  );
  await say("go");
  expect(callsOf(session).map(placeIn)).toEqual([[1, 1, 1, 1]]);
});

local("D8 a call that step-result rewrites keeps its name", async () => {
  const { hooks, session, say } = await scene([{ toolCalls: [{ ...look, id: "p" }] }, "done"], {
    tools: [tool("look", ({ at }) => `saw ${at}`)],
  });
  hooks.on("agent/step-result", ({ message }) => ({
    ...message,
    content: message.content.map((block) =>
      block.type === "tool-call" ? { ...block, arguments: '{"at":"home"}' } : block,
    ),
  }));
  await say("go");
  expect(callsOf(session).map(placeIn)).toEqual([[1, 1, 1, 0]]);
  expect(dataOf(session, "tool/call")).toMatchObject([{ arguments: '{"at":"home"}', providerCallId: "p" }]);
});

// #54 "the loop's own id is authoritative in tool/result even if a hook returns another": no hook answers with an id.
local("#54 what a hook around the tool answers can name no other call", async () => {
  const { hooks, session, say } = await scene([{ toolCalls: [look] }, "done"], { tools: [tool("look")] });
  hooks.on("tools/execute", async (_, next) => ({ ...(await next()), callId: "mine" }) as never);
  await say("go");
  expect(dataOf(session, "tool/result").map(placeIn)).toEqual([[1, 1, 1, 0]]);
});

local("D8 ids stay unique through any provider's habits", async () => {
  const habits: ModelChunk[][] = [
    [{ type: "delta", index: 3, text: "{}", id: "same", name: "look" }],
    [{ type: "block-end", index: 0, block: { type: "tool-call", callId: "same", name: "look", arguments: "{}" } }],
    [{ type: "block-start", index: 0, block: { type: "tool-call", id: "", name: "look" } }],
  ];
  const stop: ModelChunk = { type: "finish", reason: { kind: "tool-calls" } };
  const { session, say } = await scene([...habits.map((chunks) => ({ chunks: [...chunks, stop] })), "done"], {
    tools: [tool("look")],
  });
  expect(await say("go")).toEqual({ kind: "completed" });
  const ids = callsOf(session).map(({ callId }) => callId);
  expect(new Set(ids).size).toBe(3);
});
