/** N: the policies' word about an answer, before it stands in the log. */
import type { ContentBlock, Message } from "turnloop";
import { expect } from "vitest";
import { local } from "../support/fixture.ts";
import { chunksIn, dataOf, linesOf, scene, tool } from "../support/scene.ts";
import { deferred, endOf, textOf, typesOf } from "../support/wait.ts";

const text = (value: string): ContentBlock => ({ type: "text", text: value });
const call = (name: string, args = "{}"): ContentBlock => ({ type: "tool-call", callId: "", name, arguments: args });
const look = { name: "look", args: {} };

local("#170 the hook sees the whole message, before it is in the log", async () => {
  const { hooks, agent, session, say } = await scene([{ text: "so", toolCalls: [look] }, "done"], {
    tools: [tool("look")],
  });
  const seen: Message[] = [];
  hooks.on("agent/step-result", async (payload, next) => {
    expect(payload).toMatchObject({ turn: 1, step: seen.length + 1 });
    expect(payload.agent).toBe(agent);
    expect(typesOf(session).filter((type) => type === "assistant/message")).toHaveLength(seen.length);
    const message = await next();
    expect(message).toEqual(payload.message);
    expect(() => Object.assign(message.content[0]!, { text: "mutated" })).toThrow(TypeError);
    seen.push(message);
    return message;
  });
  await say("go");
  expect(seen).toMatchObject(seen.map(() => ({ role: "assistant", model: "scripted/model" })));
  expect(seen.map(({ content }) => content)).toEqual(
    dataOf(session, "assistant/message").map(({ content }) => content),
  );
});

local("#170 what it answers is logged, derived and dispatched; the chunks stay as they came", async () => {
  const { hooks, session, say, model } = await scene([{ text: "so", toolCalls: [look] }, "done"], {
    tools: [tool("look"), tool("peek", ({ at }) => `peeked at ${at}`)],
  });
  hooks.on("agent/step-result", async ({ step, message }) =>
    step === 1 ? { ...message, content: [text("instead"), call("peek", '{"at":"it"}')] } : message,
  );
  await say("go");
  expect(dataOf(session, "tool/call").map(({ name }) => name)).toEqual(["peek"]);
  expect(linesOf(model.requests[1]!.messages)).toEqual(["user: go", "assistant: instead", "tool: peeked at it"]);
  expect(dataOf(session, "assistant/chunk").some(({ chunk }) => chunk.type === "delta" && chunk.text === "so")).toBe(
    true,
  );
});

local("#170 the last listener's word goes through the ones around it", async () => {
  const { hooks, session, say } = await scene(["a"]);
  for (const letter of ["z", "y"]) {
    hooks.on("agent/step-result", async (_, next) => {
      const message = await next();
      return { ...message, content: [text(textOf(message.content) + letter)] };
    });
  }
  await say("go");
  expect(textOf(dataOf(session, "assistant/message")[0]!.content)).toBe("ayz");
});

local("#170 what it answers is detached from what it keeps", async () => {
  const { hooks, session, say } = await scene(["a"]);
  const mine = [{ type: "text" as const, text: "mine" }];
  hooks.on("agent/step-result", ({ message }) => ({ ...message, content: mine }));
  await say("go");
  mine[0]!.text = "changed";
  expect(dataOf(session, "assistant/message")[0]!.content).toEqual([{ type: "text", text: "mine" }]);
});

local("#171 D10 it may add content to an answer that has none", async () => {
  const { hooks, session, say } = await scene([{ chunks: [{ type: "finish", reason: { kind: "stop" } }] }]);
  hooks.on("agent/step-result", ({ message }) => {
    expect(message.content).toEqual([]);
    return { ...message, content: [text("nothing to say")] };
  });
  expect(await say("go")).toEqual({ kind: "completed" });
  expect(textOf(dataOf(session, "assistant/message")[0]!.content)).toBe("nothing to say");
  expect(chunksIn(session)).toEqual(["finish"]);
});

local("#171 D10 it may take everything away: then the answer is judged as empty", async () => {
  const { hooks, session, say } = await scene(["chatter"]);
  hooks.on("agent/step-result", ({ message }) => ({ ...message, content: [] }));
  expect(await say("go")).toMatchObject({ kind: "error", step: 1, code: "EMPTY_RESPONSE" });
  expect(dataOf(session, "request/failed")).toMatchObject([{ error: { code: "EMPTY_RESPONSE" }, next: "fail" }]);
});

local("#171 it may take the calls away, and the turn is over; or add one, and it goes on", async () => {
  const { hooks, session, say, model } = await scene([{ text: "so", toolCalls: [look] }, "one", "two"], {
    tools: [tool("look")],
  });
  let off = hooks.on("agent/step-result", ({ message }) => ({
    ...message,
    content: message.content.filter(({ type }) => type === "text"),
  }));
  expect(await say("go")).toEqual({ kind: "completed" });
  expect(model.requests).toHaveLength(1);
  expect(typesOf(session)).not.toContain("tool/call");
  off();
  off = hooks.on("agent/step-result", ({ step, message }) =>
    step === 1 ? { ...message, content: [...message.content, call("look")] } : message,
  );
  expect(await say("on")).toEqual({ kind: "completed" });
  expect(model.requests).toHaveLength(3);
  expect(dataOf(session, "tool/result").map(({ content }) => textOf(content))).toEqual(["done"]);
  off();
});

local("D19 #172 a hook that throws fails the step: what was readable is kept, nothing is dispatched", async () => {
  const { hooks, session, say, errors } = await scene([{ text: "so", toolCalls: [look] }, "fine"], {
    tools: [tool("look")],
  });
  const off = hooks.on("agent/step-result", () => Promise.reject(new Error("boom")));
  expect(await say("go")).toEqual({ kind: "error", step: 1, message: "boom" });
  expect(dataOf(session, "assistant/message")).toMatchObject([{ content: [text("so")], interrupted: true }]);
  expect(typesOf(session).slice(3)).toEqual([
    "step/start",
    "request/header",
    "assistant/message",
    "step/end",
    "turn/end",
  ]);
  expect(errors).toHaveLength(1);
  off();
  expect(await say("on")).toEqual({ kind: "completed" });
});

local("#172 an answer that is no message fails the step", async () => {
  const wrong: unknown[] = [
    undefined,
    null,
    "text",
    {},
    { role: "assistant", content: "text" },
    { role: "assistant", content: [{ type: "text" }] },
    { role: "assistant", content: [{ type: "tool-call", callId: "c", name: "look", arguments: {} }] },
    { role: "assistant", content: [{ type: "text", text: "x", run() {} }] },
  ];
  const { hooks, session, say } = await scene(
    wrong.map(() => ({ toolCalls: [look] })),
    { tools: [tool("look")] },
  );
  for (const answer of wrong) {
    const off = hooks.on("agent/step-result", () => answer as never);
    expect(await say("go"), JSON.stringify(answer)).toMatchObject({ kind: "error", step: 1, code: "INVALID_CONTENT" });
    off();
  }
  expect(typesOf(session)).not.toContain("assistant/message");
  expect(typesOf(session)).not.toContain("tool/call");
});

local("D16 #172 a cancel while the hook thinks wins over what it answers or throws", async () => {
  for (const how of ["answer", "throw", "never"]) {
    const { hooks, agent, session, say } = await scene([{ text: "so", toolCalls: [look] }], { tools: [tool("look")] });
    const asked = deferred();
    hooks.on("agent/step-result", async (_, next) => {
      asked.resolve();
      agent.cancel("enough");
      if (how === "throw") throw new Error("boom");
      return how === "never" ? new Promise(() => {}) : next();
    });
    expect(await say("go"), how).toEqual({ kind: "aborted", reason: "enough" });
    await asked.promise;
    expect(dataOf(session, "assistant/message")).toMatchObject([{ content: [text("so")], interrupted: true }]);
    expect(endOf(session)).toEqual({ kind: "aborted", reason: "enough" });
  }
});
