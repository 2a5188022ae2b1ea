/** What runs in workerd: agents in Durable Objects behind a Worker, with a model that somebody outside plays. */
import { DurableObject } from "cloudflare:workers";
import { defineTool, subagents, type Clock, type HarnessOptions, type Model } from "turnloop";
import {
  agentObject,
  hostAgent,
  routeAgentRequest,
  type AgentObjectContext,
  type AgentObjectHandlers,
} from "turnloop/durable-object";
import { systemClock } from "../../src/core.ts";
import type { Authorize } from "turnloop/transport";

interface Env {
  readonly AGENTS: Namespace;
  readonly OWN: Namespace;
  /** Where the model is. */
  readonly OUTSIDE: string;
}

interface Namespace {
  idFromName(name: string): unknown;
  get(id: unknown): Methods & { fetch(request: Request): Promise<Response> };
}

type Methods = Record<string, (...args: unknown[]) => Promise<unknown>>;

/** How many instances there were of each object, in this process. */
const instances = new Map<string, number>();
/** How often `authorize` was asked. */
let asked = 0;

/** Whether no object can begin, as after a bad deploy. */
let broken = false;

/** By how much the clock of the harnesses is ahead, in milliseconds. */
let ahead = 0;
const clock: Clock = {
  now: () => Date.now() + ahead,
  sleep: (ms, signal) => systemClock.sleep(ms, signal),
};

/** Who has signed out. */
const signedOut = new Set<string>();

/** The token of the URL is the name. It holds for an hour. */
const authorize: Authorize = (request) => {
  asked += 1;
  const token = new URL(request.url).searchParams.get("token");
  if (token === null || signedOut.has(token)) return undefined;
  return {
    identity: { name: token },
    rights: token === "reader" ? [] : ["drive", "answer"],
    expiresAt: clock.now() + 3_600_000,
  };
};

function harness(_ctx: AgentObjectContext, { OUTSIDE }: Env): HarnessOptions {
  if (broken) throw new Error("a bad deploy");
  const tell = async (path: string, body: unknown): Promise<string> => {
    const response = await fetch(`${OUTSIDE}/${path}`, { method: "POST", body: JSON.stringify(body) });
    return response.text();
  };
  const model: Model = {
    id: "test/outside",
    async *stream({ messages }, { sessionId }) {
      const last = messages.at(-1)!;
      yield { type: "delta", index: 0, text: "Well. " };
      const text = await tell("model", { session: sessionId, role: last.role, content: last.content });
      const [, name, args = "{}"] = /^call (\w+) ?(.+)?$/.exec(text) ?? [];
      if (name !== undefined) {
        yield { type: "block-start", index: 1, block: { type: "tool-call", name } };
        yield { type: "delta", index: 1, text: args };
        yield { type: "finish", reason: { kind: "tool-calls" } };
      } else {
        yield { type: "delta", index: 0, text };
        yield { type: "finish", reason: { kind: "stop" } };
      }
    },
  };
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    inputSchema: { type: "object" },
    needsApproval: true,
    execute: (_, { callId }) => tell("pay", { callId }),
  });
  const look = defineTool({
    name: "look",
    description: "Looks around.",
    inputSchema: { type: "object" },
    runsAt: "client",
    idempotent: true,
  });
  const locate = defineTool({
    name: "locate",
    description: "Says where the user is.",
    inputSchema: { type: "object" },
    runsAt: "client",
    idempotent: true,
  });
  return { model, tools: [pay, look, locate], plugins: [subagents()], clock, onDiagnostic() {} };
}

/** What tests ask of the objects of either class. */
interface Watched {
  readonly storage: { getAlarm(): Promise<number | null>; setAlarm(time: number): Promise<void> };
}

function born(ctx: AgentObjectContext): void {
  const name = ctx.id.name!;
  instances.set(name, (instances.get(name) ?? 0) + 1);
}

/** The alarm rings now, if there is one. */
async function hurry(ctx: AgentObjectContext): Promise<boolean> {
  const { storage } = ctx as unknown as Watched;
  if ((await storage.getAlarm()) === null) return false;
  await storage.setAlarm(Date.now());
  return true;
}

export class Agents extends agentObject<Env>({ harness, authorize }) {
  readonly #ctx: AgentObjectContext;

  constructor(ctx: AgentObjectContext, env: Env) {
    super(ctx, env);
    this.#ctx = ctx;
    born(ctx);
  }

  armed(): Promise<number | null> {
    return (this.#ctx as unknown as Watched).storage.getAlarm();
  }

  hurry(): Promise<boolean> {
    return hurry(this.#ctx);
  }
}

/** A class of one's own, which has a use for the alarm: to remind of something. */
export class Own extends DurableObject {
  readonly #ctx: AgentObjectContext;
  readonly #host: AgentObjectHandlers;

  constructor(ctx: AgentObjectContext, env: Env) {
    super(ctx, env);
    this.#ctx = ctx;
    this.#host = hostAgent(ctx, env, { harness, authorize });
  }

  remind(time: number): Promise<void> {
    this.#ctx.storage.kv.put("remind", time);
    return this.#host.nextAlarm(time);
  }

  reminded(): boolean {
    return this.#ctx.storage.kv.get("remind") === null;
  }

  async alarm(): Promise<void> {
    const time = this.#ctx.storage.kv.get("remind") as number | null | undefined;
    if (typeof time === "number" && time <= Date.now()) this.#ctx.storage.kv.put("remind", null);
    await this.#host.alarm();
  }

  send(text: string): Promise<string> {
    return this.#host.send(text);
  }

  snapshot(): Promise<unknown> {
    return this.#host.snapshot();
  }

  armed(): Promise<number | null> {
    return (this.#ctx as unknown as Watched).storage.getAlarm();
  }

  hurry(): Promise<boolean> {
    return hurry(this.#ctx);
  }
}

/** Ends the instance as the platform does with one that has nothing to do: its WebSockets stay open. */
async function evict(object: object): Promise<void> {
  const { default: unsafe } = await import("workerd:unsafe");
  await (unsafe as unknown as { evict(object: object, options: object): Promise<void> }).evict(object, {
    webSockets: "hibernate",
  });
}

/** Each request goes to the object that it names. */
export const worker = {
  async fetch(request: Request, env: Env): Promise<Response> {
    const routed = await routeAgentRequest(request, env, { namespace: () => env.AGENTS, authorize });
    if (routed) return routed;
    const { pathname, searchParams } = new URL(request.url);
    if (pathname.startsWith("/forwarded/")) {
      const session = pathname.slice(pathname.lastIndexOf("/") + 1);
      return env.AGENTS.get(env.AGENTS.idFromName(session)).fetch(request);
    }
    const name = searchParams.get("object") ?? "";
    const objects = pathname.startsWith("/own/") ? env.OWN : env.AGENTS;
    const object = objects.get(objects.idFromName(name));
    try {
      switch (pathname) {
        case "/abort":
          await (await import("workerd:unsafe")).default.abortAllDurableObjects();
          return Response.json(null);
        case "/sleep":
          await evict(object);
          return Response.json(null);
        case "/break":
        case "/mend":
          broken = pathname === "/break";
          return Response.json(null);
        case "/later":
          ahead += 3_600_000;
          return Response.json(null);
        case "/sign-out":
          signedOut.add(name);
          return Response.json(null);
        case "/id":
          return Response.json(String(objects.idFromName(name)));
        case "/seen":
          return Response.json({ instances: instances.get(name) ?? 0, asked });
        default: {
          const args = (await request.json()) as unknown[];
          return Response.json((await object[pathname.slice(pathname.lastIndexOf("/") + 1)]!(...args)) ?? null);
        }
      }
    } catch (thrown) {
      return new Response(thrown instanceof Error ? thrown.stack : String(thrown), { status: 500 });
    }
  },
};
