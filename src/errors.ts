/** The one error type of the package, and what is told to nobody in particular. */

const MARK = Symbol.for("turnloop.error");

/**
 * Every error that leaves this package. `code` is stable and made for programs; `message` is made for
 * people and says what to do; `cause` is what lay beneath, where something did.
 */
export class TurnloopError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "TurnloopError";
    this.code = code;
    Object.defineProperty(this, MARK, { value: true });
  }

  /** True across duplicate installs of the package, where `instanceof` is not. */
  static is(value: unknown, code?: string): value is TurnloopError {
    if (typeof value !== "object" || value === null || !(MARK in value)) return false;
    return code === undefined || (value as { code?: unknown }).code === code;
  }
}

/** Something that went wrong where no caller could be told. Goes to `HarnessOptions.onDiagnostic`. */
export interface Diagnostic {
  readonly code: string;
  readonly message: string;
  readonly cause?: unknown;
  readonly sessionId?: string;
}

/** Where a part of the package hands in its diagnostics. Never throws. */
export type Report = (diagnostic: Diagnostic) => void;

/** An error as data: what the log keeps of it. */
export interface ErrorData {
  readonly message: string;
  readonly code?: string;
  /** The HTTP status, where there was one. */
  readonly status?: number;
  /** What the provider asked us to wait. */
  readonly retryAfterMs?: number;
}

/** Readable text of anything thrown, whatever it is; never throws itself. */
export function messageOf(thrown: unknown): string {
  try {
    if (typeof thrown === "string") return thrown || "an empty string was thrown";
    if (typeof thrown === "object" && thrown !== null) {
      const { message } = thrown as { message?: unknown };
      if (typeof message === "string" && message !== "") return message;
      if (thrown instanceof Error) return thrown.name;
      return JSON.stringify(thrown) ?? "an object without a message was thrown";
    }
    return `${String(thrown)} was thrown`;
  } catch {
    return "something unreadable was thrown";
  }
}

/** What failed where no caller could be told, and of what. */
export function failureOf(code: string, what: string, cause: unknown, sessionId?: string): Diagnostic {
  return { code, message: `${what}: ${messageOf(cause)}`, cause, ...(sessionId !== undefined && { sessionId }) };
}

/** The same value if it is an Error; else a TurnloopError coded UNKNOWN that keeps it as its cause. */
export function toError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown;
  return new TurnloopError("UNKNOWN", messageOf(thrown), { cause: thrown });
}

/** What the log keeps of an error. A `code` that is not a string is left out. */
export function errorData(thrown: unknown): ErrorData {
  const { code, status, retryAfterMs } = readFields(thrown);
  return {
    message: messageOf(thrown).toWellFormed(),
    ...(typeof code === "string" ? { code } : undefined),
    ...(Number.isInteger(status) ? { status: status as number } : undefined),
    ...(Number.isFinite(retryAfterMs) ? { retryAfterMs: retryAfterMs as number } : undefined),
  };
}

function readFields(thrown: unknown): { code?: unknown; status?: unknown; retryAfterMs?: unknown } {
  try {
    if (typeof thrown !== "object" || thrown === null) return { code: "UNKNOWN" };
    const { code, status, retryAfterMs } = thrown as Record<string, unknown>;
    return { code: code ?? (thrown instanceof Error ? undefined : "UNKNOWN"), status, retryAfterMs };
  } catch {
    return { code: "UNKNOWN" };
  }
}
