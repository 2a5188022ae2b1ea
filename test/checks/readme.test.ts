/** What README.md says is so: its programs run and print that, its commands exist, its sizes are those of today. */
import { execFile } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { run, type Harness } from "turnloop";
import { z } from "zod";
import { serve } from "../adapters/mcp-server.ts";
import { policies, weigh, weighPolicies } from "../support/bundle.ts";
import { root } from "../support/package.ts";
import { providerUrl, responses } from "../support/provider-answers.ts";
import { startProviderServer, type ProviderServer } from "../support/provider-server.ts";
import { readme, readPrograms, writePrograms } from "../support/readme.ts";

const programs = readPrograms();
let folder: string;
let provider: ProviderServer;
beforeAll(async () => {
  folder = writePrograms(programs);
  provider = await startProviderServer();
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await provider.close();
});
afterEach(() => vi.unstubAllGlobals());

/** What a program prints, in a process of its own. Rejects when it fails. */
async function outputOf(name: string, environment: Readonly<Record<string, string>> = {}): Promise<string> {
  const options = { cwd: folder, timeout: 20_000, env: { ...process.env, NODE_OPTIONS: "", ...environment } };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [name], options);
  expect(stderr).toBe("");
  return stdout;
}

test("the programs type-check", { timeout: 60_000 }, async () => {
  expect(programs.map(({ name }) => name)).toContain("weather.ts");
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const said = await promisify(execFile)(process.execPath, [tsc, "-p", folder]).catch((error: unknown) => error);
  expect(said).toMatchObject({ stdout: "" });
});

test.for(programs.filter(({ output }) => output !== undefined))(
  "$name prints what is said",
  { timeout: 30_000 },
  async ({ name, output }) => {
    expect(await outputOf(name)).toBe(output);
  },
);

test("hello.ts prints what the provider's model answers, and what that took", { timeout: 30_000 }, async () => {
  const baseUrl = providerUrl(provider.url, { body: responses("A test server.") });
  const printed = await outputOf("hello.ts", { OPENAI_BASE_URL: baseUrl, OPENAI_API_KEY: "sk-secret" });
  expect(printed).toMatch(/^A test server\.\n \{ input: 3, .*output: 2.* \}\n$/);
  expect(provider.requests(baseUrl)[0]).toMatchObject({ model: "gpt-5.5" });
});

test("mcp.ts prints what the server answers", { timeout: 30_000 }, async () => {
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: "docs", version: "1.0.0" });
    server.registerTool("find", { inputSchema: z.object({ word: z.string() }) }, ({ word }) => ({
      content: [{ type: "text", text: `all about ${word}s` }],
    }));
    return server;
  });
  const server = await serve((request) => handler.fetch(request));
  const printed = await outputOf("mcp.ts", { DOCS_URL: server.url });
  await handler.close();
  await server.kill();
  expect(printed).toBe("[ { type: 'text', text: 'all about loops' } ]\nFound.\n");
  expect(server.seen[0]).toMatchObject({ authorization: "Bearer my-key" });
});

test("the tests of weather.test.ts pass", { timeout: 30_000 }, async () => {
  const printed = await outputOf("weather.test.ts");
  expect(printed).toMatch(/^\W*pass 2$/m);
  expect(printed).toMatch(/^\W*fail 0$/m);
});

interface Proxy {
  readonly default: { fetch(request: Request, env: { readonly OPENAI_API_KEY: string }): Promise<Response> };
}

/** The proxy of README.md; `isSignedIn` is what a reader would write there. */
async function loadProxy(isSignedIn: string): Promise<Proxy["default"]> {
  const { stripTypeScriptTypes } = await import("node:module");
  const { code = "" } = programs.find(({ name }) => name === "proxy.ts") ?? {};
  const written = code.replace("=> false;", `=> ${isSignedIn};`);
  const proxy = (await import(`data:text/javascript,${encodeURIComponent(stripTypeScriptTypes(written))}`)) as Proxy;
  return proxy.default;
}

const env = { OPENAI_API_KEY: "sk-secret" };

test("the page of README.md asks through its proxy, and never sees the key", { timeout: 30_000 }, async () => {
  const proxy = await loadProxy('request.headers.get("authorization") !== null');
  const asked: { readonly by: string; readonly url: string; readonly key: string | null }[] = [];
  vi.stubGlobal("location", new URL("https://page.example/chat"));
  vi.stubGlobal("fetch", async (input: string, init: RequestInit) => {
    const request = new Request(input, init);
    const isPage = request.url.startsWith("https://page.example/");
    asked.push({ by: isPage ? "page" : "proxy", url: request.url, key: request.headers.get("authorization") });
    if (isPage) return proxy.fetch(request, env);
    return new Response(responses("Hello, page."), { headers: { "content-type": "text/event-stream" } });
  });
  const { harness } = (await import(/* @vite-ignore */ join(folder, "page.ts"))) as { harness: Harness };
  const { agent } = await harness.agents.open({ id: "chat-1" });
  expect(await run(agent, "Hello").result).toMatchObject({ text: "Hello, page.", reason: { kind: "completed" } });
  expect(asked).toEqual([
    { by: "page", url: "https://page.example/v1/responses", key: "Bearer the proxy has it" },
    { by: "proxy", url: "https://api.openai.com/v1/responses", key: "Bearer sk-secret" },
  ]);
});

test("the proxy lets nobody in until its reader has said who may, and leads to one address only", async () => {
  const fetched = vi.fn<typeof fetch>();
  vi.stubGlobal("fetch", fetched);
  const post = (path: string): Request => new Request(`https://page.example${path}`, { method: "POST", body: "{}" });
  const closed = await loadProxy("false");
  expect((await closed.fetch(post("/v1/responses"), env)).status).toBe(401);
  const open = await loadProxy("true");
  expect((await open.fetch(post("/v1/files"), env)).status).toBe(404);
  expect((await open.fetch(new Request("https://page.example/v1/responses"), env)).status).toBe(404);
  expect(fetched).not.toHaveBeenCalled();
});

test("the commands are there", () => {
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { scripts: object };
  const named = [...readme.matchAll(/npm (?:run )?(test:\w+|demo|size|test)\b/g)].map(([, name]) => name);
  expect(named.length).toBeGreaterThan(3);
  expect(Object.keys(scripts)).toEqual(expect.arrayContaining(named));
});

test("the sizes are those of today, to a kilobyte", { timeout: 60_000 }, async () => {
  const rows = [...readme.matchAll(/^\| .*`([\w/-]+)`.*\| (\d+) kB +\|$/gm)];
  const said = rows.map(([, what, size]) => ({ what, kilobytes: Number(size) }));
  const today = await weigh();
  expect(new Set(said.map(({ what }) => what))).toEqual(new Set(today.map(({ what }) => what)));
  for (const { what, gzipped } of today) {
    const kilobytes = said.find((row) => row.what === what)?.kilobytes ?? 0;
    expect(Math.abs(kilobytes - gzipped / 1000), `${what} weighs ${gzipped} bytes`).toBeLessThan(1);
  }
});

test("every policy is in the table with what it weighs, and in a program that says what it prints", async () => {
  const rows = [...readme.matchAll(/^\| `(\w+)\(.*`.*\| (\d+\.\d) kB +\|$/gm)];
  const said = new Map(rows.map(([, what = "", size]) => [what, Number(size)]));
  expect([...said.keys()].toSorted()).toEqual(policies().toSorted());
  for (const { what, gzipped } of await weighPolicies()) {
    expect(Math.abs(said.get(what)! - gzipped / 1000), `${what} weighs ${gzipped} bytes`).toBeLessThan(0.25);
  }
  const shown = programs.filter(({ output }) => output !== undefined).map(({ code }) => code);
  for (const name of policies())
    expect(
      shown.filter((code) => code.includes(`${name}(`)),
      name,
    ).not.toEqual([]);
}, 60_000);
