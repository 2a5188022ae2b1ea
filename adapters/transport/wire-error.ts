/** What of an error goes over a wire: a code and a sentence; no stack, no path, no key. */
import { TurnloopError } from "../../src/core.ts";
import type { WireError } from "./protocol.ts";

/** Errors that the caller has made: their message speaks of nothing but the call. */
const OF_THE_CALLER: ReadonlySet<string> = new Set([
  "AGENT_DISPOSED",
  "BAD_FRAME",
  "FRAME_TOO_LARGE",
  "GRANT_EXPIRED",
  "HOST_CLOSED",
  "INTERACTION_CLAIMED",
  "INTERACTION_NOT_FOUND",
  "INTERACTION_RESOLVED",
  "INVALID_ANSWER",
  "INVALID_CONTENT",
  "INVALID_ID",
  "PEER_SILENT",
  "SESSION_NOT_FOUND",
  "TOO_MANY_COMMANDS",
  "TOO_MANY_SESSIONS",
  "TURN_OPEN",
  "UNAUTHORIZED",
  "UNSUPPORTED",
  "VERSION_MISMATCH",
]);

/** Errors of the host that a client can act on, in words that tell nothing of the host. */
const OF_THE_HOST: ReadonlyMap<string, string> = new Map([
  ["SESSION_CLAIMED", "another host has the session; try again later"],
  ["SESSION_CONFLICT", "another writer has the session; connect again to see what it wrote"],
  ["SESSION_CLOSED", "the host has closed the session; connect again"],
  ["SESSION_DEGRADED", "the host cannot store anything at the moment"],
  ["READ_ONLY", "the session takes no more events at this host; connect again"],
  ["HARNESS_DISPOSED", "the host is closing; connect again"],
]);

/** The host has the session no more, whoever may have it now. */
const GONE: ReadonlySet<string> = new Set([
  "AGENT_DISPOSED",
  "HARNESS_DISPOSED",
  "HOST_CLOSED",
  "READ_ONLY",
  "SESSION_CLOSED",
  "SESSION_CONFLICT",
  "SESSION_LOST",
]);

export function isGone(thrown: unknown): boolean {
  return TurnloopError.is(thrown) && GONE.has(thrown.code);
}

/** Anything else is HOST_FAILED, and its words stay at the host. */
export function toWire(thrown: unknown): WireError {
  if (TurnloopError.is(thrown)) {
    const { code, message } = thrown;
    if (OF_THE_CALLER.has(code)) return { code, message };
    const told = OF_THE_HOST.get(code);
    if (told !== undefined) return { code, message: told };
  }
  return { code: "HOST_FAILED", message: "the host could not do this; its diagnostics say why" };
}

/** Whether the host should be told of it: nobody else will be. */
export function isOwnFault({ code }: WireError): boolean {
  return code === "HOST_FAILED";
}

export function fromWire({ code, message }: WireError): TurnloopError {
  return new TurnloopError(code, message);
}
