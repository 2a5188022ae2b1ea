/** A hook's kind decides what its listener gets and must answer. */
import { expectTypeOf, test } from "vitest";
import type {
  Agent,
  CallConfig,
  Emit,
  Hooks,
  ModelChunk,
  PreToolDecision,
  SessionEvent,
  ToolExecution,
  ToolOutcome,
  Unregister,
} from "turnloop";

declare const hooks: Hooks;

declare module "turnloop" {
  interface HookMap {
    "mine/done": Emit<{ readonly count: number }>;
  }
}

test("registering answers its undo", () => {
  expectTypeOf(hooks.on("tools/change", () => {})).toEqualTypeOf<Unregister>();
});

test("an unknown hook is an error", () => {
  // @ts-expect-error there is no such hook
  hooks.on("agent/nope", () => {});
});

test("a hook of one's own is known by declaration merging", () => {
  hooks.on("mine/done", (payload) => {
    expectTypeOf(payload).toEqualTypeOf<{ readonly count: number }>();
  });
});

test("an emit hook is told, and answers nothing", () => {
  hooks.on("session/event", (payload) => {
    expectTypeOf(payload.event).toEqualTypeOf<SessionEvent>();
  });
  // @ts-expect-error nobody reads its answer
  hooks.on("session/event", () => 3);
});

test("a waterfall hook gets next, and must answer with its type", () => {
  hooks.on("agent/request", ({ agent, config, step }, next) => {
    expectTypeOf(agent).toEqualTypeOf<Agent>();
    expectTypeOf(step).toEqualTypeOf<number>();
    expectTypeOf(next).returns.toEqualTypeOf<Promise<CallConfig>>();
    return { ...config, temperature: 0 };
  });
  hooks.on("tools/pre-execute", async ({ execution }, next) => {
    expectTypeOf(execution).toEqualTypeOf<ToolExecution>();
    expectTypeOf(await next()).toEqualTypeOf<PreToolDecision>();
    return { kind: "deny", reason: "no" };
  });
  // @ts-expect-error a configuration is no number
  hooks.on("agent/request", async () => 3);
  // @ts-expect-error a waterfall must answer
  hooks.on("agent/request", () => {});
  // @ts-expect-error a denial says why
  hooks.on("tools/pre-execute", () => ({ kind: "deny" }));
});

test("only around hooks narrow the signal", () => {
  hooks.on("tools/execute", async ({ execution }, next) => {
    const outcome = await next({ signal: execution.signal });
    expectTypeOf(outcome).toEqualTypeOf<ToolOutcome>();
    return outcome;
  });
  hooks.on("model/stream", async ({ signal }, next) => {
    const stream = await next({ signal });
    expectTypeOf(stream).toEqualTypeOf<AsyncIterable<ModelChunk | readonly ModelChunk[]>>();
    return stream;
  });
  // @ts-expect-error this next takes nothing
  hooks.on("agent/request", async ({ signal }, next) => next({ signal }));
});

test("a serial hook may answer, or abstain", () => {
  hooks.on("agent/turn-stop", ({ step }) => (step > 9 ? { stop: { by: "me", reason: "enough" } } : undefined));
  hooks.on("agent/turn-stop", async () => {});
  // @ts-expect-error a stop says who and why
  hooks.on("agent/turn-stop", () => ({ stop: true }));
});

test("a parallel hook is awaited and answers nothing", () => {
  hooks.on("session/flush", async ({ session }) => {
    expectTypeOf(session.id).toEqualTypeOf<string>();
  });
  // @ts-expect-error nobody reads its answer
  hooks.on("session/flush", () => 3);
});
