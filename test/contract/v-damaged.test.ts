/** V: logs with a wrong value anywhere: they are refused with a code, or go on and can be read again. */
import { TurnloopError, type SessionEvent, type SessionStorage } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { local } from "../support/fixture.ts";
import {
  called,
  line,
  logOf,
  plainTurn,
  queued,
  started,
  stepStart,
  storageOf,
  turnStart,
} from "../support/made-log.ts";
import { unwatchedHarness } from "../support/unwatched.ts";

const request = line("request/header", {
  header: { config: { model: "scripted" }, system: "", tools: [], prefix: [], modelId: "scripted/model" },
  reason: "first",
} as never);
const chunks = [
  line("assistant/chunk", { turn: 2, step: 1, chunk: { type: "block-start", index: 0, block: { type: "text" } } }),
  line("assistant/chunk", { turn: 2, step: 1, chunk: { type: "delta", index: 0, text: "half an answer" } }),
];
const calls = line(
  "assistant/message",
  {
    turn: 2,
    step: 1,
    model: "scripted/model",
    content: [{ type: "tool-call", callId: "c", name: "work", arguments: "{}" }],
  },
  { surface: "append" },
);
const begun = [...plainTurn(1), queued("m"), turnStart(2, ["m"]), stepStart(2, 1), request];
/** What a host left behind that died in a stream, or in a body. */
const logs = {
  "in mid stream": logOf(begun, chunks),
  "in a tool": logOf(begun, calls, called(2, 1, "c"), started(2, 1, "c")),
};

const WRONG = [undefined, null, "", "__proto__", -1, 0.5, Number.MAX_SAFE_INTEGER, true, [], {}, [null]];

function* damaged(events: readonly SessionEvent[]): Generator<[what: string, events: SessionEvent[]]> {
  for (const [seq, event] of events.entries()) {
    for (const path of placesIn(event)) {
      for (const wrong of WRONG) {
        const copy = structuredClone(event);
        let holder = copy as unknown as Record<string, unknown>;
        for (const key of path.slice(0, -1)) holder = holder[key] as typeof holder;
        if (wrong === undefined) delete holder[path.at(-1)!];
        else holder[path.at(-1)!] = wrong;
        yield [`${event.type} ${seq}, ${path.join(".")}: ${JSON.stringify(wrong)}`, events.toSpliced(seq, 1, copy)];
      }
    }
  }
}

function* placesIn(value: unknown, path: readonly string[] = []): Generator<readonly string[]> {
  if (path.length > 0) yield path;
  if (typeof value !== "object" || value === null) return;
  for (const [key, inner] of Object.entries(value)) yield* placesIn(inner, [...path, key]);
}

/** The watch of tests would tell of the damage. Undefined when the storage's session was refused with a code; else whether the next message was answered. */
async function goOn(storage: SessionStorage, interrupted: "close" | "continue"): Promise<string | undefined> {
  const model = scriptedModel(Array.from({ length: 4 }, () => "fine"));
  const harness = unwatchedHarness({ storage, model, interrupted, onDiagnostic() {} });
  try {
    const { agent } = await harness.agents.resume({ id: "s" });
    const id = agent.send("go on");
    await agent.whenIdle();
    await agent.flush();
    const taken = agent.session.events.some((event) => event.type === "user/message" && event.data.id === id);
    const end = agent.session.events.findLast((event) => event.type === "turn/end");
    return `taken: ${taken}, ${end?.data.reason.kind}`;
  } catch (thrown) {
    if (TurnloopError.is(thrown)) return undefined;
    throw thrown;
  } finally {
    await harness.dispose();
  }
}

for (const [moment, events] of Object.entries(logs)) {
  for (const interrupted of ["close", "continue"] as const) {
    local(`D22 D24 #229 #241 cut ${moment}, with a wrong value anywhere, opened with "${interrupted}"`, async () => {
      let opened = 0;
      let refused = 0;
      for (const [what, log] of damaged(events)) {
        const storage = await storageOf(log);
        const outcome = await goOn(storage, interrupted);
        if (outcome === undefined) {
          refused += 1;
          continue;
        }
        opened += 1;
        expect(outcome, what).toBe("taken: true, completed");
        const next = unwatchedHarness({ storage });
        await expect(next.sessions.load("s"), `${what}: it is read again`).resolves.toBeDefined();
        await next.dispose();
      }
      expect(opened).toBeGreaterThan(100);
      expect(refused).toBeGreaterThan(100);
    });
  }
}
