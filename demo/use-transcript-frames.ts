/** The conversation, drawn once a frame however fast the model writes. */
import { createTranscript, type Agent, type Store, type Transcript } from "turnloop";
import { useMemo, useSyncExternalStore } from "react";
import { demoTools } from "./tools.ts";

/** Of an agent that runs elsewhere only the log is here: these say how to show it. */
const TOOLS = { tools: demoTools() };
const NOTHING: Transcript = { messages: [] };
const EMPTY: Store<Transcript> = { subscribe: () => () => {}, getSnapshot: () => NOTHING };

export function useTranscriptFrames(agent: Agent | undefined): Transcript {
  const store = useMemo(() => (agent ? onceAFrame(createTranscript(agent, TOOLS)) : EMPTY), [agent]);
  return useSyncExternalStore(store.subscribe, store.getSnapshot);
}

/** Told at the next frame; a page in the background is told when it is seen again. */
function onceAFrame<T>({ subscribe, getSnapshot }: Store<T>): Store<T> {
  return {
    getSnapshot,
    subscribe(listener) {
      let frame: number | undefined;
      const unsubscribe = subscribe(() => {
        frame ??= requestAnimationFrame(() => {
          frame = undefined;
          listener();
        });
      });
      return () => {
        unsubscribe();
        if (frame !== undefined) cancelAnimationFrame(frame);
      };
    },
  };
}
