/** What a list shows of a session. */
import { isWaiting } from "../session/parking.ts";
import type { Log } from "../session/log.ts";
import type { SessionSummary } from "../session/types.ts";

export function summaryOf(log: Log, seq = log.seq): SessionSummary {
  const { session, state } = log;
  const { id, header } = session;
  const title = state.title ?? header.meta.title;
  return Object.freeze({
    id,
    createdAt: header.createdAt,
    updatedAt: log.at(log.seq - 1)?.time ?? header.createdAt,
    seq,
    ...(title !== undefined && { title }),
    ...(header.parent && { parent: header.parent.id }),
    status: isWaiting(state) ? "waiting" : state.open ? "open" : "idle",
  });
}
