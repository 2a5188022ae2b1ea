/** What the tests of beginnings and ends share: the ways to begin, who is told what, and stores that keep one waiting. */
import {
  createHarness,
  memoryStorage,
  TurnloopError,
  type AgentHandle,
  type AgentOptions,
  type Hooks,
  type LifecycleOptions,
  type SessionStorage,
} from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { harnessWith } from "./fixture.ts";
import { deferred } from "./wait.ts";

type Stage = NonNullable<Parameters<typeof harnessWith>[0]>;

/** Every way in which an agent comes to life, and what `agent/session-start` says of it. */
export const WAYS = {
  create: "startup",
  resume: "resume",
  "open (new)": "startup",
  "open (stored)": "resume",
  fork: "startup",
} as const;
export type Way = keyof typeof WAYS;
export const ways = Object.keys(WAYS) as Way[];

/**
 * A harness, and what begins the agent "s" there in the given way. What is to be resumed or forked is stored
 * already, before the storage is wrapped.
 */
export async function stage(
  way: Way,
  options: Stage = {},
  wrap: (storage: SessionStorage) => SessionStorage = (storage) => storage,
): Promise<{
  harness: ReturnType<typeof harnessWith>;
  begin(options?: AgentOptions & LifecycleOptions): Promise<AgentHandle>;
}> {
  const storage = options.storage ?? memoryStorage();
  if (way === "resume" || way === "open (stored)") await store(storage, "s");
  if (way === "fork") await store(storage, "source");
  const harness = harnessWith({ model: scriptedModel(["one", "two", "three"]), ...options, storage: wrap(storage) });
  const { agents } = harness;
  return {
    harness,
    begin(given = {}) {
      switch (way) {
        case "create":
          return agents.create({ id: "s", ...given });
        case "resume":
          return agents.resume({ id: "s", ...given });
        case "open (new)":
        case "open (stored)":
          return agents.open({ id: "s", ...given });
        case "fork":
          return agents.fork({ from: "source", id: "s", ...given });
      }
    },
  };
}

/** Stores a session that has answered each of the messages in a turn of its own. */
export async function store(
  storage: SessionStorage,
  id: string,
  { messages = ["hello"], meta = {} }: { messages?: readonly string[]; meta?: Record<string, string> } = {},
): Promise<void> {
  const harness = createHarness({ storage, model: scriptedModel(messages.map((text) => `answer to ${text}`)) });
  const { agent, dispose } = await harness.agents.create({ id, meta });
  for (const text of messages) {
    agent.send(text);
    await agent.whenIdle();
  }
  await dispose();
}

/** All that is told of lives, in order: `"agent/status s running"`. */
export function toldBy(hooks: Hooks, told: string[] = []): string[] {
  hooks.on("session/created", ({ session }) => void told.push(`session/created ${session.id}`));
  hooks.on("session/disposed", ({ session }) => void told.push(`session/disposed ${session.id}`));
  hooks.on("agent/created", ({ agent }) => void told.push(`agent/created ${agent.id}`));
  hooks.on("agent/disposed", ({ agent }) => void told.push(`agent/disposed ${agent.id}`));
  hooks.on("agent/session-start", ({ agent, source }) => void told.push(`agent/session-start ${agent.id} ${source}`));
  hooks.on("agent/status", ({ agent, status }) => void told.push(`agent/status ${agent.id} ${status}`));
  return told;
}

export interface HeldStorage extends SessionStorage {
  /** Resolves at the first call. */
  readonly reached: Promise<void>;
  release(): void;
  fail(error: unknown): void;
}

/** The storage, in which every call of the method waits until it is released. */
export function held(inner: SessionStorage, method: "load" | "append"): HeldStorage {
  const gate = deferred();
  const reached = deferred();
  gate.promise.catch(() => {});
  const wait = async (...args: never[]): Promise<never> => {
    reached.resolve();
    await gate.promise;
    return (inner[method] as (...args: never[]) => Promise<never>)(...args);
  };
  return Object.assign(
    { ...inner, [method]: wait },
    {
      reached: reached.promise,
      release: () => gate.resolve(),
      fail: gate.reject,
    },
  );
}

/** The code of the error with which it is refused, thrown or rejected. */
export async function codeOf(act: Promise<unknown> | (() => unknown)): Promise<string> {
  try {
    await (typeof act === "function" ? act() : act);
  } catch (thrown) {
    if (TurnloopError.is(thrown)) return thrown.code;
    throw thrown;
  }
  throw new Error("nothing was refused");
}

/** The code of the error that it throws at once. */
export function codeThrownBy(act: () => unknown): string {
  try {
    act();
  } catch (thrown) {
    if (TurnloopError.is(thrown)) return thrown.code;
    throw thrown;
  }
  throw new Error("nothing was thrown");
}

/** The very value with which it fails. */
export async function reasonOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => {
      throw new Error("it has not failed");
    },
    (reason: unknown) => reason,
  );
}

/** Everything that can happen by itself has happened: no timer, nothing from outside. */
export async function calm(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) {
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
  }
}

/** What the promise gives, if nothing from outside is needed for it. */
export async function promptly<T>(promise: Promise<T>): Promise<T> {
  const late = calm().then(() => {
    throw new Error("it is still pending");
  });
  late.catch(() => {});
  return Promise.race([promise, late]);
}

/** Whether it is pending still, when everything that can happen by itself has happened. */
export async function isPending(promise: Promise<unknown>): Promise<boolean> {
  let pending = true;
  const done = (): void => void (pending = false);
  promise.then(done, done);
  await calm();
  return pending;
}
