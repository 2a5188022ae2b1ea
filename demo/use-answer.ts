/** Answers an interaction, once. */
import type { Agent, JsonValue } from "turnloop";
import { useState } from "react";
import { problemOf } from "./text.ts";

export function useAnswer(
  agent: Agent,
  id: string,
): { answer(value: JsonValue): void; readonly isSent: boolean; readonly problem: string | undefined } {
  const [isSent, setSent] = useState(false);
  const [problem, setProblem] = useState<string>();
  return {
    isSent,
    problem,
    answer(value) {
      setSent(true);
      setProblem(undefined);
      agent.respond(id, value).catch((error: unknown) => {
        setSent(false);
        setProblem(problemOf(error));
      });
    },
  };
}
