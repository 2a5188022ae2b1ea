/** React hooks over agents: one that is open as long as the component is mounted, and what was said with it. */
import { useEffect, useState, useSyncExternalStore } from "react";
import { createTranscript, type Store, type Transcript, type TranscriptOptions } from "turnloop";
import { TurnloopError } from "../../src/core.ts";
import type { Agent, AgentHandle, Harness, OpenAgentOptions } from "../../src/core.ts";
import { createAgentStore, type Open, type OpenedAgent } from "./agent-store.ts";

export type { OpenedAgent } from "./agent-store.ts";

/**
 * Opens an agent by a function of one's own, such as one that connects to a remote agent, and disposes its
 * handle on unmount. It is opened anew when `key` changes, and only then: `open` may be another function at
 * each render. The signal aborts when the component goes away before the agent is there.
 */
export function useAgent(open: Open, key: string): OpenedAgent;
/**
 * Opens `options.id` at the harness, and gives the handle back on unmount. Components that name the same id
 * share one agent; the last one to unmount tears it down. It is opened anew when the id or the harness
 * changes; the other options count when it is opened.
 */
export function useAgent(harness: Harness, options: OpenAgentOptions): OpenedAgent;
export function useAgent(source: Open | Harness, target: string | OpenAgentOptions): OpenedAgent {
  const harness = typeof source === "function" ? undefined : source;
  const key = typeof target === "string" ? target : target.id;
  const open: Open = (signal) => openAgent(source, target, signal);
  const [held, hold] = useState(() => ({ harness, key, store: createAgentStore(open) }));
  const store = held.harness === harness && held.key === key ? held.store : createAgentStore(open);
  if (store !== held.store) hold({ harness, key, store });
  // Before the subscription, which may open: effects run in this order.
  useEffect(() => store.openBy(open));
  return useSyncExternalStore(store.subscribe, store.getSnapshot, store.getSnapshot);
}

async function openAgent(
  source: Open | Harness,
  target: string | OpenAgentOptions,
  signal: AbortSignal,
): Promise<AgentHandle> {
  if (typeof source === "function") return source(signal);
  if (typeof target === "string") {
    throw new TurnloopError("INVALID_OPTIONS", `useAgent(harness, options) needs an object: write { id: "${target}" }`);
  }
  const both = target.signal ? AbortSignal.any([signal, target.signal]) : signal;
  return source.agents.open({ ...target, signal: both });
}

/**
 * The conversation of an agent, kept up to date; empty while there is no agent. Of an agent that runs elsewhere, tool
 * calls carry what the `tools` given here `present`: a list that stays the same from one render to the next.
 */
export function useTranscript(agent: Agent | undefined, { tools }: TranscriptOptions = {}): Transcript {
  const store = agent ? transcriptOf(agent, tools) : EMPTY;
  return useSyncExternalStore(store.subscribe, store.getSnapshot, store.getSnapshot);
}

const NO_MESSAGES: Transcript = Object.freeze({ messages: Object.freeze([]) });
const EMPTY: Store<Transcript> = Object.freeze({ subscribe: () => () => {}, getSnapshot: () => NO_MESSAGES });

type Tools = TranscriptOptions["tools"];
const transcripts = new WeakMap<Agent, { readonly tools: Tools; readonly store: Store<Transcript> }>();

/** One for each agent: components share the fold, and a remount does not repeat it. */
function transcriptOf(agent: Agent, tools: Tools): Store<Transcript> {
  let known = transcripts.get(agent);
  if (known?.tools !== tools || !known) {
    known = { tools, store: createTranscript(agent, tools && { tools }) };
    transcripts.set(agent, known);
  }
  return known.store;
}
