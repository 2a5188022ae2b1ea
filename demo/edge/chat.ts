/** One chat: its agent, in a Durable Object of its own, and what is done with it beside talking. */
import { createHarness, TurnloopError, type ErrorData, type Harness, type HarnessOptions, type Model } from "turnloop";
import { agentObject, durableObjectStorage, type AgentObjectContext } from "turnloop/durable-object";
import { demoAgent } from "../agent.ts";
import { offlineModel } from "../offline-model.ts";
import type { Shelf } from "./shelf.ts";
import { mayUse, ownerIn } from "./visitor.ts";

/** Objects, by the name of their id. */
export interface Objects<T> {
  idFromName(name: string): unknown;
  get(id: never): T;
}

/** The methods of an object, as whoever has a binding calls them. */
export type Remote<T> = {
  [K in keyof T]: T[K] extends (...args: infer A) => infer R ? (...args: A) => Promise<Awaited<R>> : never;
};

export interface Env {
  readonly ASSETS: { fetch(request: Request): Promise<Response> };
  readonly CHATS: Objects<Remote<Chat>>;
  readonly SHELVES: Objects<Remote<Shelf>>;
  /** A secret: `wrangler secret put OPENAI_API_KEY`. Without it the script answers. */
  readonly OPENAI_API_KEY?: string;
  readonly MODEL?: string;
  /** Milliseconds that the script takes for a piece of text. */
  readonly PACE?: string;
}

export function objectOf<T>(objects: Objects<T>, name: string): T {
  return objects.get(objects.idFromName(name) as never);
}

export const shelfOf = (env: Env, chat: string): Remote<Shelf> => objectOf(env.SHELVES, ownerIn(chat));

interface Context extends AgentObjectContext {
  readonly storage: AgentObjectContext["storage"] & { deleteAll(): Promise<void> };
  abort(reason: string): void;
}

/** What the page may show of it. */
export function modelName({ OPENAI_API_KEY: key, MODEL = "gpt-5.5" }: Env): string {
  return key === undefined ? "Scripted demo" : MODEL;
}

/** The provider's client is loaded where there is a key for it. */
function modelOf(env: Env): Model {
  const { OPENAI_API_KEY: apiKey, PACE } = env;
  if (apiKey === undefined) return offlineModel(PACE === undefined ? undefined : Number(PACE));
  return {
    id: modelName(env),
    async *stream(request, context) {
      const [{ aiSdkModel }, { createOpenAI }] = await Promise.all([
        import("turnloop/ai-sdk"),
        import("@ai-sdk/openai"),
      ]);
      yield* aiSdkModel(createOpenAI({ apiKey })(modelName(env))).stream(request, context);
    },
  };
}

/** The harness of each object that is awake. */
const harnesses = new WeakMap<object, Harness>();

function harnessOptions(ctx: AgentObjectContext, env: Env): HarnessOptions {
  const agent = demoAgent();
  return {
    ...agent,
    plugins: [...(agent.plugins ?? []), ({ harness }) => void harnesses.set(ctx, harness)],
    model: modelOf(env),
    onSummary: (summary) => shelfOf(env, summary.id).put(summary),
  };
}

const Agent = agentObject<Env>({
  harness: harnessOptions,
  authorize: async (request, chat) =>
    (await mayUse(request, chat)) ? { identity: ownerIn(chat), rights: ["drive", "answer"] } : undefined,
});

export class Chat extends Agent {
  readonly #ctx: Context;
  readonly #env: Env;

  constructor(ctx: Context, env: Env) {
    super(ctx, env);
    this.#ctx = ctx;
    this.#env = env;
  }

  get #id(): string {
    return this.#ctx.id.name!;
  }

  async #awake(): Promise<Harness> {
    await this.snapshot();
    return harnesses.get(this.#ctx)!;
  }

  /** All of it. */
  async lines(): Promise<string[]> {
    const lines: string[] = [];
    for await (const line of (await this.#awake()).sessions.export(this.#id)) lines.push(line);
    return lines;
  }

  /** What it begins with, instead of nothing. Answers with why it does not: an error that crosses has lost its kind. */
  async begin(lines: readonly string[]): Promise<ErrorData | undefined> {
    const harness = createHarness({
      storage: durableObjectStorage(this.#ctx),
      onSummary: (summary) => shelfOf(this.#env, summary.id).put(summary),
    });
    try {
      await harness.sessions.import(lines, { id: this.#id });
      return undefined;
    } catch (error) {
      if (!TurnloopError.is(error)) throw error;
      return { code: error.code, message: error.message };
    } finally {
      await harness.dispose();
    }
  }

  async rename(title: string): Promise<void> {
    const { sessions } = await this.#awake();
    await sessions.rename(this.#id, title);
    // Whoever asks for the list next finds it there.
    const [summary] = (await sessions.list()).sessions;
    if (summary) await shelfOf(this.#env, this.#id).put(summary);
  }

  /** Whatever runs here ends with it. */
  async erase(): Promise<void> {
    await this.#ctx.storage.deleteAlarm();
    await this.#ctx.storage.deleteAll();
    await shelfOf(this.#env, this.#id).remove(this.#id);
    setTimeout(() => this.#ctx.abort("the chat was deleted"));
  }
}
