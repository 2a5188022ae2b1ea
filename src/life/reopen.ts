/** What is made right when a session is opened, before anybody is told of it. */
import { isParked } from "../session/parking.ts";
import { resumeTurn } from "../session/resume.ts";
import { queuedMessages } from "../session/state.ts";
import { repair } from "../session/repair.ts";
import type { Instance } from "../loop/instance.ts";
import { writeWaiting } from "../loop/waiting.ts";

/** A message that has cut short so many turns is not tried again. */
const CUT_SHORT = 3;

/**
 * A turn that was cut short is closed, or resumed, unless it is parked. A message that seems to kill its turns is
 * dropped. Injections that waited for the end of a tool batch become a turn of their own.
 */
export function reopen({ core, log, report, tools, agent }: Instance, interrupted: "close" | "continue"): void {
  if (log.seq === 0) return;
  log.unheard(() => {
    const goesOn =
      interrupted === "continue" && !isParked(log.state, tools.idempotent) && resumeTurn(log, tools.idempotent);
    if (!goesOn) repair(log, tools.idempotent);

    const deadly = queuedMessages(log.state).filter((entry) => entry.cutShort >= CUT_SHORT);
    for (const { id } of deadly) {
      log.write("inbox/dropped", { ids: Object.freeze([id]), reason: "cut short" });
      report({
        code: "MESSAGE_DROPPED",
        message: `the message ${id} was cut short ${CUT_SHORT} times and is dropped; send it again`,
        sessionId: agent.id,
      });
    }

    // A turn that goes on can be cancelled from now on, before the loop has begun.
    if (log.state.open) core.begin();
    const inject = queuedMessages(log.state).find((entry) => entry.as === "inject");
    if (!inject || log.state.open) return;
    const turn = log.state.turn + 1;
    log.write("turn/start", { turn, trigger: Object.freeze({ kind: "injection" as const, source: inject.source }) });
    writeWaiting(log);
    log.write("turn/end", { turn, reason: Object.freeze({ kind: "completed" as const }) });
  });
}
