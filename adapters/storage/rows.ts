/** What a database says of a session beside its log, checked: whatever stands there may have been changed elsewhere. */
import { TurnloopError, type SessionSummary } from "../../src/core.ts";

/** What the row of a session says by itself. */
export interface RowFacts {
  readonly id: string;
  readonly length: number;
  readonly updatedAt: number;
}

/**
 * The summary that is stored in a row; where that is none, what the row itself knows: a session that is damaged is
 * listed like any other, since whoever looks at a list can delete it. Its next append stores a summary again.
 */
export function listed(stored: unknown, { id, length, updatedAt }: RowFacts): SessionSummary {
  if (isSummary(stored) && stored.id === id) return stored;
  const time = Number.isSafeInteger(updatedAt) ? updatedAt : 0;
  return { id, createdAt: time, updatedAt: time, seq: isCount(length) ? length : 0, status: "idle" };
}

/** Throws SESSION_CORRUPT. A session is stored with its first event, so that none has the length 0. */
export function checkLength(length: number, id: string): number {
  if (isCount(length) && length > 0) return length;
  throw new TurnloopError(
    "SESSION_CORRUPT",
    `the stored session ${id} says that it has ${String(length)} events: restore it from a copy, or delete it`,
  );
}

export function isSummary(value: unknown): value is SessionSummary {
  if (typeof value !== "object" || value === null) return false;
  const { id, createdAt, updatedAt, seq, title, parent, status } = value as Record<string, unknown>;
  return (
    typeof id === "string" &&
    Number.isSafeInteger(createdAt) &&
    Number.isSafeInteger(updatedAt) &&
    isCount(seq) &&
    isTextOrAbsent(title) &&
    isTextOrAbsent(parent) &&
    (status === "idle" || status === "open" || status === "waiting")
  );
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isTextOrAbsent(value: unknown): boolean {
  return value === undefined || typeof value === "string";
}
