/** The agents that a harness starts by itself. */
import type { Agents, DeclaredAgent } from "../agent/types.ts";
import { failureOf, type Report, TurnloopError } from "../errors.ts";
import { defined } from "../json.ts";
import type { HarnessOptions } from "../scope.ts";

/** Resolves when all are live or have failed; a failure is reported, and stops none of the others. */
export async function startDeclared(agents: Agents, options: HarnessOptions, report: Report): Promise<void> {
  await Promise.all(
    (options.agents ?? []).map(async (declared) => {
      try {
        await start(agents, declared, options);
      } catch (cause) {
        const code = TurnloopError.is(cause, "SESSION_NOT_FOUND") ? "SESSION_NOT_FOUND" : "AGENT_NOT_STARTED";
        report(failureOf(code, `the agent ${declared.id} could not be started`, cause));
      }
    }),
  );
}

async function start(
  agents: Agents,
  { id: label, sessionId, resumeSessionId, model, cwd }: DeclaredAgent,
  options: HarnessOptions,
): Promise<void> {
  const newId = options.newId ?? (() => crypto.randomUUID());
  const id = sessionId ?? resumeSessionId ?? `${label}-session-${newId()}`;
  if (resumeSessionId === undefined) {
    // It asks for the context by itself.
    await agents.open(defined({ id, model, meta: cwd === undefined ? cwd : { cwd } }));
  } else {
    await agents.resume(defined({ id, model, context: await options.context?.(id) }));
  }
}
