/** J: a history that grows too long. The policies are written here, on the public hooks alone. */
import { createHarness, jsonEqual, TurnloopError, type ErrorData, type Session, type SessionEvent } from "turnloop";
import { scriptedModel, type ScriptedAnswer } from "turnloop/testing";
import { expect, test } from "vitest";
import { calls, tool } from "../support/calls.ts";
import {
  assistant,
  called,
  logOf,
  plainTurn,
  result,
  said,
  stepEnd,
  stepStart,
  storageOf,
  turnStart,
  user,
  type Line,
} from "../support/made-log.ts";
import { sse } from "../support/provider-answers.ts";
import { dataOf, scene, type Scene } from "../support/scene.ts";
import { chatDialects, delta, says, useWire } from "../support/wire.ts";

const open = useWire();
const overflow: ScriptedAnswer = { error: { code: "CONTEXT_OVERFLOW", message: "too long" } };

/** The seqs of what the history is made of now. */
function nodesOf({ events }: { readonly events: readonly SessionEvent[] }): number[] {
  let nodes: number[] = [];
  for (const { seq, surface } of events) {
    if (surface === "append") nodes.push(seq);
    else if (surface) {
      const [from, to] = surface.replace.map((one) => nodes.indexOf(one));
      nodes = nodes.toSpliced(from!, to! - from! + 1, seq);
    }
  }
  return nodes;
}

let summaries = 0;
/** Puts a summary in the place of these neighbours, whose seqs need not rise: a summary stands where its range began. */
function replace(session: Session, nodes: readonly number[]): void {
  const id = `summary-${(summaries += 1)}`;
  const content = [{ type: "text", text: "summary" }] as const;
  const surface = { replace: [nodes[0]!, nodes.at(-1)!] } as const;
  session.append("context/message", { id, content, source: { kind: "summary" } }, { surface, cites: nodes });
}

/** Everything becomes a summary, but for the last `keep` nodes. */
function compact(session: Session, keep: number): void {
  const nodes = nodesOf(session).slice(0, -keep);
  if (nodes.length > 0) replace(session, nodes);
}

function codeOf(attempt: () => void): string | undefined {
  try {
    attempt();
    return undefined;
  } catch (error) {
    return (error as TurnloopError).code;
  }
}

const logOfScene = ({ harness, session }: Scene): Session => harness.sessions.get(session.id)!;

test("B158 a cut parts no call from its result, wherever it is tried", async () => {
  const lines: Line[] = [
    turnStart(1),
    user("one"),
    stepStart(1, 1),
    assistant(1, 1, "I do", "a", "b", "c"),
    ...["a", "b", "c"].flatMap((id) => [called(1, 1, id), result(1, 1, id)]),
    stepEnd(1, 1),
    stepStart(1, 2),
    assistant(1, 2, "done"),
    stepEnd(1, 2),
  ];
  const { sessions } = createHarness();
  const accepted: string[] = [];
  const count = nodesOf({ events: logOf(lines) }).length;
  expect(count).toBe(6);
  for (let from = 0; from < count; from += 1) {
    for (let to = from; to < count; to += 1) {
      const session = await sessions.create({ id: `s-${from}-${to}` });
      for (const { type, data, surface } of lines) session.append(type, data, surface && { surface });
      const nodes = nodesOf(session);
      const before = [session.seq, said(session.deriveMessages())];
      const refusal = codeOf(() => replace(session, nodes.slice(from, to + 1)));
      if (refusal === undefined) accepted.push(`${from}-${to}`);
      const kept =
        refusal === undefined ||
        (refusal === "INVALID_SURFACE" && jsonEqual([session.seq, said(session.deriveMessages())], before));
      expect(kept, `${from}-${to}`).toBe(true);
    }
  }
  // Nodes: the question, the message with its calls, three results, the last word.
  expect(accepted).toEqual(["0-0", "0-4", "0-5", "1-4", "1-5", "5-5"]);
});

test("B160 a tail that ends in an open call is repaired before anything is compacted", async () => {
  const events = logOf(
    plainTurn(1),
    turnStart(2),
    user("do"),
    stepStart(2, 1),
    assistant(2, 1, "", "a"),
    called(2, 1, "a"),
  );
  const model = scriptedModel(["fine"]);
  const harness = createHarness({ storage: await storageOf(events), model });
  const { agent } = await harness.agents.open({ id: "s" });
  harness.hooks.on("agent/pre-step", () => compact(harness.sessions.get("s")!, 4));
  agent.send("and now?");
  await agent.whenIdle();
  expect(said(model.requests[0]!.messages).slice(1)).toEqual([
    "user: do",
    "assistant: calls a",
    "tool: fails a",
    "user: and now?",
  ]);
});

test.each<[string, (session: Session) => void, string]>([
  ["does not shrink anything", () => {}, "CONTEXT_OVERFLOW"],
  ["makes it longer", (session) => compact(session, 1), "CONTEXT_OVERFLOW"],
  [
    "throws",
    () => {
      throw new TurnloopError("SUMMARY_FAILED", "no summary");
    },
    "SUMMARY_FAILED",
  ],
])("B161 a compaction that %s does not go on for ever", async (_, attempt, code) => {
  const one = await scene(Array.from({ length: 20 }, () => overflow));
  let asked = false;
  one.hooks.on("agent/request-error", () => ((asked = true), { kind: "new-step" }));
  one.hooks.on("agent/pre-step", () => void (asked && attempt(logOfScene(one))));
  expect(await one.say("go")).toMatchObject({ kind: "error", code });
  expect(one.model.requests.length).toBeLessThanOrEqual(3);
  expect(dataOf(one.session, "request/failed")[0]!.error).toMatchObject({
    code: "CONTEXT_OVERFLOW",
    message: "too long",
  });
});

test("B163 a turn whose tools fill the context is compacted between its steps", async () => {
  const answers = Array.from({ length: 20 }, () => calls("big"));
  const one = await scene([...answers, "fine"], { tools: [tool("big", () => "x".repeat(1000))] });
  one.hooks.on("agent/pre-step", () => {
    if (JSON.stringify(one.session.deriveMessages()).length > 5000) compact(logOfScene(one), 2);
  });
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(one.model.requests).toHaveLength(21);
  for (const { messages } of one.model.requests) expect(JSON.stringify(messages).length).toBeLessThan(7500);
});

test("B163 a request that overflows in the middle of a turn is compacted and tried once more", async () => {
  const one = await scene([calls("add"), overflow, "fine"], { tools: [tool("add")] });
  let asked = false;
  one.hooks.on(
    "agent/request-error",
    ({ error }) => ((asked = error.code === "CONTEXT_OVERFLOW"), { kind: "new-step" }),
  );
  one.hooks.on("agent/pre-step", () => void (asked && compact(logOfScene(one), 2)));
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(said(one.model.requests[2]!.messages)[0]).toContain("summary");
});

const said400 = (message: string, more: object = {}): object => ({ error: { message, ...more } });
const overflows: [string, number, object | string][] = [
  ["OpenAI", 400, said400("Your input exceeds the limit", { code: "context_length_exceeded" })],
  [
    "vLLM",
    400,
    {
      object: "error",
      message: "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
      type: "BadRequestError",
    },
  ],
  ["llama.cpp", 400, said400("the request exceeds the available context size", { type: "exceed_context_size_error" })],
  ["Anthropic", 400, said400("prompt is too long: 210000 tokens > 200000 maximum", { type: "invalid_request_error" })],
  [
    "Gemini",
    400,
    said400("The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).", {
      status: "INVALID_ARGUMENT",
    }),
  ],
  ["Groq", 400, said400("Please reduce the length of the messages or completion.")],
  ["xAI", 400, { error: "This model's maximum prompt length is 131072 but the request contains 200000 tokens." }],
  ["Kimi", 400, said400("Invalid request: Your request exceeded model token limit: 262144")],
  ["413 without a body", 413, ""],
];

test.each(overflows)("B164 the overflow of %s is told as one", async (_, status, body) => {
  for (const dialect of chatDialects) {
    const wired = await open([{ status, body: typeof body === "string" ? body : JSON.stringify(body) }], {
      dialect,
      id: dialect,
    });
    expect((await wired.ask()).reason).toMatchObject({ kind: "error", code: "CONTEXT_OVERFLOW" });
  }
});

test.each<[string, number, string]>([
  [
    "a limit per minute",
    429,
    "Request too large for m on tokens per minute (TPM): Limit 30000, Requested 40000. Please reduce the length of the messages.",
  ],
  [
    "a limit per minute that is no 429",
    400,
    "Rate limit reached: tokens per minute. Reduce the length of your prompt.",
  ],
  ["another refusal", 400, "max_tokens must be at least 1"],
])("B164 %s is no overflow", async (_, status, message) => {
  for (const dialect of chatDialects) {
    const wired = await open([{ status, body: JSON.stringify(said400(message)) }], { dialect, id: dialect });
    const { reason } = await wired.ask();
    expect(reason).toMatchObject({ kind: "error", code: status === 429 ? "RATE_LIMITED" : "MODEL_ERROR" });
  }
});

test("B164 what a provider cuts off in silence can be seen by its usage and the model's window", async () => {
  const model = Object.assign(scriptedModel([{ text: "hm", usage: { input: 5000 } }]), { contextWindow: 4096 });
  const one = await scene([], { model });
  expect(await one.say("go")).toEqual({ kind: "completed" });
  const { usage } = dataOf(one.session, "assistant/message")[0]!;
  expect(usage!.input!).toBeGreaterThan(one.harness.models.get(model.id)!.contextWindow!);
});

test.each(chatDialects)(
  "B166 an overflow that is told inside a good answer goes the same way (%s)",
  async (dialect) => {
    const inside = sse(
      delta({ content: "Hi" }),
      said400("This model's maximum context length is 10 tokens", { code: "context_length_exceeded" }),
    );
    const wired = await open([inside, says("fine")], { dialect });
    const told: ErrorData[] = [];
    wired.hooks.on("agent/request-error", ({ error }) => (told.push(error), { kind: "new-step" }));
    expect(await wired.ask()).toMatchObject({ reason: { kind: "completed" }, text: "fine" });
    expect(told).toMatchObject([{ code: "CONTEXT_OVERFLOW" }]);
  },
);

test("B167 a session that is compacted twenty times stays in its bounds, and is read back the same", async () => {
  const one = await scene(Array.from({ length: 20 }, (_, n) => `answer ${n}`));
  one.hooks.on("agent/pre-step", () => {
    const log = logOfScene(one);
    const nodes = nodesOf(log);
    // Not in the log yet; not in the history; out of its bounds on one side.
    for (const wrong of [[log.seq + 5], [0], [...nodes, log.seq + 5], [-1, ...nodes]]) {
      expect(() => replace(log, wrong)).toThrow(TurnloopError);
    }
    compact(log, 1);
  });
  for (let n = 0; n < 20; n += 1) expect(await one.say(`question ${n}`)).toEqual({ kind: "completed" });
  for (const { messages } of one.model.requests.slice(1)) expect(messages).toHaveLength(2);
  await one.agent.flush();
  const view = await one.harness.sessions.load("session");
  expect(view!.deriveMessages()).toEqual(one.session.deriveMessages());
  expect(dataOf(one.session, "context/message")).toHaveLength(19);
  const nodes = nodesOf(one.session);
  expect(nodes).toHaveLength(3);
});
