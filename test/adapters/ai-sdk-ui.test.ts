/** The chunks that `useChat` reads, folded by the AI SDK's own reader. */
import { DefaultChatTransport, readUIMessageStream, type ChatTransport, type UIMessage, type UIMessageChunk } from "ai";
import {
  approvals,
  createHarness,
  defineTool,
  run,
  type Agent,
  type HarnessOptions,
  type ModelChunk,
  type ToolDefinition,
} from "turnloop";
import { agentChatTransport, eventsFromUIMessages, toUIMessageStreamResponse } from "turnloop/ai-sdk-ui";
import { scriptedModel, type ScriptedAnswer } from "turnloop/testing";
import { expect, test } from "vitest";
import { eventOf } from "../support/wait.ts";

const weather: ToolDefinition = defineTool({
  name: "weather",
  description: "The weather",
  inputSchema: { type: "object", properties: { city: { type: "string" } } },
  execute: ({ city }: { city: string }) => ({ city, sky: "clear" }),
});

async function opened(answers: readonly ScriptedAnswer[], options: HarnessOptions = {}): Promise<Agent> {
  const harness = createHarness({ model: scriptedModel(answers), ...options });
  return (await harness.agents.open({ id: "chat" })).agent;
}

const FINISH: ModelChunk = { type: "finish", reason: { kind: "stop" } };

const user = (id: string, text: string): UIMessage => ({ id, role: "user", parts: [{ type: "text", text }] });

async function chunksOf(stream: ReadableStream<UIMessageChunk> | null): Promise<UIMessageChunk[]> {
  const chunks: UIMessageChunk[] = [];
  const reader = stream!.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) chunks.push(next.value);
  return chunks;
}

/** The message that the AI SDK makes of it. */
async function messageOf(chunks: readonly UIMessageChunk[], before?: UIMessage): Promise<UIMessage> {
  const stream = new ReadableStream<UIMessageChunk>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  let message = before;
  for await (const next of readUIMessageStream({ stream, ...(before && { message: structuredClone(before) }) }))
    message = next;
  return message!;
}

const say = (
  transport: ChatTransport<UIMessage>,
  messages: UIMessage[],
  more: { messageId?: string; trigger?: "regenerate-message"; abortSignal?: AbortSignal } = {},
): Promise<ReadableStream<UIMessageChunk>> =>
  transport.sendMessages({
    chatId: "chat",
    trigger: "submit-message",
    messageId: undefined,
    abortSignal: undefined,
    messages,
    ...more,
  });

test("reasoning, text, a tool and what it answered are one message of two steps", async () => {
  const agent = await opened(
    [
      { reasoning: "Let me look", text: "Looking. ", toolCalls: [{ name: "weather", args: { city: "Rome" } }] },
      "Clear",
    ],
    { tools: [weather] },
  );
  const chunks = await chunksOf(
    await say(
      agentChatTransport(() => agent),
      [user("u1", "Rome?")],
    ),
  );
  expect(chunks.at(-1)).toEqual({ type: "finish", finishReason: "stop" });
  expect(await messageOf(chunks)).toMatchObject({
    id: "turn_1",
    parts: [
      { type: "step-start" },
      { type: "reasoning", text: "Let me look", state: "done" },
      { type: "text", text: "Looking. ", state: "done" },
      {
        type: "tool-weather",
        state: "output-available",
        input: { city: "Rome" },
        output: { city: "Rome", sky: "clear" },
      },
      { type: "step-start" },
      { type: "text", text: "Clear", state: "done" },
    ],
  });
});

test("only the new message goes to the agent, once, however often it is sent", async () => {
  const agent = await opened(["one", "two"]);
  const transport = agentChatTransport(() => agent);
  await chunksOf(await say(transport, [user("old", "not ours"), user("u1", "first")]));
  const again = await messageOf(await chunksOf(await say(transport, [user("u1", "first")])));
  expect(again.parts.at(-1)).toMatchObject({ text: "one" });
  await chunksOf(await say(transport, [user("u1", "first"), again, user("u2", "second")]));
  expect(agent.session.deriveMessages().map(({ content }) => content)).toMatchObject([
    [{ text: "first" }],
    [{ text: "one" }],
    [{ text: "second" }],
    [{ text: "two" }],
  ]);
});

const asking = { tools: [weather], plugins: [approvals({ when: () => "it costs" })] };
const call = (city: string) => ({ name: "weather", args: { city } });

/** As `addToolApprovalResponse` leaves it. */
function responded(message: UIMessage, approved: boolean): UIMessage {
  const parts = message.parts.map((part) =>
    "approval" in part && "state" in part && part.state === "approval-requested"
      ? { ...part, state: "approval-responded", approval: { ...part.approval, approved, reason: "said the user" } }
      : part,
  );
  return { ...message, parts: parts as UIMessage["parts"] };
}

test("a turn that waits for an approval ends its stream; the answer opens the next, in the same message", async () => {
  const agent = await opened([{ text: "Hm. ", toolCalls: [call("Rome")] }, "Clear"], asking);
  const transport = agentChatTransport(() => agent);
  const asked = await messageOf(await chunksOf(await say(transport, [user("u1", "Rome?")])));
  expect(asked.parts.at(-1)).toMatchObject({ state: "approval-requested", approval: { requestReason: "it costs" } });
  const answered = responded(asked, true);
  const chunks = await chunksOf(await say(transport, [user("u1", "Rome?"), answered], { messageId: asked.id }));
  const done = await messageOf(chunks, answered);
  expect(done.parts.map(({ type }) => type)).toEqual(["step-start", "text", "tool-weather", "step-start", "text"]);
  expect(done.parts[2]).toMatchObject({ state: "output-available", output: { sky: "clear" } });
  // The page would run its own tools once more.
  expect(chunks.filter(({ type }) => type === "tool-input-available")).toEqual([]);
});

test("a denied call is shown as denied, and its reason is told to the model", async () => {
  const agent = await opened([{ toolCalls: [call("Rome")] }, "As you wish"], asking);
  const transport = agentChatTransport(() => agent);
  const asked = await messageOf(await chunksOf(await say(transport, [user("u1", "Rome?")])));
  const answered = responded(asked, false);
  const done = await messageOf(await chunksOf(await say(transport, [answered], { messageId: asked.id })), answered);
  expect(done.parts[1]).toMatchObject({ state: "output-denied" });
  expect(JSON.stringify(agent.session.deriveMessages())).toContain("said the user");
});

test("a call behind the one that is asked about does not keep the page from answering", async () => {
  const agent = await opened([{ toolCalls: [call("Rome"), call("Oslo")] }, "Both"], asking);
  const transport = agentChatTransport(() => agent);
  let message = await messageOf(await chunksOf(await say(transport, [user("u1", "?")])));
  let rounds = 0;
  while (agent.interactions.length > 0) {
    rounds += 1;
    const states = message.parts.flatMap((part) => ("toolCallId" in part ? part.state : []));
    expect(["approval-requested", "output-available"]).toEqual(expect.arrayContaining(states));
    const answered = responded(message, true);
    message = await messageOf(await chunksOf(await say(transport, [answered], { messageId: message.id })), answered);
  }
  expect(rounds).toBeGreaterThan(0);
  expect(message.parts.filter((part) => part.type === "tool-weather")).toMatchObject([
    { state: "output-available", input: { city: "Rome" } },
    { state: "output-available", input: { city: "Oslo" } },
  ]);
  expect(message.parts.at(-1)).toMatchObject({ text: "Both" });
});

test("a message while an answer is waited for is refused before anything changes", async () => {
  const agent = await opened([{ toolCalls: [call("Rome")] }], asking);
  const transport = agentChatTransport(() => agent);
  await chunksOf(await say(transport, [user("u1", "Rome?")]));
  const { seq } = agent.session;
  await expect(say(transport, [user("u2", "well?")])).rejects.toMatchObject({ code: "TURN_WAITING" });
  expect(agent.session.seq).toBe(seq);
});

test("a failed attempt leaves nothing behind in the message", async () => {
  const agent = await opened([{ text: "half an ans", error: { message: "overloaded", code: "OVERLOADED" } }, "whole"], {
    plugins: [({ hooks }) => hooks.on("agent/request-error", () => ({ kind: "retry" }))],
  });
  const message = await messageOf(
    await chunksOf(
      await say(
        agentChatTransport(() => agent),
        [user("u1", "?")],
      ),
    ),
  );
  expect(message.parts).toMatchObject([{ type: "step-start" }, { type: "text", text: "whole" }]);
});

test("the error of a turn is an error of the stream", async () => {
  const agent = await opened([{ error: { message: "no such key", code: "AUTH" } }]);
  const chunks = await chunksOf(
    await say(
      agentChatTransport(() => agent),
      [user("u1", "?")],
    ),
  );
  expect(chunks.at(-1)).toEqual({ type: "error", errorText: "no such key" });
});

test("the abort signal cancels the turn; a stream that nobody reads on does not", async () => {
  const agent = await opened([
    { text: "slow", hang: "polite" },
    { text: "slow too", hang: "polite" },
  ]);
  const transport = agentChatTransport(() => agent);
  const left = await say(transport, [user("u1", "?")]);
  await eventOf(agent.session, "assistant/chunk");
  await left.cancel();
  expect(agent.status).toBe("running");
  agent.cancel();
  await agent.whenIdle();
  const stop = new AbortController();
  const chunks = chunksOf(await say(transport, [user("u2", "?")], { abortSignal: stop.signal }));
  await eventOf(agent.session, "assistant/chunk", ({ data }) => data.turn === 2);
  stop.abort();
  expect((await chunks).at(-1)).toEqual({ type: "abort", reason: "stopped by the user" });
  expect((await eventOf(agent.session, "turn/end", ({ data }) => data.turn === 2)).data.reason.kind).toBe("aborted");
});

test("reconnecting gives the open turn from its beginning, and nothing when there is none", async () => {
  const agent = await opened([{ text: "still here", hang: "polite" }]);
  const transport = agentChatTransport(() => agent);
  expect(await transport.reconnectToStream({ chatId: "chat" })).toBeNull();
  await (await say(transport, [user("u1", "?")])).cancel();
  await eventOf(agent.session, "assistant/chunk", ({ data }) => data.chunk.type === "delta");
  const chunks = chunksOf(await transport.reconnectToStream({ chatId: "chat" }));
  agent.cancel();
  expect(await messageOf(await chunks)).toMatchObject({ id: "turn_1", parts: [{}, { type: "text", state: "done" }] });
});

test("regenerate takes up a turn without an answer, and refuses one that has its answer", async () => {
  const agent = await opened([{ error: { message: "down", code: "DOWN" } }, "up again"]);
  const transport = agentChatTransport(() => agent);
  const asked = [user("u1", "?")];
  await chunksOf(await say(transport, asked));
  const message = await messageOf(await chunksOf(await say(transport, asked, { trigger: "regenerate-message" })));
  expect(message.parts.at(-1)).toMatchObject({ text: "up again" });
  const again = say(transport, asked, { trigger: "regenerate-message" });
  await expect(again).rejects.toMatchObject({ code: "REGENERATE_UNSUPPORTED" });
  const edit = say(transport, [user("u1", "other")], { messageId: "u1" });
  await expect(edit).rejects.toMatchObject({ code: "EDIT_UNSUPPORTED" });
});

test("what a page's own tool has answered goes to the call that waits for it", async () => {
  const locate = defineTool({
    name: "locate",
    description: "Where",
    inputSchema: { type: "object" },
    runsAt: "client",
  });
  const agent = await opened([{ toolCalls: [{ name: "locate", args: {} }] }, "In Rome"], { tools: [locate] });
  const transport = agentChatTransport(() => agent);
  const asked = await messageOf(await chunksOf(await say(transport, [user("u1", "Where am I?")])));
  const parts = asked.parts.map((part) =>
    "toolCallId" in part ? { ...part, state: "output-available", output: { city: "Rome" } } : part,
  );
  const answered: UIMessage = { ...asked, parts: parts as UIMessage["parts"] };
  const done = await messageOf(await chunksOf(await say(transport, [answered], { messageId: asked.id })), answered);
  expect(done.parts.at(-1)).toMatchObject({ text: "In Rome" });
  const more = say(transport, [done], { messageId: asked.id });
  await expect(more).rejects.toMatchObject({ code: "NOTHING_TO_ANSWER" });
});

test("files go both ways", async () => {
  const png = "iVBORw0KGgo=";
  const file = { type: "file", mediaType: "image/png", data: { base64: png } } as const;
  const agent = await opened([{ chunks: [{ type: "block-end", index: 0, block: file }, FINISH] }]);
  const url = `data:image/png;base64,${png}`;
  const part = { type: "file", mediaType: "image/png", url, filename: "a.png" } as const;
  const chunks = await chunksOf(
    await say(
      agentChatTransport(() => agent),
      [{ id: "u1", role: "user", parts: [part] }],
    ),
  );
  expect(chunks).toContainEqual({ type: "file", mediaType: "image/png", url });
  expect(agent.session.deriveMessages()[0]!.content).toEqual([{ ...file, name: "a.png" }]);
});

test("a run is a response that the AI SDK's own transport reads", async () => {
  const agent = await opened([{ text: "Looking", toolCalls: [call("Rome")] }, "Clear"], { tools: [weather] });
  const fetched: Response[] = [];
  const transport = new DefaultChatTransport({
    api: "http://localhost/chat",
    fetch: async () => {
      fetched.push(toUIMessageStreamResponse(run(agent, "Rome?")));
      return fetched[0]!;
    },
  });
  const chunks = await chunksOf(await say(transport, [user("u1", "Rome?")]));
  expect(fetched[0]!.headers.get("x-vercel-ai-ui-message-stream")).toBe("v1");
  expect((await messageOf(chunks)).parts.map(({ type }) => type)).toEqual([
    "step-start",
    "text",
    "tool-weather",
    "step-start",
    "text",
  ]);
});

test("a response over a run that fails says so, and ends", async () => {
  const agent = await opened([{ error: { message: "no such key", code: "AUTH" } }]);
  const text = await toUIMessageStreamResponse(run(agent, "?")).text();
  expect(text).toContain('data: {"type":"error","errorText":"no such key"}');
  expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
});

test("a history of UI messages is a seed that the next request builds on", async () => {
  const seed = eventsFromUIMessages([
    { id: "s", role: "system", parts: [{ type: "text", text: "be brief" }] },
    user("u1", "Rome?"),
    {
      id: "a1",
      role: "assistant",
      parts: [
        { type: "step-start" },
        {
          type: "tool-weather",
          toolCallId: "1",
          state: "output-available",
          input: { city: "Rome" },
          output: { sky: 1 },
        },
        {
          type: "tool-weather",
          toolCallId: "2",
          state: "output-denied",
          input: {},
          approval: { id: "x", reason: "no" },
        },
        { type: "step-start" },
        { type: "text", text: "Clear" },
      ],
    },
  ]);
  const harness = createHarness({ model: scriptedModel(["Oslo too"]) });
  const { agent } = await harness.agents.create({ id: "moved", seed });
  await run(agent, "and Oslo?").result;
  expect(agent.session.deriveMessages().map(({ role, content }) => [role, content.length])).toEqual([
    ["user", 1],
    ["assistant", 2],
    ["tool", 1],
    ["tool", 1],
    ["assistant", 1],
    ["user", 1],
    ["assistant", 1],
  ]);
  expect(() => eventsFromUIMessages([{ role: "user" }])).toThrow(expect.objectContaining({ code: "INVALID_CONTENT" }));
});
