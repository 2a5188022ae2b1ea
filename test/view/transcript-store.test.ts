/** The transcript as a store: what it reads, whom it tells, what it leaves behind. */
import {
  createHarness,
  createTranscript,
  memoryStorage,
  type Agent,
  type SessionEvent,
  type SessionView,
} from "turnloop";
import { expect, test } from "vitest";
import { delta, handWritten, openStep, text, USER, type HandWritten } from "./hand-written.ts";

interface Watched extends Omit<SessionView, "start"> {
  start: number;
  readonly reads: readonly number[];
  readonly followers: number;
}

/** A view of a session that counts who reads and who follows. */
function watched(session: SessionView, start = 0): Watched {
  const reads: number[] = [];
  let followers = 0;
  const view: Watched = {
    id: session.id,
    header: session.header,
    get seq() {
      return session.seq;
    },
    start,
    get events() {
      return session.events.slice(view.start);
    },
    durable: "stored",
    at(seq) {
      reads.push(seq);
      return seq < view.start ? undefined : session.at(seq);
    },
    deriveMessages: () => session.deriveMessages(),
    history: () => session.history(),
    subscribe(listener, options) {
      const off = session.subscribe(listener, options);
      followers += 1;
      return () => {
        followers -= 1;
        off();
      };
    },
    reads,
    get followers() {
      return followers;
    },
  };
  return view;
}

/** A handle whose session can be replaced, as a remote agent's can. */
function handle(first: SessionView): { readonly agent: Agent; replace(session: SessionView): void } {
  const listeners = new Set<() => void>();
  let session = first;
  const seen: Pick<Agent, "session" | "getSnapshot" | "subscribe"> = {
    get session() {
      return session;
    },
    getSnapshot: () => ({ status: "idle", waiting: false, queue: [], interactions: [], durable: "stored" }),
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  const agent = seen as Agent; // as much of a handle as a transcript looks at
  return {
    agent,
    replace(next) {
      session = next;
      for (const listener of listeners) listener();
    },
  };
}

/** A log as it lies in a storage, faults and all. */
async function stored(events: readonly SessionEvent[]): Promise<SessionView> {
  const storage = memoryStorage();
  const header = { version: 1, id: "old", createdAt: 0, meta: {} };
  const summary = { id: "old", createdAt: 0, updatedAt: 0, seq: events.length, status: "idle" as const };
  await storage.append({ id: "old", from: 0, events, header, summary });
  return (await createHarness({ storage }).sessions.load("old"))!;
}

test("each event is read once, however long the session and the answer are", async () => {
  const log = await handWritten();
  openStep(log);
  const view = watched(log.session);
  const store = createTranscript(view);
  for (let n = 0; n < 500; n += 1) {
    log.stream(delta("word "));
    store.getSnapshot();
  }
  store.getSnapshot();
  expect(view.reads).toEqual(Array.from({ length: log.session.seq }, (_, seq) => seq));
});

test("without subscribers it is right, and follows nobody", async () => {
  const log = await handWritten();
  const view = watched(log.session);
  const store = createTranscript(view);
  expect(store.getSnapshot()).toEqual({ messages: [] });
  openStep(log);
  log.stream(delta("Hel"), delta("lo"));
  expect(store.getSnapshot().messages.at(-1)?.parts).toEqual([{ type: "text", text: "Hello", streaming: true }]);
  expect(view.followers).toBe(0);
});

test("the session is followed only for subscribers; one that is subscribed twice is told twice", async () => {
  const log = await handWritten();
  const view = watched(log.session);
  const store = createTranscript(view);
  let told = 0;
  const listener = (): void => void (told += 1);
  const off = store.subscribe(listener);
  const offAgain = store.subscribe(listener);
  log.add("session/titled", { title: "a" });
  expect(told).toBe(2);
  off();
  off();
  expect(view.followers).toBe(0);
  offAgain();
});

test("an event that shows nothing leaves the snapshot the same object", async () => {
  const log = await handWritten();
  openStep(log);
  log.stream(delta("x"));
  const store = createTranscript(log.session);
  const before = store.getSnapshot();
  log.stream({ type: "usage", usage: { output: 1 } });
  log.add("session/titled", { title: "a" });
  expect(store.getSnapshot()).toBe(before);
});

test("when the session of a remote agent is replaced, its subscribers are told and read the other log", async () => {
  const [first, second]: HandWritten[] = [await handWritten(), await handWritten()];
  openStep(first!);
  const { agent, replace } = handle(first!.session);
  const store = createTranscript(agent);
  let told = 0;
  store.subscribe(() => (told += 1));
  expect(store.getSnapshot().messages).toHaveLength(2);
  replace(second!.session);
  expect(told).toBe(1);
  expect(store.getSnapshot().messages).toHaveLength(0);
  openStep(second!);
  expect(told).toBe(4);
  expect(store.getSnapshot().messages).toHaveLength(2);
  first!.stream(delta("late"));
  expect(told).toBe(4);
});

test("of a tail that begins within a step it shows what is there, and all once the beginning is there", async () => {
  const log = await handWritten();
  openStep(log);
  log.stream(delta("Hello "), delta("there"));
  const view = watched(log.session, 4);
  const store = createTranscript(view);
  expect(store.getSnapshot().messages).toMatchObject([{ id: "assistant_1_1", turn: 1, parts: [{ text: "there" }] }]);
  view.start = 0;
  expect(store.getSnapshot()).toMatchObject({ messages: [{ role: "user" }, { role: "assistant" }] });
});

test("what compaction replaced stays readable, and the summary is a mark", async () => {
  const log = await handWritten();
  openStep(log);
  log.add("assistant/message", { turn: 1, step: 1, model: "m", content: text("hi") });
  const from = log.session.events.find((event) => event.type === "user/message")!.seq;
  const to = log.session.seq - 1;
  const data = { id: "s1", content: text("They said hello."), source: { kind: "compaction" } };
  log.session.append("context/message", data, { surface: { replace: [from, to] }, cites: [[from, to]] });
  const { messages } = createTranscript(log.session).getSnapshot();
  expect(messages).toMatchObject([
    { role: "user", parts: [{ text: "hello" }] },
    { role: "assistant", parts: [{ text: "hi" }] },
    { id: "s1", role: "mark", mark: { kind: "compacted" }, parts: [{ text: "They said hello." }] },
  ]);
});

test("a call without a result in a turn that is over never ran, or is unknown if it was started", async () => {
  const log = await handWritten();
  openStep(log);
  const calls = ["a", "b"].map((callId) => ({ type: "tool-call" as const, callId, name: "t", arguments: "{}" }));
  log.add("assistant/message", { turn: 1, step: 1, model: "m", content: calls });
  for (const { callId } of calls) {
    log.add("tool/call", { turn: 1, step: 1, callId, name: "t", arguments: "{}" });
  }
  log.add("tool/start", { turn: 1, step: 1, callId: "b", attempt: 1 });
  const { seq } = log.session;
  const ends: SessionEvent[] = [
    { seq, time: 0, type: "step/end", data: { turn: 1, step: 1 } },
    { seq: seq + 1, time: 0, type: "turn/end", data: { turn: 1, reason: { kind: "interrupted" } } },
  ];
  const { messages } = createTranscript(await stored([...log.session.events, ...ends])).getSnapshot();
  expect(messages[1]).toMatchObject({ state: "interrupted", parts: [{ state: "failed" }, { state: "unknown" }] });
});

test("two questions of one call are shown one after the other, and a claimed client tool runs", async () => {
  const log = await handWritten();
  openStep(log);
  const content = [{ type: "tool-call" as const, callId: "c", name: "t", arguments: "{}" }];
  log.add("assistant/message", { turn: 1, step: 1, model: "m", content });
  log.add("tool/call", { turn: 1, step: 1, callId: "c", name: "t", arguments: "{}" });
  const store = createTranscript(log.session);
  const card = (): unknown => store.getSnapshot().messages[1]!.parts[0];
  log.add("interaction/requested", { id: "c/1", kind: "question", payload: "one?", callId: "c" });
  log.add("interaction/requested", { id: "c/2", kind: "question", payload: "two?", callId: "c" });
  expect(card()).toMatchObject({ state: "asking", interaction: { id: "c/2" } });
  log.add("interaction/resolved", { id: "c/2", outcome: "answered", value: 2 });
  expect(card()).toMatchObject({ state: "asking", interaction: { id: "c/1" } });
  log.add("interaction/resolved", { id: "c/1", outcome: "answered", value: 1 });
  expect(card()).toMatchObject({ state: "running" });
  log.add("interaction/requested", { id: "c/client", kind: "client-tool", payload: {}, callId: "c" });
  log.add("interaction/claimed", { id: "c/client", client: "tab" });
  expect(card()).toMatchObject({ state: "running", interaction: { claimedBy: "tab" } });
});

test("blocks that come whole, files, sources and tools of the provider are parts in their order", async () => {
  const log = await handWritten();
  openStep(log);
  const file = { type: "file" as const, mediaType: "image/png", data: { base64: "AAAA" } };
  const source = { type: "source" as const, url: "https://example.com" };
  const search = { type: "provider-tool" as const, name: "search", data: { query: "x" } };
  const ends = [file, source, search].map((block, index) => ({ type: "block-end" as const, index, block }));
  log.stream(...ends, { type: "block-end", index: 0, block: source }, delta("late", 0));
  const store = createTranscript(log.session);
  const parts = [
    { type: "file", block: file },
    { type: "source", block: source },
    { type: "tool", name: "search", arguments: '{"query":"x"}', state: "done" },
  ];
  const streamed = store.getSnapshot().messages[1]!.parts;
  expect(streamed).toMatchObject(parts);
  log.add("assistant/message", { turn: 1, step: 1, model: "m", content: [file, source, search] });
  expect(store.getSnapshot().messages[1]!.parts).toEqual(streamed);
});

test("a message of several blocks and a file is one message of several parts", async () => {
  const log = await handWritten();
  log.add("turn/start", { turn: 1, trigger: { kind: "message", source: USER } });
  const file = { type: "file" as const, mediaType: "text/plain", data: { url: "https://example.com/a" } };
  log.add("user/message", { id: "u", content: [...text("see"), file], source: USER });
  const [message] = createTranscript(log.session).getSnapshot().messages;
  expect(message!.parts).toEqual([
    { type: "text", text: "see", streaming: false },
    { type: "file", block: file },
  ]);
});
