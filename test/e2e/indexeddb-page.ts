/** What runs in the pages of these tests: an agent that talks on and on, and a reader of what is stored. */
import { createHarness, type Diagnostic, type Harness, type Model, type SessionEvent } from "turnloop";
import { indexedDBStorage } from "turnloop/indexeddb";

export interface PageApi {
  /** Opens the agent `chat`, which answers without end. Each stored seq is logged as `stored <seq>`. Answers `ok`, or a code. */
  talk(text: string, claim?: "fail" | "wait" | "steal"): Promise<string>;
  /** Hands in one more message of this id, and does not wait. */
  say(id: string): void;
  /** The same, at the very end: in `pagehide`. */
  sayLast(id: string): void;
  state(): { durable: string; seq: number; status: string; ends: unknown[] };
  /** The stored log, read by a storage of its own. */
  read(): Promise<SessionEvent[] | undefined>;
  list(): Promise<readonly { id: string; seq: number }[]>;
  /** Stores random bytes as a session of its own. Answers `ok`, or a code. */
  fill(bytes: number): Promise<string>;
  durable(): boolean;
  told(): readonly { code: string; sessionId: string | undefined }[];
}

const told: Diagnostic[] = [];
const onDiagnostic = (one: Diagnostic): void => void told.push(one);
const storage = indexedDBStorage({ name: "e2e", onDiagnostic });
let harness: Harness | undefined;
let lastWords: string | undefined;

// Before the storage listens: what is said after it has looked would be lost.
addEventListener("pagehide", () => {
  if (lastWords !== undefined) api.say(lastWords);
});

/** Some pieces each few milliseconds, until it is stopped. */
const endless: Model = {
  id: "endless",
  async *stream(_request, { signal }) {
    yield { type: "block-start", index: 0, block: { type: "text" } };
    for (let i = 0; !signal.aborted; i += 1) {
      yield { type: "delta", index: 0, text: `word ${i} ` };
      if (i % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 2));
    }
  },
};

const agent = () => harness!.agents.get("chat")!;

async function read(): Promise<SessionEvent[] | undefined> {
  const found = await storage.load("chat");
  const events: SessionEvent[] = [];
  if (found) for await (const batch of found.batches) events.push(...batch);
  return found && events;
}

async function tellStored(): Promise<void> {
  for (;;) {
    const { seq } = agent().session;
    const code = await codeOf(harness!.sessions.get("chat")!.flush());
    if (code !== "ok") return;
    console.log(`stored ${seq}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "ok",
    (thrown: { code: string }) => thrown.code,
  );
}

const api: PageApi = {
  async talk(text, claim = "wait") {
    harness ??= createHarness({ storage, model: endless, onDiagnostic });
    const opened = await codeOf(harness.agents.open({ id: "chat", claim }));
    if (opened !== "ok") return opened;
    agent().send(text);
    void tellStored();
    return "ok";
  },
  say: (id) => void agent().send(`message ${id}`, { id }),
  sayLast: (id) => void (lastWords = id),
  state: () => ({
    durable: agent().session.durable,
    seq: agent().session.seq,
    status: agent().getSnapshot().status,
    ends: agent().session.events.flatMap((event) => (event.type === "turn/end" ? [event.data.reason] : [])),
  }),
  read,
  list: async () => (await storage.list()).sessions.map(({ id, seq }) => ({ id, seq })),
  async fill(bytes) {
    const random = (): string => String.fromCharCode(...crypto.getRandomValues(new Uint8Array(10_000)));
    const events: SessionEvent[] = Array.from({ length: Math.ceil(bytes / 10_000) }, (_, seq) => ({
      seq,
      time: 1,
      type: "tool/progress",
      data: { callId: "x", value: random() },
    }));
    const id = `fill-${Math.random()}`;
    const summary = { id, createdAt: 1, updatedAt: 1, seq: events.length, status: "idle" as const };
    const header = { version: 1, id, createdAt: 1, meta: {} };
    return codeOf(storage.append({ id, from: 0, events, summary, header }));
  },
  durable: () => storage.durable,
  told: () => told.map(({ code, sessionId }) => ({ code, sessionId })),
};

Object.assign(globalThis, { page: api });
