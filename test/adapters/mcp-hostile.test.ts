/** `turnloop/mcp`, with servers that are slow, dead, endless or full of nonsense; and turns that are taken up again. */
import { memoryStorage, type Plugin } from "turnloop";
import { mcp } from "turnloop/mcp";
import { expect, test } from "vitest";
import { z } from "zod";
import { calls, resultsOf, tool } from "../support/calls.ts";
import { testClock } from "../support/clock.ts";
import { deferred, snapshotWhere } from "../support/wait.ts";
import { answerNext, hostile, legacy, look, modern, stage } from "./mcp-stage.ts";

const inputSchema = { type: "object" };
const ask: Plugin = ({ hooks }) => hooks.on("tools/pre-execute", () => ({ kind: "ask" }));

test("a call that waited for its approval while the host was away runs when it comes", async () => {
  const { url } = await modern(look);
  const storage = memoryStorage();
  const plugins = (): Plugin[] => [ask, mcp({ name: "sea", url })];
  const first = await stage([calls({ name: "sea_look", args: { at: "sea" } })], { storage, plugins: plugins() });
  first.agent.send("go");
  await snapshotWhere(first.agent, ({ interactions }) => interactions.length > 0);
  await first.harness.dispose();

  const second = await stage(["done"], { storage, plugins: plugins() });
  await answerNext(second.agent, { decision: "allow" });
  await second.agent.whenIdle();
  expect(resultsOf(second.session)).toEqual([{ tool: "sea_look", says: "blue sea" }]);
});

test("a turn without a message has the tools too", async () => {
  const { url } = await modern(look);
  const one = await stage(["hello"], { plugins: [mcp({ name: "sea", url })] });
  one.agent.continue();
  await one.agent.whenIdle();
  expect(one.model.requests[0]!.tools!.map(({ name }) => name)).toEqual(["sea_look"]);
});

test("a server that says nothing is waited for once, by the clock of the harness", async () => {
  const clock = testClock();
  const { url } = await hostile(() => new Promise(() => {}));
  const one = await stage(["hello", "again"], { clock, plugins: [mcp({ name: "sea", url })] });
  const turn = one.say("hi");
  await clock.sleeping(10_000);
  await clock.advance(10_000);
  expect(await turn).toEqual({ kind: "completed" });
  expect(one.diagnostics).toEqual(["MCP_UNAVAILABLE"]);
  expect(await one.say("again")).toEqual({ kind: "completed" });
});

test("a cancel does not wait for a server", async () => {
  const { url } = await hostile(() => new Promise(() => {}));
  const one = await stage([], { clock: testClock(), plugins: [mcp({ name: "sea", url })] });
  one.agent.on("turn/start", () => one.agent.cancel());
  expect(await one.say("hi")).toMatchObject({ kind: "aborted" });
});

test("names that are no names here are made ones; of two alike the first is taken; there is a limit", async () => {
  const names = [
    "__proto__",
    "constructor",
    "gr\u00f6\u00dfe",
    "a b",
    "a_b",
    "",
    `${"x".repeat(90)}1`,
    `${"x".repeat(90)}2`,
  ];
  const many = Array.from({ length: 600 }, (_, at) => `n${at}`);
  const tools = [...names, ...many].map((name) => ({ name, description: "d".repeat(11_000), inputSchema }));
  const { url } = await hostile((method, params) => {
    if (method === "tools/list") return { tools };
    if (method === "tools/call") return { content: [{ type: "text", text: params?.["name"] }] };
    return undefined;
  });
  const one = await stage([calls("sea___proto__", "sea_a_b", "sea_gr__e"), "done"], {
    plugins: [mcp({ name: "sea", url })],
  });
  await one.say("go");
  expect(resultsOf(one.session)).toEqual([
    { tool: "sea___proto__", says: "__proto__" },
    { tool: "sea_a_b", says: "a b" },
    { tool: "sea_gr__e", says: "gr\u00f6\u00dfe" },
  ]);
  const shown = one.model.requests[0]!.tools!;
  expect(shown).toHaveLength(500);
  expect(shown.every(({ description }) => description.length <= 10_000)).toBe(true);
  expect(one.diagnostics).toEqual(["MCP_TOOL_SKIPPED", "MCP_TOOL_SKIPPED", "MCP_TOOL_SKIPPED"]);
});

test.each([
  ["whose list has no end", (cursor: number) => ({ tools: [], nextCursor: String(cursor) })],
  ["whose schemas are none", () => ({ tools: [{ name: "look", inputSchema: "nonsense" }] })],
  ["whose list is none", () => ({ tools: "nonsense" })],
])("a server %s is away, and the turn is as without it", async (_, list) => {
  let page = 0;
  const { url } = await hostile((method) => (method === "tools/list" ? list((page += 1)) : undefined));
  const one = await stage(["hello"], { plugins: [mcp({ name: "sea", url })] });
  expect(await one.say("hi")).toEqual({ kind: "completed" });
  expect(one.model.requests[0]!.tools).toBeUndefined();
  expect(one.diagnostics).toEqual(["MCP_UNAVAILABLE"]);
  expect(page).toBeLessThan(100);
});

/** Says more and more, until nobody listens. */
function endless(type: string, begin: string): { readonly response: Response; readonly left: Promise<void> } {
  const { promise, resolve } = deferred();
  const piece = new TextEncoder().encode("x".repeat(1_000_000));
  let pieces = 0;
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode(begin)),
    pull(controller) {
      pieces += 1;
      if (pieces > 100) throw new Error("it was all taken in");
      controller.enqueue(piece);
    },
    cancel: () => resolve(),
  });
  return { response: new Response(body, { headers: { "content-type": type } }), left: promise };
}

test.each([
  ["an answer", "application/json", '{"jsonrpc":"2.0","id":'],
  ["an event of a stream", "text/event-stream", 'data: {"jsonrpc":"2.0","id":'],
])("%s without end is broken off before it is in memory", async (_, type, begin) => {
  const { response, left } = endless(type, begin);
  const { url } = await hostile((method) => {
    if (method === "tools/list") return { tools: [{ name: "roar", inputSchema }] };
    return method === "tools/call" ? response : undefined;
  });
  const one = await stage([calls("sea_roar"), "done"], { plugins: [mcp({ name: "sea", url })] });
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(resultsOf(one.session)).toMatchObject([{ tool: "sea_roar", code: "MCP_TOO_LARGE" }]);
  await left;
});

test("a tool that comes in mid turn is there in its next step", async () => {
  const { url, server } = await legacy((sea) => {
    sea.registerTool("grow", { inputSchema: z.object({}) }, () => {
      look(server);
      return { content: [{ type: "text", text: "grown" }] };
    });
  });
  const grown = deferred();
  const one = await stage([calls("sea_grow"), calls({ name: "sea_look", args: { at: "sea" } }), "done"], {
    plugins: [mcp({ name: "sea", url })],
    tools: [tool("wait", () => grown.promise)],
  });
  one.hooks.on("tools/change", () => one.harness.tools.get("sea_look") && grown.resolve());
  one.hooks.on("tools/post-execute", async (_, next) => {
    await grown.promise;
    return next();
  });
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(resultsOf(one.session)).toEqual([
    { tool: "sea_grow", says: "grown" },
    { tool: "sea_look", says: "blue sea" },
  ]);
});

test("a turn that is cancelled while a server asks leaves no question behind", async () => {
  const { url } = await legacy((sea) =>
    sea.registerTool("anchor", { inputSchema: z.object({}) }, async (_, ctx) => {
      const { action } = await ctx.mcpReq.elicitInput({
        message: "Which port?",
        requestedSchema: { type: "object", properties: { port: { type: "string" } } },
      });
      return { content: [{ type: "text", text: action }] };
    }),
  );
  const one = await stage([calls("sea_anchor"), "fine"], { plugins: [mcp({ name: "sea", url })] });
  const turn = one.say("go");
  await snapshotWhere(one.agent, ({ interactions }) => interactions.length > 0);
  one.agent.cancel();
  expect(await turn).toMatchObject({ kind: "aborted" });
  expect(one.agent.interactions).toEqual([]);
  expect(await one.say("and now?")).toEqual({ kind: "completed" });
});
