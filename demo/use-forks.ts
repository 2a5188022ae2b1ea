/** Copies of the chat, and what is done in them first. The chat itself stays as it is. */
import type { Agent, ContentBlock } from "turnloop";
import { useCallback, useEffect, useRef } from "react";
import { contentOf, draftOf, type Draft } from "./draft.ts";
import { forkAfter, forkBefore, forkToRepeat } from "./forks.ts";
import { problemOf } from "./text.ts";

export interface Forks {
  edit(message: string, said: Draft): void;
  repeat(turn: number): void;
  fork(turn: number): void;
}

export function useForks(
  agent: Agent | undefined,
  showChat: (id: string) => void,
  setDraft: (draft: Draft) => void,
  setProblem: (problem: string | undefined) => void,
): Forks {
  /** To be said in the copy once it is open. */
  const unsaid = useRef<{ readonly chat: string; readonly content: readonly ContentBlock[] }>(undefined);
  useEffect(() => {
    if (!agent || agent.id !== unsaid.current?.chat) return;
    agent.send(unsaid.current.content);
    unsaid.current = undefined;
  }, [agent]);

  const attempt = useCallback(
    (what: () => Promise<void>): void => {
      setProblem(undefined);
      what().catch((thrown: unknown) => setProblem(problemOf(thrown)));
    },
    [setProblem],
  );
  return {
    edit: useCallback(
      (message, said) =>
        attempt(async () => {
          if (!agent) return;
          showChat(await forkBefore(agent.id, message));
          setDraft(said);
        }),
      [agent, attempt, showChat, setDraft],
    ),
    repeat: useCallback(
      (turn) =>
        attempt(async () => {
          const copy = agent && (await forkToRepeat(agent, turn));
          if (!copy) return;
          unsaid.current = { chat: copy.id, content: contentOf(draftOf(copy.content)) };
          showChat(copy.id);
        }),
      [agent, attempt, showChat],
    ),
    fork: useCallback(
      (turn) =>
        attempt(async () => {
          if (agent) showChat(await forkAfter(agent, turn));
        }),
      [agent, attempt, showChat],
    ),
  };
}
