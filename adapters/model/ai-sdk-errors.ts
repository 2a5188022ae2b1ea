/** What went wrong at a provider, whatever was thrown or streamed: a stable code, and words that help. */
import { TurnloopError, type ErrorData } from "../../src/core.ts";
import { factsOf, type Facts } from "./ai-sdk-error-facts.ts";
import { redact } from "./ai-sdk-redact.ts";

/** Where an error came from. */
export interface Origin {
  readonly modelId: string;
  /** Texts that must not appear in a message: the values of the headers. */
  readonly secrets: readonly string[];
  /** Whether the provider had begun to answer. */
  readonly answered: boolean;
}

const NOT_A_STREAM = /JSONParseError|TypeValidationError|EmptyResponseBodyError|InvalidResponseDataError/;
const NETWORK = /fetch|network|connect|load failed|socket|terminated|econn|enotfound|etimedout|eai_again/i;
/** Never of a limit per minute, which also speaks of tokens. */
const OVERFLOW =
  /context_length_exceeded|exceed_context_size|context (?:length|window|size)|prompt is too long|maximum prompt length|input token count|reduce the length|exceeded model token limit/i;
const PER_MINUTE = /per minute|\bTPM\b|rate.?limit/i;
const QUOTA = /insufficient_quota|exceeded your current quota|billing|credit balance|insufficient (?:balance|credits)/i;

interface Verdict {
  readonly code: string;
  readonly what: string;
  readonly advice: string;
}

/** Never throws. Codes: see `aiSdkModel`. */
export function modelErrorData(thrown: unknown, origin: Origin): ErrorData {
  const facts = factsOf(thrown);
  const { code, what, advice } = judge(facts, origin);
  const words = redact(facts.words, origin.secrets)
    .slice(0, 400)
    .trim()
    .replace(/[.:]+$/, "");
  const message = `${origin.modelId} ${what}${words === "" ? "" : `: ${words}`}. ${advice}`;
  return {
    message: message.toWellFormed(),
    code,
    ...(facts.status === undefined || facts.status < 400 ? undefined : { status: facts.status }),
    ...(facts.retryAfterMs === undefined ? undefined : { retryAfterMs: facts.retryAfterMs }),
  };
}

/** The same as an error to throw, with `status` and `retryAfterMs` as fields of it. */
export function modelError(thrown: unknown, origin: Origin): TurnloopError {
  if (TurnloopError.is(thrown)) return thrown;
  const { message, code, ...rest } = modelErrorData(thrown, origin);
  return Object.assign(new TurnloopError(code ?? "MODEL_ERROR", message, { cause: thrown }), rest);
}

/** An answer without an end: broken off, or, if there was nothing in it, no answer of a model at all. */
export function cutOff(modelId: string, empty: boolean, contentType: string | undefined): ErrorData {
  if (!empty) {
    const message = `${modelId} stopped before its answer was complete. Send again.`;
    return { message, code: "STREAM_INTERRUPTED" };
  }
  const what = contentType === undefined ? "nothing" : `nothing that can be read (${contentType.slice(0, 60)})`;
  return { message: `${modelId} answered with ${what}. ${CHECK_URL}.`, code: "MODEL_BAD_RESPONSE" };
}

function judge(facts: Facts, origin: Origin): Verdict {
  const { status, names, words, isHtml } = facts;
  const said = `${facts.kind} ${words}`;
  if (status === 401 || status === 403 || /LoadAPIKeyError/.test(names)) {
    return verdict("MODEL_AUTH", answered(status, "refused the key"), "Check the API key and what it may use");
  }
  if (status === 402 || ((status === 429 || status === undefined) && QUOTA.test(said))) {
    return verdict(
      "MODEL_QUOTA",
      answered(status, "says the quota is used up"),
      "Check plan and billing; waiting will not help",
    );
  }
  if (status === 429) {
    return verdict("RATE_LIMITED", answered(status, "was asked too often"), "Wait, then send again");
  }
  if (status === 413 || ((status === undefined || status < 500) && OVERFLOW.test(said) && !PER_MINUTE.test(said))) {
    return verdict(
      "CONTEXT_OVERFLOW",
      answered(status, "was sent more than it can read"),
      "Shorten the conversation, or compact it",
    );
  }
  if (status === 503 || status === 529) {
    return verdict("MODEL_OVERLOADED", answered(status, "is overloaded"), "Send again later, or use another model");
  }
  if (isHtml && (status === undefined || status < 500)) {
    return verdict("MODEL_BAD_RESPONSE", answered(status, "answered with a web page"), CHECK_URL);
  }
  if (status !== undefined && status >= 400) {
    const advice =
      status >= 500
        ? "Send again later"
        : status === 404
          ? `Check the name of the model. ${CHECK_URL}`
          : "Check the request";
    return verdict("MODEL_ERROR", answered(status, "failed"), advice);
  }
  if (/UnsupportedFunctionalityError/.test(names)) {
    return verdict("MODEL_UNSUPPORTED", "cannot take this request", "Leave it out, or use another model");
  }
  if (facts.isThrown && NOT_A_STREAM.test(names)) {
    return verdict("MODEL_BAD_RESPONSE", "answered with something that cannot be read", `Send again. ${CHECK_URL}`);
  }
  if (origin.answered || status !== undefined) {
    return facts.isThrown
      ? verdict("STREAM_BROKEN", "was cut off in the middle of its answer", "Send again")
      : verdict("MODEL_ERROR", "failed in the middle of its answer", "Send again");
  }
  if (NETWORK.test(said)) {
    const causes = "The device is offline, the URL is wrong, or the server does not allow this page's origin (CORS)";
    return verdict("MODEL_UNREACHABLE", "could not be reached", causes);
  }
  return verdict("MODEL_ERROR", "failed", "Check the model and its settings");
}

const CHECK_URL = "Check the URL: it must lead to the provider's API";

function verdict(code: string, what: string, advice: string): Verdict {
  return { code, what, advice: `${advice}.` };
}

function answered(status: number | undefined, what: string): string {
  return status === undefined || status < 400 ? what : `${what} (${status})`;
}
