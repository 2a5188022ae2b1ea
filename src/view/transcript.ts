/** The transcript of a session as a store for user interfaces. */
import type { Agent, SessionView } from "../core.ts";
import { followLog } from "./followed.ts";
import { createPresenter } from "./present.ts";
import { createTranscriptFold } from "./transcript-fold.ts";
import type { Store, Transcript } from "./types.ts";

/**
 * The conversation as people read it, kept up with the log of an agent or of any session, stored ones
 * included. Of an agent whose loop runs here, tool calls carry what their tools `present`.
 *
 * The log is read when `getSnapshot` is called, each event once. An event costs the same however long the
 * session and the answer are; a snapshot that differs from the last costs one shallow copy of the list of
 * messages. So those who draw may well ask once a frame rather than once an event, which is how often
 * subscribers are told, synchronously. The log is followed only for those who subscribed: a store that is
 * dropped leaves nothing behind.
 */
export function createTranscript(of: Agent | SessionView): Store<Transcript> {
  const agent = "getSnapshot" in of ? of : undefined;
  const presenter = createPresenter(() => agent?.scope);
  return followLog(of, () => createTranscriptFold(presenter));
}
