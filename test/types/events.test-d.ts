/** The log is a closed union that a plugin can open; the handle and the run carry its types. */
import { expectTypeOf, test } from "vitest";
import {
  createHarness,
  createTranscript,
  run,
  TurnloopError,
  type Agent,
  type ContentBlock,
  type Harness,
  type Plugin,
  type Scope,
  type SessionEvent,
  type Transcript,
  type TurnEndReason,
} from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { z } from "zod";

declare const agent: Agent;
declare const harness: Harness;

declare module "turnloop" {
  interface SessionEventMap {
    "todo/write": { readonly todos: readonly string[] };
  }
}

test("an event's type says what its data is", () => {
  const read = (event: SessionEvent): void => {
    if (event.type === "turn/end") expectTypeOf(event.data.reason).toEqualTypeOf<TurnEndReason>();
    if (event.type === "tool/result") expectTypeOf(event.data.content).toEqualTypeOf<readonly ContentBlock[]>();
    // @ts-expect-error there is no such event
    if (event.type === "turn/nope") read(event);
  };
  agent.on("tool/result", (event) => {
    expectTypeOf(event.data.isError).toEqualTypeOf<boolean>();
  });
});

test("an event is plain data that nobody changes", () => {
  const change = (event: SessionEvent<"turn/start">): void => {
    // @ts-expect-error read only
    event.seq = 1;
    // @ts-expect-error read only
    event.data = { turn: 1, trigger: event.data.trigger };
  };
  expectTypeOf(change).toBeFunction();
});

test("an event of one's own is known by declaration merging", () => {
  harness.sessions.define("todo/write", { betweenTurns: true });
  const session = harness.sessions.get("one");
  session?.append("todo/write", { todos: ["read"] });
  // @ts-expect-error the data has its type
  session?.append("todo/write", { todos: "read" });
  agent.on("todo/write", (event) => {
    expectTypeOf(event.data.todos).toEqualTypeOf<readonly string[]>();
  });
});

test("a run answers with the type of its output schema", async () => {
  const plain = await run(agent, "hello").result;
  expectTypeOf(plain.text).toEqualTypeOf<string>();
  expectTypeOf(plain.output).toEqualTypeOf<undefined>();
  const typed = await run(agent, "sum", { output: z.object({ total: z.number() }) }).result;
  expectTypeOf(typed.output).toEqualTypeOf<{ total: number }>();
  expectTypeOf(run(agent, "hello").textStream()).toExtend<AsyncIterable<string>>();
});

test("content is text or blocks", () => {
  expectTypeOf(agent.send).parameter(0).toEqualTypeOf<string | readonly ContentBlock[]>();
  // @ts-expect-error a block has a type
  agent.send([{ text: "hello" }]);
  // @ts-expect-error a number is no content
  agent.send(3);
});

test("a harness is a scope that a plugin registers on", () => {
  expectTypeOf<Harness>().toExtend<Scope>();
  const plugin: Plugin = ({ hooks, tools }) => {
    tools.guard(({ name }) => (name === "rm" ? "no" : undefined));
    return hooks.on("tools/change", () => {});
  };
  createHarness({ model: scriptedModel(["hi"]), plugins: [plugin] });
  // @ts-expect-error there is no such option
  createHarness({ modle: "x" });
});

test("a transcript is an external store", () => {
  expectTypeOf(createTranscript(agent).getSnapshot()).toEqualTypeOf<Transcript>();
  createTranscript(agent.session);
});

test("an error is told by its code", () => {
  const thrown: unknown = new Error();
  if (TurnloopError.is(thrown, "SESSION_CONFLICT")) expectTypeOf(thrown.code).toEqualTypeOf<string>();
});
