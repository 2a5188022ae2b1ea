/** What a page could not store before it went becomes part of the log again, or is told. */
import {
  jsonEqual,
  type Diagnostic,
  type SessionEvent,
  type SessionEventMap,
  type SessionSummary,
} from "../../src/core.ts";
import type { Database, SessionRow } from "./indexeddb-database.ts";
import type { Tail } from "./indexeddb-journal.ts";
import { newMark, readFrom, writeRecords } from "./indexeddb-log.ts";
import { createPacker } from "./packing.ts";

type Queued = SessionEventMap["inbox/queued"];

/**
 * Where the log still ends as the tail found it, the tail goes on with it. Where another writer came
 * between, its accepted input is queued again, each id once, and the rest is told as TAIL_LOST, with the
 * events as its `cause`. May run any number of times.
 */
export async function mergeTail(database: Database, tail: Tail, report: (told: Diagnostic) => void): Promise<void> {
  const { batch, mark, cut } = tail;
  const { id, from, events, header, summary } = batch;
  let told: { readonly why: string; readonly events: readonly SessionEvent[]; readonly queued: number } | undefined;

  await database.write(async (tx) => {
    told = undefined;
    const row = await tx.objectStore("sessions").get(id);
    if (!row) {
      const isNew = from === 0 && header !== undefined && mark === undefined;
      if (!isNew) {
        told = { why: "the session was deleted", events, queued: 0 };
        return [];
      }
      const born = { id, header, length: 0, age: 0, summary, log: newMark(), epoch: 0 };
      return extend(born, events, summary);
    }
    const isSame = mark === undefined ? jsonEqual(row.header, header) : row.log === mark.log;
    const since = isSame ? await readFrom(tx, row, Math.min(from, row.length)) : [];
    const shared = Math.min(since.length, events.length);
    if (isSame && row.length >= from && jsonEqual(since.slice(0, shared), events.slice(0, shared)))
      return extend(row, events.slice(shared), summary);
    const input = isSame ? missingInput(events, since) : [];
    told = {
      why: isSame ? "another tab has written since" : "another session has its id",
      events,
      queued: input.length,
    };
    return extend(row, input.map(queueAgain(row)), row.summary);

    function extend(base: SessionRow, more: readonly SessionEvent[], after: SessionSummary): Promise<unknown>[] {
      if (more.length === 0) return [];
      const length = base.length + more.length;
      const updatedAt = Math.max(after.updatedAt, base.summary.updatedAt);
      const next = { ...base, length, age: -updatedAt, summary: { ...after, updatedAt, seq: length } };
      return writeRecords(tx, next, createPacker().pack(id, base.length, more).records);
    }
  });

  if (told) {
    const { why, events: lost, queued } = told;
    const message = `${why}: of ${lost.length + cut} events that a page could not store, ${queued} messages are queued again`;
    report({ code: "TAIL_LOST", message, sessionId: id, cause: lost });
  } else if (cut > 0) {
    const message = `${cut} events that a page could not store were too long to keep`;
    report({ code: "TAIL_LOST", message, sessionId: id });
  }
}

/** What was accepted in a tail, was not refused or dropped there, and is not in the log of the other writer. */
function missingInput(tail: readonly SessionEvent[], since: readonly SessionEvent[]): readonly Queued[] {
  const input = new Map<string, Queued>();
  const injected = new Set<string>();
  for (const event of tail) {
    if (event.type === "inbox/queued") input.set(event.data.id, event.data);
    else if (event.type === "turn/start" && event.data.trigger.kind === "injection")
      for (const id of event.data.messages ?? []) injected.add(id);
    // An injection between turns is never queued: it is a turn of its own.
    else if (event.type === "context/message" && injected.has(event.data.id))
      input.set(event.data.id, { ...event.data, as: "inject" });
    else for (const id of settledIds(event)) input.delete(id);
  }
  for (const event of since) {
    if (event.type === "inbox/queued" || event.type === "context/message") input.delete(event.data.id);
    else for (const id of settledIds(event)) input.delete(id);
  }
  return [...input.values()];
}

/** The messages that an event puts an end to other than by answering them. */
function settledIds(event: SessionEvent): readonly string[] {
  if (event.type === "prompt/blocked") return [event.data.id];
  if (event.type === "inbox/dropped") return event.data.ids;
  return event.type === "agent/cancelled" ? event.data.dropped : [];
}

function queueAgain(row: SessionRow): (data: Queued, index: number) => SessionEvent {
  return (data, index) => ({ seq: row.length + index, time: row.summary.updatedAt, type: "inbox/queued", data });
}
