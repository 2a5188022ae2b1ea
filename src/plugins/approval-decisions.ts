/** The answers that a person gave for a whole session: a fold of its log. */
import type { Agent, ApprovalAnswer, ApprovalPayload, JsonValue } from "../core.ts";
import { foldOf, ownStart, type Fold } from "./follow.ts";

/** A call, asked about now or long ago. */
export interface ApprovalCall {
  readonly name: string;
  /** The parsed JSON. */
  readonly arguments: unknown;
}

export interface Decisions {
  /** What was answered for calls like this one, with `remember: "session"`; the last answer counts. */
  of(agent: Agent, call: ApprovalCall): ApprovalAnswer | undefined;
}

/** `keyOf` says which calls are alike. Each event is looked at once. */
export function createDecisions(keyOf: (call: ApprovalCall) => string): Decisions {
  // What a fork inherited was allowed to somebody else.
  const foldIn = foldOf(() => createFold(keyOf), ownStart);
  return {
    of({ session }, { name, arguments: args }) {
      const { known } = foldIn(session);
      return known.size === 0 ? undefined : known.get(keyOf({ name, arguments: args }));
    },
  };
}

interface Decided extends Fold {
  readonly known: ReadonlyMap<string, ApprovalAnswer>;
}

function createFold(keyOf: (call: ApprovalCall) => string): Decided {
  /** What was asked, by the id of the interaction. */
  const asked = new Map<string, ApprovalPayload>();
  const known = new Map<string, ApprovalAnswer>();
  return {
    known,
    take(event) {
      if (event.type === "interaction/requested" && event.data.kind === "approval") {
        asked.set(event.data.id, event.data.payload as ApprovalPayload);
      } else if (event.type === "interaction/resolved") {
        const { id, outcome, value } = event.data;
        const payload = asked.get(id);
        asked.delete(id);
        if (payload && outcome === "answered" && isRemembered(value)) known.set(keyOf(callOf(payload)), value);
      }
    },
  };
}

export function isRemembered(value: JsonValue | undefined): value is ApprovalAnswer {
  return (value as Partial<ApprovalAnswer> | null | undefined)?.remember === "session";
}

/** As it would be asked about. */
export function callOf({ tool, arguments: raw }: ApprovalPayload): ApprovalCall {
  try {
    return { name: tool, arguments: raw.trim() === "" ? {} : JSON.parse(raw) };
  } catch {
    return { name: tool, arguments: raw };
  }
}
