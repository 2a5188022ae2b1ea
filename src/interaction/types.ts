/** What waits for somebody outside the loop: approvals, questions, tools that a client runs. */
import type { JsonValue } from "../json.ts";

/** One that is open. */
export interface Interaction {
  readonly id: string;
  readonly kind: "approval" | "question" | "client-tool" | (string & {});
  readonly payload: JsonValue;
  readonly callId?: string;
  /** The client that runs it, of a client tool. */
  readonly claimedBy?: string;
  /** Milliseconds since 1970. */
  readonly expiresAt?: number;
}

/** `payload` of an `approval`: the call as it stands in the log. */
export type ApprovalPayload = {
  readonly tool: string;
  /** Raw JSON text. */
  readonly arguments: string;
  readonly reason?: string;
};

/** What `respond` takes for an `approval`. */
export type ApprovalAnswer = {
  readonly decision: "allow" | "deny";
  /** Told to the model with a denial. */
  readonly reason?: string;
  /** For a policy that asks less the next time. */
  readonly remember?: "session";
};

/** `payload` of a `client-tool`. */
export type ClientToolPayload = {
  readonly tool: string;
  readonly arguments: JsonValue;
};

/** What `respond` takes for a `client-tool`. */
export type ClientToolAnswer = { readonly value: JsonValue } | { readonly error: string };
