/** The life of an agent that will be killed: what it does, and what it tells those outside while it lives. */
import {
  createHarness,
  defineTool,
  type Diagnostic,
  type Harness,
  type Model,
  type ModelChunk,
  type SessionStorage,
} from "turnloop";

/** Where in its work a life ends. */
export const moments = ["stream", "tool", "flush"] as const;
export type Moment = (typeof moments)[number];

/** What is told to somebody who survives. */
export type Told =
  /** It has come to the place where it may be killed. */
  | { readonly kind: "reached"; readonly moment: Moment }
  /** The storage has acknowledged events of a session: this text is theirs. */
  | {
      readonly kind: "stored";
      readonly id: SessionName;
      readonly from: number;
      readonly to: number;
      readonly hash: number;
    }
  /** A message was accepted: it is in the log, and stored. */
  | { readonly kind: "accepted"; readonly message: string }
  /** A person is asked, and the question is stored. */
  | { readonly kind: "asked"; readonly interaction: string }
  /** A tool does what it does to the world. */
  | { readonly kind: "effect"; readonly tool: string; readonly callId: string };

/** The session that is always at work, and the one that waits for a person. */
export const BUSY = "busy";
export const WAITING = "waiting";
export type SessionName = typeof BUSY | typeof WAITING;

export type Tell = (told: Told) => void | Promise<void>;

/** Works until it is killed. */
export async function live(storage: SessionStorage, moment: Moment, tell: Tell): Promise<void> {
  const harness = harnessOn(storage, { interrupted: "close", tell, moment });
  const waiting = await harness.agents.open({ id: WAITING, claim: "wait" });
  while (waiting.agent.interactions.length === 0) {
    if (waiting.agent.status === "idle" && waiting.agent.queue.length === 0) waiting.agent.send("pay");
    await pause();
  }
  await waiting.agent.flush();
  await tell({ kind: "asked", interaction: waiting.agent.interactions[0]!.id });

  const { agent } = await harness.agents.open({ id: BUSY, claim: "wait" });
  for (;;) {
    const message = agent.send(moment);
    await agent.flush();
    await tell({ kind: "accepted", message });
    await agent.whenIdle();
  }
}

export interface LifeOptions {
  readonly interrupted: "close" | "continue";
  readonly tell: Tell;
  /** Where it tells that it has come to; without one nobody is told. */
  readonly moment?: Moment;
  readonly onDiagnostic?: (diagnostic: Diagnostic) => void;
}

/** A harness as each life has it. */
export function harnessOn(storage: SessionStorage, options: LifeOptions): Harness {
  const { interrupted, tell, moment, onDiagnostic = () => {} } = options;
  const reach = (place: Moment): void | Promise<void> => {
    if (place === moment) return tell({ kind: "reached", moment: place });
  };
  const effect = (name: string, traits: { idempotent?: true; needsApproval?: true }) =>
    defineTool({
      name,
      description: name,
      inputSchema: { type: "object" },
      ...traits,
      async execute(_, { callId }) {
        await reach("tool");
        await tell({ kind: "effect", tool: name, callId });
        for (let i = 0; i < 3; i += 1) await pause();
        await reach("tool");
        return "done";
      },
    });
  return createHarness({
    storage: telling(storage, tell, () => reach("flush")),
    model: talker(() => reach("stream")),
    tools: [effect("charge", {}), effect("look", { idempotent: true }), effect("pay", { needsApproval: true })],
    interrupted,
    onDiagnostic,
  });
}

function telling(storage: SessionStorage, tell: Tell, reach: () => void | Promise<void>): SessionStorage {
  return {
    ...storage,
    async append(batch) {
      await reach();
      await storage.append(batch);
      const { id, from, events } = batch;
      await tell({ kind: "stored", id: id as SessionName, from, to: from + events.length, hash: hashOf(events) });
    },
  };
}

/** Of the JSON of what it is given. */
export function hashOf(value: unknown): number {
  let hash = 0;
  for (const character of JSON.stringify(value)) hash = (Math.imul(hash, 31) + character.codePointAt(0)!) | 0;
  return hash;
}

/** Does what the last message asks for: talks long, calls tools, or says yes. */
function talker(reach: () => void | Promise<void>): Model {
  return {
    id: "test/talker",
    async *stream({ messages }) {
      const asked = textOf(messages.findLast(({ role }) => role === "user")?.content);
      const answered = messages.at(-1)?.role === "tool";
      if (asked === "pay" && !answered) {
        yield* calls("pay");
      } else if (asked === "tool" && !answered) {
        yield* calls("charge", "look", "charge");
      } else if (asked === "stream" || asked === "flush") {
        for (let i = 0; i < 600; i += 1) {
          yield { type: "delta", index: 0, text: `word ${i} ` };
          if (asked === "stream" && i % 5 === 0) await Promise.all([reach(), pause()]);
          if (asked === "flush" && i % 100 === 0) await pause();
        }
        yield { type: "finish", reason: { kind: "stop" } };
      } else {
        yield { type: "delta", index: 0, text: "Yes." };
        yield { type: "finish", reason: { kind: "stop" } };
      }
    },
  };
}

function* calls(...names: readonly string[]): Generator<ModelChunk> {
  for (const [index, name] of names.entries()) {
    yield { type: "block-start", index, block: { type: "tool-call", name } };
    yield { type: "delta", index, text: "{}" };
    yield { type: "block-end", index };
  }
  yield { type: "finish", reason: { kind: "tool-calls" } };
}

function textOf(content: readonly { readonly type: string; readonly text?: string }[] = []): string {
  return content.map(({ text = "" }) => text).join("");
}

/** A turn of the event loop. */
export function pause(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve);
  });
}
