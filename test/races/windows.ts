/** Every place where the loop lets others in: how to be called there, and what follows when that goes wrong. */
import type { HookName, SessionEvent, SessionEventType } from "turnloop";
import type { Place, Visit, World } from "./world.ts";

export interface Window {
  readonly name: string;
  /** `asked`: the loop waits for what the visitor answers. `told`: it does not. `outside`: nobody is called. */
  readonly kind: "asked" | "told" | "outside";
  /** A visitor that fails: the turn fails with it, or nothing comes of it. */
  readonly failing: "fails" | "contained";
  /** A visitor that never answers: the loop waits for it, or only for a time. */
  readonly deaf: "waits" | "goes on" | "unavailable";
  /** Whether something waits for an answer. */
  readonly asks: boolean;
  /** Whether the turn has its last write before the end behind it, so that a refusal may be too late for it. */
  readonly late: boolean;
  /** Whether a whole turn can have passed. */
  install(world: World, visit: Visit): void;
}

type Traits = Partial<Omit<Window, "name" | "install">>;

function window(name: string, install: Window["install"], traits: Traits): Window {
  return { name, kind: "told", failing: "contained", deaf: "goes on", asks: false, late: false, ...traits, install };
}

type Payload = { readonly execution?: { readonly name: string }; readonly agent?: { readonly id: string } };

/** A hook whose answer the loop waits for; its payload is of interest only as far as it names a tool. */
function asked(hook: HookName, traits: Traits & { readonly tool?: string; readonly serial?: true } = {}): Window {
  const { tool, serial, ...rest } = traits;
  const install: Window["install"] = ({ harness }, visit) => {
    const listener = async ({ execution }: Payload, next?: () => unknown): Promise<unknown> => {
      if (tool !== undefined && execution?.name !== tool) return next?.();
      await visit();
      return serial ? undefined : next?.();
    };
    harness.hooks.on(hook as "agent/request", listener as never, { prepend: true });
  };
  const name = tool === undefined ? hook : `${hook} of ${tool}`;
  return window(name, install, { kind: "asked", failing: "fails", deaf: "waits", ...rest });
}

/** A hook that only tells. */
function told(name: string, hook: HookName, fits: (payload: never) => boolean, traits: Traits = {}): Window {
  const install: Window["install"] = ({ harness }, visit) =>
    void harness.hooks.on(
      hook as "session/created",
      ((payload: never) => (fits(payload) ? visit() : undefined)) as never,
    );
  return window(name, install, traits);
}

/** An event of the log. */
function event<T extends SessionEventType>(
  type: T,
  {
    name = type,
    fits = () => true,
    ...traits
  }: Traits & { name?: string; fits?: (event: SessionEvent<T>) => boolean } = {},
): Window {
  const install: Window["install"] = ({ agent }, visit) =>
    void agent.session.subscribe((one) => (one.type === type && fits(one as SessionEvent<T>) ? visit() : undefined));
  return window(name, install, traits);
}

function place(name: Place, traits: Traits): Window {
  return window(name, ({ places }, visit) => void places.set(name, visit), { kind: "asked", deaf: "waits", ...traits });
}

const ASKS = { asks: true } as const;
const LATE = { late: true } as const;
const CONTAINED = { failing: "contained" } as const;
const callOf = (tool: string) => (one: SessionEvent<"tool/call">) => one.data.name === tool;
/** Calls are numbered by the place of their block, behind the text. */
const idOf = (tool: string) => (one: { readonly data: { readonly callId: string } }) =>
  one.data.callId.endsWith(`_${["asks", "look", "work", "remote"].indexOf(tool) + 1}`);
const kindOf = (kind: string) => (one: SessionEvent<"interaction/requested">) => one.data.kind === kind;

export const BEFORE: readonly Window[] = [
  window("idle", () => {}, { kind: "outside" }),
  window("sent, and not woken", () => {}, { kind: "outside" }),
  told("agent/queued", "agent/queued", () => true),
  told(
    "agent/status running",
    "agent/status",
    ({ agent, status }: { agent: { id: string }; status: string }) => agent.id === "s" && status === "running",
  ),
  event("turn/start"),
  asked("agent/turn-start", { serial: true, ...CONTAINED }),
  asked("agent/prompt-submit"),
  event("user/message"),
  asked("prompt/assemble"),
  asked("agent/session-prefix"),
  asked("agent/pre-step", { serial: true }),
  event("step/start"),
  asked("agent/request"),
  event("request/header"),
];

export const ANSWERING: readonly Window[] = [
  asked("model/stream"),
  asked("agent/request-error"),
  event("request/failed"),
  event("assistant/chunk", { name: "the first assistant/chunk" }),
  place("model", { failing: "fails" }),
  event("assistant/chunk", { name: "the last assistant/chunk", fits: ({ data }) => data.chunk.type === "finish" }),
  asked("agent/step-result"),
  event("assistant/message"),
];

export const CALLING: readonly Window[] = [
  event("tool/call", { fits: callOf("look") }),
  event("interaction/requested", { name: "interaction/requested of an approval", fits: kindOf("approval"), ...ASKS }),
  place("validate", { ...CONTAINED, ...ASKS }),
  asked("tools/pre-execute", { tool: "look", ...CONTAINED, ...ASKS }),
  window("guard", ({ places }, visit) => void places.set("guard", visit), ASKS),
  event("tool/start", { fits: idOf("look"), ...ASKS }),
  place("store tool/start", { ...CONTAINED, deaf: "unavailable", ...ASKS }),
  asked("tools/execute", { tool: "look", ...CONTAINED, ...ASKS }),
  place("body", { ...CONTAINED, ...ASKS }),
  asked("tools/post-execute", { tool: "look", ...CONTAINED, ...ASKS }),
  event("tool/result", { fits: idOf("look"), ...ASKS }),
  told("tools/result", "tools/result", ({ execution }: Payload) => execution?.name === "look", ASKS),
  event("interaction/resolved", { name: "interaction/resolved of an approval" }),
  asked("tools/pre-execute", { tool: "work", ...CONTAINED }),
  event("tool/start", { name: "tool/start of work", fits: idOf("work") }),
  event("interaction/requested", { name: "interaction/requested of a question", fits: kindOf("question"), ...ASKS }),
  asked("tools/post-execute", { tool: "work", ...CONTAINED }),
  asked("tools/execute", { tool: "remote", ...CONTAINED, ...LATE }),
  told(
    "interaction/requested of a client tool",
    "interaction/requested",
    ({ interaction }: { interaction: { kind: string } }) => interaction.kind === "client-tool",
    { ...ASKS, ...LATE },
  ),
  asked("tools/post-execute", { tool: "remote", ...CONTAINED, ...LATE }),
];

export const ENDING: readonly Window[] = [
  event("inbox/queued", {
    name: "inbox/queued of a context",
    fits: ({ data }) => data.source.kind === "policy",
    ...ASKS,
  }),
  event("context/message", LATE),
  event("step/end", LATE),
  asked("agent/turn-continuation", LATE),
  asked("agent/turn-stop", { serial: true, ...LATE }),
  event("turn/end", LATE),
  asked("session/flush", { ...CONTAINED, deaf: "goes on", ...LATE }),
  place("store turn/end", { ...CONTAINED, deaf: "goes on", ...LATE }),
  told(
    "agent/status idle",
    "agent/status",
    ({ agent, status }: { agent: { id: string }; status: string }) => agent.id === "s" && status === "idle",
    LATE,
  ),
];

export const WINDOWS: readonly Window[] = [...BEFORE, ...ANSWERING, ...CALLING, ...ENDING];
