/** What the browser's database throws, as errors of this package. */
import { TurnloopError, type Diagnostic } from "../../src/core.ts";

/** What each name of a DOMException means to a user; any other is STORAGE_FAILED. */
const MEANINGS: Readonly<Record<string, readonly [code: string, message: string]>> = {
  QuotaExceededError: [
    "STORAGE_QUOTA",
    "the browser gives this site no more space; delete sessions, or have the user free some",
  ],
  ConstraintError: ["SESSION_CONFLICT", "somebody else has written there; open the session again"],
  VersionError: ["STORAGE_OUTDATED", "a newer version of this page has changed the database; reload the page"],
  NotFoundError: ["STORAGE_FOREIGN", "a database of this name exists and is not of turnloop; choose another `name`"],
};

/** How browsers say that a page gets no database: a sandboxed frame, blocked site data, a private window. */
const REFUSALS: ReadonlySet<string> = new Set(["SecurityError", "InvalidStateError", "NotSupportedError"]);

export function toTurnloop(thrown: unknown): TurnloopError {
  if (TurnloopError.is(thrown)) return thrown;
  const name = nameOf(thrown);
  const [code, message] = (Object.hasOwn(MEANINGS, name) ? MEANINGS[name] : undefined) ?? [
    "STORAGE_FAILED",
    `the browser's database failed: ${name}`,
  ];
  return new TurnloopError(code, message, { cause: thrown });
}

/** An error of `open`: is there no database to be had here at all? */
export function isRefused(thrown: unknown): boolean {
  return REFUSALS.has(nameOf(thrown));
}

/** The connection was closed under our feet: by the browser, or for another page's upgrade. */
export function isClosed(thrown: unknown): boolean {
  return nameOf(thrown) === "InvalidStateError";
}

export function warn({ code, message }: Diagnostic): void {
  console.warn(`turnloop: ${code}: ${message}`);
}

function nameOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.name : String(thrown);
}
