/** An agent on a real provider client, over a wire whose bytes the test writes. */
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { run, type HarnessOptions, type RunResult, type ToolDefinition } from "turnloop";
import { aiSdkModel } from "turnloop/ai-sdk";
import { afterAll, beforeAll, expect } from "vitest";
import { tool } from "./calls.ts";
import { chat, providerUrl, sse, type Answer } from "./provider-answers.ts";
import { startProviderServer, type ProviderServer, type SentBody } from "./provider-server.ts";
import { scene, type Scene } from "./scene.ts";

/** Chat Completions by two clients, and Responses. */
export type Dialect = "compatible" | "chat" | "responses";
export const chatDialects = ["compatible", "chat"] as const;

export interface Wired extends Scene {
  readonly url: string;
  /** The name of its model. */
  readonly route: string;
  readonly server: ProviderServer;
  /** What the tools were called with, in order. */
  readonly ran: readonly { readonly name: string; readonly args: unknown }[];
  /** The bodies that the provider has got. */
  readonly sent: readonly SentBody[];
  ask(text?: string): Promise<RunResult>;
}

export interface WireOptions extends HarnessOptions {
  /** Of the session. */
  readonly id?: string;
  readonly dialect?: Dialect;
  /** Tools by name that take any object, and answer `done`. */
  readonly named?: readonly string[];
}

/** To be called once at the top of a file: each call of what it answers opens an agent on a provider of its own. */
export function useWire(): (answers: readonly (Answer | string)[], options?: WireOptions) => Promise<Wired> {
  let server: ProviderServer;
  beforeAll(async () => void (server = await startProviderServer()));
  afterAll(() => server.close());
  return async (answers, { dialect = "compatible", named = [], tools = [], ...options } = {}) => {
    const url = providerUrl(server.url, ...answers.map((one) => (typeof one === "string" ? { body: one } : one)));
    const ran: { name: string; args: unknown }[] = [];
    const noting = (name: string): ToolDefinition => tool(name, (args) => (ran.push({ name, args }), "done"));
    const model = aiSdkModel(client(dialect, url), { onWarning() {} });
    const opened = await scene([], { model, tools: [...named.map(noting), ...tools], ...options });
    return {
      ...opened,
      url,
      route: model.id,
      server,
      ran,
      get sent() {
        return server.requests(url);
      },
      ask: (text = "go") => run(opened.agent, text).result,
    };
  };
}

function client(dialect: Dialect, baseURL: string): unknown {
  const options = { baseURL, apiKey: "k" };
  if (dialect === "compatible") return createOpenAICompatible({ ...options, name: "acme", includeUsage: true })("m1");
  const openai = createOpenAI(options);
  return dialect === "chat" ? openai.chat("m1") : openai.responses("m1");
}

/** One event of the Chat Completions dialect. */
export const delta = (fields: object): object => ({ choices: [{ index: 0, delta: fields }] });
/** One event with the deltas of tool calls. */
export const callDelta = (...calls: readonly object[]): object => delta({ tool_calls: calls });
/** The event that ends an answer. */
export const finish = (reason: string, more: object = {}): object => ({
  choices: [{ index: 0, delta: {}, finish_reason: reason }],
  ...more,
});
/** An answer that calls tools: each of these is one event with one delta. */
export const callsOf = (...deltas: readonly object[]): string =>
  sse(...deltas.map((one) => callDelta(one)), finish("tool_calls"));
/** An answer of text. */
export const says = (content: string): string => chat({ content });

/** Asks, and answers with the failure's code, once it is seen that nothing has run and that the conversation goes on. */
export async function cleanFailure(wired: Wired): Promise<string | undefined> {
  const { reason } = await wired.ask();
  expect(wired.ran).toEqual([]);
  expect(await wired.ask("again")).toMatchObject({ reason: { kind: "completed" }, text: "fine" });
  const messages: readonly { readonly role: string }[] = wired.sent.at(-1)!["messages"];
  expect(messages.map(({ role }) => role).filter((role) => role !== "assistant")).toEqual(["user", "user"]);
  return reason.kind === "error" ? reason.code : reason.kind;
}

/** The calls of the last request, and the results that answer them. */
export function replayed({ sent }: Wired): { calls: [id: string, name: string, args: string][]; results: string[] } {
  const messages = sent.at(-1)?.["messages"] as readonly {
    readonly role: string;
    readonly tool_call_id?: string;
    readonly tool_calls?: readonly { id: string; function: { name: string; arguments: string } }[];
  }[];
  return {
    calls: messages.flatMap(({ tool_calls = [] }) =>
      tool_calls.map(({ id, function: { name, arguments: args } }): [string, string, string] => [id, name, args]),
    ),
    results: messages.flatMap(({ tool_call_id: id }) => (id === undefined ? [] : [id])),
  };
}
