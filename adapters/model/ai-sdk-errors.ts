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

interface Rule {
  readonly code: string;
  when(facts: Facts, answered: boolean): boolean;
  readonly what: string;
  readonly advice: string;
}

const CHECK_URL = "Check the URL: it must lead to the provider's API.";

/** The first that fits. Those without a status come last: a status says more than words. */
const RULES: readonly Rule[] = [
  {
    code: "MODEL_AUTH",
    when: ({ status, names }) => status === 401 || status === 403 || names.includes("LoadAPIKeyError"),
    what: "refused the key",
    advice: "Check the API key and what it may use.",
  },
  {
    code: "MODEL_QUOTA",
    when: (facts) => facts.status === 402 || (isRefusal(facts) && isUsedUp(facts)),
    what: "says the quota is used up",
    advice: "Check plan and billing; waiting will not help.",
  },
  {
    code: "RATE_LIMITED",
    when: ({ status }) => status === 429,
    what: "was asked too often",
    advice: "Wait, then send again.",
  },
  {
    code: "CONTEXT_OVERFLOW",
    when: (facts) => facts.status === 413 || (isRefusal(facts) && isTooLong(facts)),
    what: "was sent more than it can read",
    advice: "Shorten the conversation, or compact it.",
  },
  {
    code: "MODEL_OVERLOADED",
    when: ({ status }) => status === 503 || status === 529,
    what: "is overloaded",
    advice: "Send again later, or use another model.",
  },
  {
    code: "MODEL_BAD_RESPONSE",
    when: (facts) => facts.isHtml && isRefusal(facts),
    what: "answered with a web page",
    advice: CHECK_URL,
  },
  {
    code: "MODEL_ERROR",
    when: ({ status }) => status === 404,
    what: "was not found",
    advice: `Check the name of the model. ${CHECK_URL}`,
  },
  {
    code: "MODEL_ERROR",
    when: ({ status = 0 }) => status >= 500,
    what: "failed",
    advice: "Send again later.",
  },
  {
    code: "CONTENT_FILTERED",
    when: (facts) => isRefusal(facts) && FILTERED.test(`${facts.kind} ${facts.words}`),
    what: "has filtered the request or its answer",
    advice: "Say it otherwise, or use another model.",
  },
  {
    code: "MODEL_UNREACHABLE",
    when: ({ status, kind }) => status === 408 || kind.includes("timeout_error"),
    what: "did not answer in time",
    advice: "Send again.",
  },
  {
    code: "MODEL_ERROR",
    when: ({ status = 0 }) => status >= 400,
    what: "refused the request",
    advice: "Check its settings, tools and files.",
  },
  {
    code: "MODEL_UNSUPPORTED",
    when: ({ names }) => names.includes("UnsupportedFunctionalityError"),
    what: "cannot take a part of the request",
    advice: "Leave that part out, or use another model.",
  },
  {
    code: "MODEL_BAD_RESPONSE",
    when: ({ isThrown, names }) => isThrown && UNREADABLE.test(names),
    what: "answered with something that cannot be read",
    advice: `Send again. ${CHECK_URL}`,
  },
  {
    code: "STREAM_BROKEN",
    when: ({ isThrown, status }, answered) => isThrown && (answered || status !== undefined),
    what: "was cut off in the middle of its answer",
    advice: "Send again.",
  },
  {
    code: "MODEL_ERROR",
    when: (_, answered) => answered,
    what: "failed in the middle of its answer",
    advice: "Send again.",
  },
  {
    code: "MODEL_UNREACHABLE",
    when: ({ names, words }) => NETWORK.test(`${names} ${words}`),
    what: "could not be reached",
    advice: "The device is offline, the URL is wrong, or the server does not allow this page's origin (CORS).",
  },
];
const OTHERWISE = { code: "MODEL_ERROR", what: "failed", advice: "Check the model and its settings." };

const UNREADABLE = /JSONParseError|TypeValidationError|EmptyResponseBodyError|InvalidResponseDataError/;
const NETWORK =
  /fetch|network|connect|load failed|socket|terminated|timed? ?out|timeouterror|econn|enotfound|etimedout|eai_again/i;
const FILTERED = /content_filter|content_policy|content policy|content filtering policy|responsibleaipolicyviolation/i;
const QUOTA = /exceeded your current quota|billing|credit balance|insufficient (?:balance|credits)/i;
const TOO_LONG =
  /context_length_exceeded|exceed_context_size|context (?:length|window|size)|prompt is too long|maximum prompt length|input token count|reduce (?:the length|your message size)|exceeded model token limit|input is too long|exceeds? context limit|input length should be|prompt exceeds|too many tokens/i;
const PER_MINUTE = /per minute|\bTPM\b|rate.?limit/i;

/** Refused for what was asked, not for trouble of the provider's own. */
function isRefusal({ status = 400 }: Facts): boolean {
  return status < 500;
}

/** Google says the same of a limit per minute, but then how long to wait. */
function isUsedUp({ kind, words, retryAfterMs }: Facts): boolean {
  return kind.includes("insufficient_quota") || (retryAfterMs === undefined && QUOTA.test(words));
}

/** Limits per minute also speak of tokens, and of less of them. */
function isTooLong({ kind, words }: Facts): boolean {
  const said = `${kind} ${words}`;
  return TOO_LONG.test(said) && !PER_MINUTE.test(said);
}

/** Never throws. Codes: see `aiSdkModel`. */
export function modelErrorData(thrown: unknown, { modelId, secrets, answered }: Origin): ErrorData {
  const facts = factsOf(thrown);
  const { code, what, advice } = RULES.find(({ when }) => when(facts, answered)) ?? OTHERWISE;
  const { retryAfterMs } = facts;
  const status = facts.status !== undefined && facts.status >= 400 ? facts.status : undefined;
  const words = redact(facts.words, secrets)
    .slice(0, 400)
    .trim()
    .replace(/[.:]+$/, "");
  const parts = [`${modelId} ${what}`, status && ` (${status})`, words && `: ${words}`, `. ${advice}`];
  return {
    message: parts.filter(Boolean).join("").toWellFormed(),
    code,
    ...(status === undefined ? undefined : { status }),
    ...(retryAfterMs === undefined ? undefined : { retryAfterMs }),
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
  return { message: `${modelId} answered with ${what}. ${CHECK_URL}`, code: "MODEL_BAD_RESPONSE" };
}
