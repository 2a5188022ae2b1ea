/** The timeline of a session as a store: which turn, step, request and call ran when, and for how long. */
import type { Agent, SessionView } from "../core.ts";
import { followLog } from "./followed.ts";
import { createTimelineFold } from "./timeline-fold.ts";
import type { Timeline } from "./timeline-types.ts";
import type { Store } from "./types.ts";

/**
 * For inspectors: spans with times, usage and errors, from the log alone, of an agent or of any session. A chunk
 * costs the same however long the session is and, but for the first of an answer, changes nothing. Times are those of
 * the events: whole milliseconds of the clock of whoever wrote them.
 */
export function createTimeline(of: Agent | SessionView): Store<Timeline> {
  return followLog(of, createTimelineFold);
}
