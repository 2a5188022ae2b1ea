/** S: a plugin that fails can end a turn, and nothing else. */
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, resultsOf, staged, talk, tool } from "../support/calls.ts";
import { local } from "../support/fixture.ts";
import { dataOf } from "../support/scene.ts";
import { endOf, typesOf } from "../support/wait.ts";

const broken = (): never => {
  throw new Error("broken");
};

const asked = [
  "agent/prompt-submit",
  "agent/session-prefix",
  "agent/pre-step",
  "prompt/assemble",
  "agent/request",
  "model/stream",
  "agent/step-result",
  "agent/turn-continuation",
  "agent/turn-stop",
] as const;

for (const hook of asked) {
  for (const how of ["throws", "rejects"] as const) {
    local(`#215 a plugin on ${hook} that ${how} ends the turn, and the next turn runs`, async () => {
      const { agent, hooks, session } = await staged({ model: scriptedModel(["one", "two"]) });
      const off = hooks.on(hook, (how === "throws" ? broken : async () => broken()) as never);
      await talk(agent);
      expect(endOf(session)).toMatchObject({ kind: "error", message: "broken" });
      off();
      await talk(agent, "again");
      expect(endOf(session)).toEqual({ kind: "completed" });
      expect(dataOf(session, "turn/start")).toHaveLength(2);
    });
  }
}

const told = [
  "session/event",
  "agent/status",
  "agent/queued",
  "agent/error",
  "tools/result",
  "interaction/requested",
  "interaction/resolved",
] as const;

/** A session in which every notification is told. */
async function eventful(prepare: (stage: Awaited<ReturnType<typeof eventfulStage>>) => void) {
  const stage = await eventfulStage();
  prepare(stage);
  stage.hooks.on("interaction/requested", ({ interaction }) =>
    stage.agent.respond(interaction.id, { decision: "allow" }),
  );
  stage.hooks.on("agent/turn-continuation", ({ turn }, next) => (turn === 2 ? broken() : next()));
  await talk(stage.agent);
  await talk(stage.agent, "again");
  return stage;
}

function eventfulStage() {
  return staged({
    model: scriptedModel([calls("act"), "one", "two"]),
    tools: [tool("act", () => "acted", { needsApproval: true })],
  });
}

for (const hook of told) {
  local(`#215 #216 listeners of ${hook} that throw and reject change nothing, and starve nobody`, async () => {
    const plain = await eventful(() => {});
    let heard = 0;
    const { session, diagnostics } = await eventful(({ hooks }) => {
      hooks.on(hook, broken);
      hooks.on(hook, async () => broken());
      hooks.on(hook, () => void (heard += 1));
    });
    expect(heard).toBeGreaterThan(0);
    expect(typesOf(session)).toEqual(typesOf(plain.session));
    expect(dataOf(session, "turn/end")).toEqual(dataOf(plain.session, "turn/end"));
    expect(resultsOf(session)).toEqual(resultsOf(plain.session));
    const failures = diagnostics.filter(({ code }) => code === "LISTENER_FAILED");
    expect(failures).toHaveLength(2 * heard);
  });
}

local("#215 #216 readers of the log that throw change nothing, and starve nobody", async () => {
  const plain = await eventful(() => {});
  const seen: number[] = [];
  const { session } = await eventful(({ agent }) => {
    agent.session.subscribe(broken);
    agent.session.subscribe(async () => broken());
    agent.session.subscribe(({ seq }) => void seen.push(seq));
    agent.on("turn/end", broken);
  });
  expect(typesOf(session)).toEqual(typesOf(plain.session));
  expect(dataOf(session, "turn/end")).toEqual(dataOf(plain.session, "turn/end"));
  expect(seen).toEqual(session.events.map(({ seq }) => seq));
});

local("#215 #216 watchers of the snapshot that throw change nothing, and starve nobody", async () => {
  const plain = await eventful(() => {});
  let [failing, looked] = [true, 0];
  try {
    const { session, diagnostics } = await eventful(({ agent }) => {
      agent.subscribe(() => void (failing && broken()));
      agent.subscribe(() => void (looked += 1));
    });
    expect(typesOf(session)).toEqual(typesOf(plain.session));
    expect(dataOf(session, "turn/end")).toEqual(dataOf(plain.session, "turn/end"));
    expect(diagnostics.map(({ code }) => code)).toEqual(Array.from({ length: looked }, () => "LISTENER_FAILED"));
  } finally {
    failing = false;
  }
});

local("#216 an append succeeds, whatever its observers do, and answers with what was stored", async () => {
  const { agent, hooks, harness } = await staged({ model: scriptedModel([]) });
  harness.sessions.define("test/note" as never, { betweenTurns: true });
  hooks.on("session/event", broken);
  agent.session.subscribe(broken);
  const session = agent.scope!.session;
  const event = session.append("test/note" as never, { text: "hi" } as never);
  expect(event).toMatchObject({ seq: 0, type: "test/note", data: { text: "hi" } });
  expect(session.at(0)).toBe(event);
});

local("#216 an observer that writes from inside a notification cannot get in the way of the turn", async () => {
  const { agent, hooks, session } = await staged({ model: scriptedModel(["one"]) });
  hooks.on("session/event", ({ event, session: written }) => {
    if (event.type === "step/start") written.append("agent/configured", { patch: { temperature: 1 } });
  });
  await talk(agent);
  expect(endOf(session)).toEqual({ kind: "completed" });
  expect(session.events.map(({ seq }) => seq)).toEqual(session.events.map((_, i) => i));
});

local("#217 a listener of agent/error that throws never strands a turn", async () => {
  const { agent, hooks, session } = await staged({ model: scriptedModel([{ error: { message: "down" } }, "two"]) });
  hooks.on("agent/error", broken);
  hooks.on("agent/error", async () => broken());
  await talk(agent);
  expect(endOf(session)).toMatchObject({ kind: "error", message: "down" });
  await talk(agent, "again");
  expect(endOf(session)).toEqual({ kind: "completed" });
});

local("#217 a listener of agent/error may cancel, send and steer", async () => {
  const { agent, hooks, session } = await staged({ model: scriptedModel([{ error: { message: "down" } }, "two"]) });
  hooks.on("agent/error", () => void agent.send("try this instead"));
  await talk(agent);
  expect(dataOf(session, "turn/end").map(({ reason }) => reason.kind)).toEqual(["error", "completed"]);
});

// #218: with D11 there are no validators, so that nothing can refuse a boundary, and nothing retries one.
// What can be seen of it: a turn's boundaries are written once, whatever throws around them, with the first reason.
local("#218 D11 listeners that throw on step/end and turn/end leave one of each, with its reason", async () => {
  const { agent, hooks, session } = await staged({ model: scriptedModel([{ error: { message: "down" } }]) });
  hooks.on("session/event", ({ event }) => void (event.type.endsWith("/end") && broken()));
  agent.on("step/end", broken);
  agent.on("turn/end", broken);
  await talk(agent);
  expect(dataOf(session, "step/end")).toHaveLength(1);
  expect(dataOf(session, "turn/end")).toMatchObject([{ turn: 1, reason: { kind: "error", message: "down" } }]);
});

local("#215 diagnostics that cannot be told harm nobody", async () => {
  const { createHarness } = await import("turnloop");
  const harness = createHarness({ model: scriptedModel(["one"]), onDiagnostic: broken });
  harness.hooks.on("agent/status", broken);
  const { agent } = await harness.agents.open({ id: "session" });
  expect(endOf(await talk(agent))).toEqual({ kind: "completed" });
});

local("#215 a clock, an id or a summary that fails is not the end of the loop", async () => {
  const { agent, session } = await staged({ model: scriptedModel(["one", "two"]), onSummary: broken });
  await talk(agent);
  await talk(agent, "again");
  expect(dataOf(session, "turn/end").map(({ reason }) => reason.kind)).toEqual(["completed", "completed"]);
});
