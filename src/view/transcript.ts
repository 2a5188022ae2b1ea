/** The transcript of a session as a store for user interfaces. */
import type { Agent, SessionView, ToolDefinition } from "../core.ts";
import { followLog } from "./followed.ts";
import { createPresenter } from "./present.ts";
import { createTranscriptFold } from "./transcript-fold.ts";
import type { Store, Transcript } from "./types.ts";

export interface TranscriptOptions {
  /** Of an agent that runs elsewhere, or of a stored session, whose own tools are not here. None of them is run. */
  readonly tools?: readonly ToolDefinition[];
}

/**
 * The conversation as people read it, kept up with the log of an agent or of any session, stored ones
 * included. Tool calls carry what their tools `present`: those of an agent whose loop runs here, else those given.
 *
 * The log is read when `getSnapshot` is called, each event once. An event costs the same however long the
 * session and the answer are; a snapshot that differs from the last costs one shallow copy of the list of
 * messages. So those who draw may well ask once a frame rather than once an event, which is how often
 * subscribers are told, synchronously. The log is followed only for those who subscribed: a store that is
 * dropped leaves nothing behind.
 */
export function createTranscript(of: Agent | SessionView, options: TranscriptOptions = {}): Store<Transcript> {
  const agent = "getSnapshot" in of ? of : undefined;
  const given = new Map(options.tools?.map((tool) => [tool.name, tool]));
  const presenter = createPresenter((name) => agent?.scope?.tools.get(name) ?? given.get(name));
  return followLog(of, () => createTranscriptFold(presenter));
}
