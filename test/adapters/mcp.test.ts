/** `turnloop/mcp`, with real MCP servers on the loopback. */
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { acceptedContent, inputRequired } from "@modelcontextprotocol/server";
import { TurnloopError } from "turnloop";
import { mcp } from "turnloop/mcp";
import { expect, test } from "vitest";
import { z } from "zod";
import { calls, resultsOf } from "../support/calls.ts";
import { deferred } from "../support/wait.ts";
import { answerNext, legacy, look, modern, stage, undo, type Setup } from "./mcp-stage.ts";

test("the tools of a server are there at the first request, and run", async () => {
  const { url, seen } = await modern(look);
  const one = await stage([calls({ name: "sea_look", args: { at: "sea" } }), "done"], {
    plugins: [mcp({ name: "sea", url, headers: () => ({ authorization: "Bearer mine" }) })],
  });
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(one.model.requests[0]!.tools).toMatchObject([
    { name: "sea_look", description: "Looks", parameters: { type: "object", required: ["at"] } },
  ]);
  expect(resultsOf(one.session)).toEqual([{ tool: "sea_look", says: "blue sea" }]);
  expect(new Set(seen.map((headers) => headers.authorization))).toEqual(new Set(["Bearer mine"]));
  expect(one.diagnostics).toEqual([]);
});

test("what the server refuses fails the call, and only that", async () => {
  const { url } = await modern((server) => {
    look(server);
    server.registerTool("sink", { inputSchema: z.object({}) }, () => ({
      isError: true,
      content: [{ type: "text", text: "not today" }],
    }));
  });
  const one = await stage([calls("sea_sink", { name: "sea_look", args: { at: 7 } }), "done"], {
    plugins: [mcp({ name: "sea", url })],
  });
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(resultsOf(one.session)).toMatchObject([
    { tool: "sea_sink", fails: "Error: not today", code: "MCP_TOOL_FAILED" },
    { tool: "sea_look", fails: expect.stringContaining("at") },
  ]);
});

test("a change of the server's tools shows in the next step", async () => {
  let setup = look;
  const { url, changed } = await modern((server) => setup(server));
  const one = await stage([calls({ name: "sea_look", args: { at: "sea" } }), "done"], {
    plugins: [mcp({ name: "sea", url })],
  });
  await one.say("go");
  const seen = deferred();
  one.hooks.on("tools/change", () => one.harness.tools.get("sea_dive") && seen.resolve());
  setup = (server) => void server.registerTool("dive", { inputSchema: z.object({}) }, () => ({ content: [] }));
  changed();
  await seen.promise;
  expect(one.harness.tools.schemas().map(({ name }) => name)).toEqual(["sea_dive"]);
});

test("resources and prompts are tools", async () => {
  const { url } = await modern((server) => {
    server.registerResource("log", "sea://log", {}, ({ href }) => ({ contents: [{ uri: href, text: "calm" }] }));
    server.registerPrompt("sail", { description: "To sail", argsSchema: z.object({ to: z.string() }) }, ({ to }) => ({
      messages: [{ role: "user", content: { type: "text", text: `sail to ${to}` } }],
    }));
  });
  const one = await stage(
    [
      calls(
        "sea_list_resources",
        { name: "sea_read_resource", args: { uri: "sea://log" } },
        { name: "sea_get_prompt", args: { name: "sail", arguments: { to: "Crete" } } },
      ),
      "done",
    ],
    { plugins: [mcp({ name: "sea", url })] },
  );
  await one.say("go");
  // They only read, and so run side by side.
  const results = resultsOf(one.session).toSorted((a, b) => a.tool.localeCompare(b.tool));
  expect(results).toEqual([
    { tool: "sea_get_prompt", says: "sail to Crete" },
    { tool: "sea_list_resources", says: expect.stringContaining("sea://log") },
    { tool: "sea_read_resource", says: "calm" },
  ]);
  expect(one.model.requests[0]!.tools!.find(({ name }) => name === "sea_get_prompt")!.description).toContain("To sail");
});

test("output beyond the limit is cut, and the model is told", async () => {
  const { url } = await modern((server) =>
    server.registerTool("roar", { inputSchema: z.object({}) }, () => ({
      content: [
        { type: "text", text: "r".repeat(30) },
        { type: "text", text: "r".repeat(30) },
        { type: "image", mimeType: "image/png", data: "A".repeat(6_000_000) },
      ],
    })),
  );
  const one = await stage([calls("sea_roar"), "done"], { plugins: [mcp({ name: "sea", url, maxChars: 40 })] });
  await one.say("go");
  expect(resultsOf(one.session)).toEqual([
    {
      tool: "sea_roar",
      says: `${"r".repeat(40)}[a file image/png of 6000000 characters is too large][cut here: 20 more characters]`,
    },
  ]);
});

const FORM = { type: "object" as const, properties: { port: { type: "string" as const } }, required: ["port"] };

const asking: Setup = (server) =>
  server.registerTool("anchor", { inputSchema: z.object({}) }, (_, ctx) => {
    const given = acceptedContent<{ port: string }>(ctx.mcpReq.inputResponses, "where");
    if (given) return { content: [{ type: "text", text: `anchored at ${given.port}` }] };
    if (ctx.mcpReq.inputResponses) return { content: [{ type: "text", text: "adrift" }] };
    return inputRequired({
      inputRequests: { where: inputRequired.elicit({ message: "Which port?", requestedSchema: FORM }) },
    });
  });

test.each([
  [{ port: "Chania" }, "anchored at Chania"],
  ["Chania", "anchored at Chania"],
  [null, "adrift"],
  [{ action: "accept", content: { port: "Chania" } }, "anchored at Chania"],
  [{ action: "decline" }, "adrift"],
  [{ action: "cancel" }, "adrift"],
])("a question of the server is an interaction: %j makes it %s", async (answer, says) => {
  const { url } = await modern(asking);
  const one = await stage([calls("sea_anchor"), "done"], { plugins: [mcp({ name: "sea", url })] });
  const turn = one.say("go");
  expect(await answerNext(one.agent, answer)).toMatchObject({ question: "Which port?", server: "sea", schema: FORM });
  await turn;
  expect(resultsOf(one.session)).toEqual([{ tool: "sea_anchor", says }]);
});

test("with nobody to ask, the question is cancelled and the server decides", async () => {
  const { url } = await modern(asking);
  const one = await stage([calls("sea_anchor"), "done"], { interactive: false, plugins: [mcp({ name: "sea", url })] });
  await one.say("go");
  expect(resultsOf(one.session)).toEqual([{ tool: "sea_anchor", says: "adrift" }]);
});

test("a server of the older protocol asks in the middle of a call, and tells its changes", async () => {
  const { url, server } = await legacy((sea) =>
    sea.registerTool("anchor", { inputSchema: z.object({}) }, async (_, ctx) => {
      const { action, content } = await ctx.mcpReq.elicitInput({ message: "Which port?", requestedSchema: FORM });
      return { content: [{ type: "text", text: `${action} ${String(content?.["port"])}` }] };
    }),
  );
  const one = await stage([calls("sea_anchor"), "done"], { plugins: [mcp({ name: "sea", url })] });
  const turn = one.say("go");
  await answerNext(one.agent, "Chania");
  await turn;
  expect(resultsOf(one.session)).toEqual([{ tool: "sea_anchor", says: "accept Chania" }]);
  const seen = deferred();
  one.hooks.on("tools/change", () => one.harness.tools.get("sea_look") && seen.resolve());
  look(server);
  await seen.promise;
});

test.each([
  ["newest", modern],
  ["older", legacy],
])("a server of the %s protocol that dies in a call fails the call alone", async (_, kind) => {
  const called = deferred();
  let alive = false;
  const setup: Setup = (server) =>
    server.registerTool("wait", { inputSchema: z.object({}) }, () => {
      called.resolve();
      return alive ? { content: [{ type: "text", text: "back" }] } : new Promise<never>(() => {});
    });
  const server = await kind(setup);
  const one = await stage([calls("sea_wait"), calls("sea_wait"), "sorry", calls("sea_wait"), "fine"], {
    plugins: [mcp({ name: "sea", url: server.url })],
  });
  const turn = one.say("go");
  await called.promise;
  await server.kill();
  expect(await turn).toEqual({ kind: "completed" });
  expect(resultsOf(one.session)).toMatchObject([
    { tool: "sea_wait", code: "MCP_DISCONNECTED" },
    { tool: "sea_wait", code: "MCP_UNAVAILABLE" },
  ]);
  expect(one.diagnostics).toEqual(["MCP_UNAVAILABLE"]);
  alive = true;
  if (kind === legacy) return;
  await server.revive();
  await one.say("again");
  expect(resultsOf(one.session).at(-1)).toEqual({ tool: "sea_wait", says: "back" });
});

test("a server that is away leaves the agent as it is, and is told of once", async () => {
  const { url, kill } = await modern(look);
  await kill();
  const one = await stage(["hello", "again"], { plugins: [mcp({ name: "sea", url })] });
  expect(await one.say("hi")).toEqual({ kind: "completed" });
  expect(await one.say("hi")).toEqual({ kind: "completed" });
  expect(one.diagnostics).toEqual(["MCP_UNAVAILABLE"]);
});

test("a cancelled turn ends the call at the server", async () => {
  const called = deferred();
  const left = deferred();
  const { url } = await modern((server) =>
    server.registerTool("wait", { inputSchema: z.object({}) }, (_, ctx) => {
      ctx.mcpReq.signal.addEventListener("abort", () => left.resolve());
      called.resolve();
      return new Promise<never>(() => {});
    }),
  );
  const one = await stage([calls("sea_wait"), "done"], { plugins: [mcp({ name: "sea", url })] });
  const turn = one.say("go");
  await called.promise;
  one.agent.cancel();
  expect(await turn).toMatchObject({ kind: "aborted" });
  await left.promise;
});

/** A program of its own, which its client starts. */
async function program(): Promise<Client> {
  const client = new Client({ name: "mine", version: "1.0.0" });
  const args = [join(import.meta.dirname, "mcp-stdio.ts")];
  await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: "ignore" }));
  undo.push(() => client.close());
  return client;
}

test("a client of one's own is used as it is, over stdio too, and left open", async () => {
  const client = await program();
  const one = await stage([calls("sea_look"), "done"], {});
  const off = one.harness.use(mcp({ name: "sea", client }));
  await one.say("go");
  expect(resultsOf(one.session)).toEqual([{ tool: "sea_look", says: "blue" }]);
  off();
  expect(one.harness.tools.schemas()).toEqual([]);
  expect(await client.ping()).toEqual({});
});

test("a program that dies in a call fails its calls alone", async () => {
  const one = await stage([calls("sea_die"), calls("sea_look"), "sorry"], {
    plugins: [mcp({ name: "sea", client: await program() })],
  });
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(resultsOf(one.session)).toMatchObject([
    { tool: "sea_die", code: "MCP_DISCONNECTED" },
    { tool: "sea_look", code: "MCP_UNAVAILABLE" },
  ]);
});

test("options that make no sense are refused at once", () => {
  for (const wrong of [
    { name: "a b", url: "http://x" },
    { name: "a", url: "nowhere" },
    { name: "a", client: 1 },
  ]) {
    expect(() => mcp(wrong)).toThrow(expect.objectContaining({ code: "INVALID_OPTIONS" }));
  }
  expect(() => mcp({ name: "a", url: "http://x", maxChars: 0 })).toThrow(TurnloopError);
});
