/** What is made right when a session is opened, before anybody is told of it. */
import { queuedMessages } from "../session/state.ts";
import { repair } from "../storage/live.ts";
import type { Instance } from "../loop/instance.ts";
import { writeWaiting } from "../loop/waiting.ts";

/** A message that has cut short so many turns is not tried again. */
const CUT_SHORT = 3;

/**
 * A turn that was cut short is closed, unless it is parked. A message that seems to kill its turns is
 * dropped. Injections that waited for the end of a tool batch become a turn of their own.
 */
export function reopen({ log, report, tools, agent }: Instance): void {
  if (log.seq === 0) return;
  log.unheard(() => {
    repair(log, tools.idempotent);
    // Whoever had claimed a client tool has gone with the host.
    for (const interaction of log.state.interactions.values()) interaction.claimedBy = undefined;

    if (!log.state.open) {
      for (const [id, entry] of log.state.inbox)
        if (entry.as === "steer") log.state.inbox.set(id, { ...entry, as: "send" });
    }
    const deadly = queuedMessages(log.state).filter((entry) => entry.cutShort >= CUT_SHORT);
    for (const { id } of deadly) {
      log.write("inbox/dropped", { ids: Object.freeze([id]), reason: "cut short" });
      report({
        code: "MESSAGE_DROPPED",
        message: `the message ${id} was cut short ${CUT_SHORT} times and is dropped; send it again to try once more`,
        sessionId: agent.id,
      });
    }

    const inject = queuedMessages(log.state).find((entry) => entry.as === "inject");
    if (!inject || log.state.open) return;
    const turn = log.state.turn + 1;
    log.write("turn/start", { turn, trigger: Object.freeze({ kind: "injection" as const, source: inject.source }) });
    writeWaiting(log);
    log.write("turn/end", { turn, reason: Object.freeze({ kind: "completed" as const }) });
  });
}
