/** The answers that a person gave for a whole session: a fold of its log. */
import type { Agent, ApprovalAnswer, ApprovalPayload, JsonValue, SessionEvent, SessionView } from "../core.ts";

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

interface Folded {
  next: number;
  /** What was asked, by the id of the interaction. */
  readonly asked: Map<string, ApprovalPayload>;
  readonly known: Map<string, ApprovalAnswer>;
}

/** `keyOf` says which calls are alike. Each event is looked at once. */
export function createDecisions(keyOf: (call: ApprovalCall) => string): Decisions {
  const sessions = new WeakMap<SessionView, Folded>();

  function take(folded: Folded, event: SessionEvent): void {
    if (event.type === "interaction/requested" && event.data.kind === "approval") {
      folded.asked.set(event.data.id, event.data.payload as ApprovalPayload);
    } else if (event.type === "interaction/resolved") {
      const payload = folded.asked.get(event.data.id);
      folded.asked.delete(event.data.id);
      const { outcome, value } = event.data;
      if (payload && outcome === "answered" && isRemembered(value)) folded.known.set(keyOf(callOf(payload)), value);
    }
  }

  return {
    of({ session }, { name, arguments: args }) {
      let folded = sessions.get(session);
      // What a fork inherited was allowed to somebody else.
      if (!folded) {
        const next = session.header.seedLength ?? 0;
        sessions.set(session, (folded = { next, asked: new Map(), known: new Map() }));
      }
      for (; folded.next < session.seq; folded.next += 1) take(folded, session.at(folded.next)!);
      return folded.known.size === 0 ? undefined : folded.known.get(keyOf({ name, arguments: args }));
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
