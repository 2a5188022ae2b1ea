/** A host may die behind any event of a log: whatever it has left is opened, whole, and goes on. */
import {
  createHarness,
  defineTool,
  memoryStorage,
  standard,
  type Model,
  type ModelChunk,
  type SessionView,
} from "turnloop";
import { beforeAll, describe, expect, test } from "vitest";
import { brokenPromises } from "../support/invariants.ts";

const ID = "s";

type Messages = Parameters<Model["stream"]>[0]["messages"];

function* call(index: number, name: string): Generator<ModelChunk> {
  yield { type: "block-start", index, block: { type: "tool-call", name } };
  yield { type: "delta", index, text: "{}" };
  yield { type: "block-end", index };
}

/** Says what it was told; `tools` has it call three at once, of which one asks; `fail` is answered at the second try. */
function model(failures: { left: number }): Model {
  return {
    id: "test/cuts",
    async *stream({ messages }) {
      const text = lastText(messages);
      yield { type: "delta", index: 0, text: `On ${text}: ` };
      if (text === "fail" && failures.left > 0) {
        failures.left -= 1;
        yield { type: "finish", reason: { kind: "error", code: "OVERLOADED", message: "later" } };
        return;
      }
      yield { type: "delta", index: 0, text: "done." };
      yield { type: "block-end", index: 0 };
      if (text === "tools") for (const [i, name] of ["look", "pay", "ask"].entries()) yield* call(i + 1, name);
      yield { type: "usage", usage: { input: 10, output: 5 } };
      yield { type: "finish", reason: { kind: text === "tools" ? "tool-calls" : "stop" } };
    },
  };
}

function lastText(messages: Messages): string {
  const last = messages.at(-1)!;
  if (last.role === "tool") return "results";
  return last.content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

/** What each tool has done, in any life of the session. */
function world() {
  const ran: string[] = [];
  const tool = (name: string, traits: object) =>
    defineTool({
      name,
      description: name,
      inputSchema: { type: "object" },
      ...traits,
      execute: (_, { callId }) => void ran.push(`${name} ${callId}`),
    });
  const tools = [tool("look", { readOnly: true }), tool("pay", {}), tool("ask", { needsApproval: true })];
  return { ran, tools };
}

/** A session with all that may be cut: tools, an approval, steering, a retry, a cancel, a queue. */
async function lived(): Promise<SessionView> {
  const harness = createHarness({
    model: model({ left: 1 }),
    tools: world().tools,
    plugins: [({ hooks }) => hooks.on("agent/request-error", () => ({ kind: "retry" }))],
    onDiagnostic() {},
  });
  const { agent } = await harness.agents.open({ id: ID });
  agent.on("interaction/requested", ({ data }) => {
    agent.steer("meanwhile");
    queueMicrotask(() => void agent.respond(data.id, { decision: "allow" }));
  });
  for (const text of ["hello", "tools", "fail"]) {
    agent.send(text);
    await agent.whenIdle();
  }
  agent.on("assistant/chunk", () => agent.cancel("enough", { queue: "keep" }));
  agent.send("cut off");
  agent.send("waits");
  await agent.whenIdle();
  const { session } = agent;
  await harness.dispose();
  return session;
}

let whole: SessionView;
beforeAll(async () => {
  whole = await lived();
});

describe.for(["close", "continue"] as const)("opened with interrupted: %s", (interrupted) => {
  test("behind each event: the history is valid, nothing has run twice that may not, and the next message is answered", async () => {
    const { events, header } = whole;
    expect(events.length).toBeGreaterThan(60);
    for (let cut = 1; cut <= events.length; cut += 1) {
      const left = events.slice(0, cut);
      const storage = memoryStorage();
      const updatedAt = left.at(-1)!.time;
      const summary = { id: ID, createdAt: header.createdAt, updatedAt, seq: cut, status: "open" } as const;
      await storage.append({ id: ID, from: 0, events: left, header, summary });
      const { ran, tools } = world();
      const harness = createHarness({
        model: model({ left: 0 }),
        tools,
        storage,
        interrupted,
        plugins: [standard()],
        onDiagnostic() {},
      });
      const { agent } = await harness.agents.open({ id: ID });
      for (const { id } of agent.interactions) await agent.respond(id, { decision: "allow" });
      agent.on("interaction/requested", ({ data }) => void agent.respond(data.id, { decision: "allow" }));
      agent.send("goes on", { id: "next" });
      await agent.whenIdle();
      const where = `behind event ${cut - 1}, ${left.at(-1)!.type}`;
      expect(brokenPromises(agent.session, []), where).toEqual([]);
      const texts = agent.session.deriveMessages().map(({ content }) => JSON.stringify(content));
      expect(
        texts.findLast((text) => text.includes("On goes on: done.")),
        where,
      ).toBeDefined();
      const begun = new Set(left.flatMap((event) => (event.type === "tool/start" ? [event.data.callId] : [])));
      const again = ran.filter((one) => !one.startsWith("look") && begun.has(one.split(" ")[1]!));
      expect(again, where).toEqual([]);
      expect(new Set(ran.filter((one) => one.startsWith("pay"))).size, where).toBe(
        ran.filter((one) => one.startsWith("pay")).length,
      );
      await harness.dispose();
    }
  });

  test("a fork at each end of a turn goes on by itself", async () => {
    const { events, header } = whole;
    const ends = events.flatMap(({ type, seq }) => (type === "turn/end" ? [seq] : []));
    expect(ends.length).toBeGreaterThan(3);
    for (const at of ends) {
      const storage = memoryStorage();
      const summary = { id: ID, createdAt: 0, updatedAt: 0, seq: events.length, status: "idle" } as const;
      await storage.append({ id: ID, from: 0, events, header, summary });
      const harness = createHarness({ model: model({ left: 0 }), tools: world().tools, storage, interrupted });
      const { agent } = await harness.agents.fork({ from: ID, at });
      agent.send("goes on");
      await agent.whenIdle();
      expect(brokenPromises(agent.session, []), `at ${at}`).toEqual([]);
      expect(agent.session.deriveMessages().at(-1)?.content).toEqual([{ type: "text", text: "On goes on: done." }]);
      await harness.dispose();
    }
  });
});
