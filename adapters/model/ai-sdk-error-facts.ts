/** Reads what can be known of an error of the AI SDK or of a provider, by its fields alone. */

/** Nothing of it is taken for granted: it may be anything that was thrown or streamed. */
export interface Facts {
  /** The names along the chain of causes, such as `AI_APICallError TypeError`. */
  readonly names: string;
  /** The provider's own words, or the error's. */
  readonly words: string;
  /** Type and code as the provider gave them. */
  readonly kind: string;
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;
  readonly isHtml: boolean;
  /** An Error of the client, which holds no error that the provider told. */
  readonly isThrown: boolean;
}

type Fields = Readonly<Record<string, unknown>>;

/** Never throws, whatever a getter of it does. */
export function factsOf(error: unknown): Facts {
  try {
    return read(error);
  } catch {
    return read(undefined);
  }
}

function read(error: unknown): Facts {
  const chain = causesOf(error);
  const fields = chain[0] ?? {};
  const body = text(fields.responseBody) ?? "";
  const parsed = record(parse(body)) ?? {};
  const isHtml = /^\s*(?:<!doctype html|<html)/i.test(body);
  // What a client could not make sense of may still be an error that the provider told in its own way.
  const told = [parsed, record(fields.data), record(fields.value), ...chain].flatMap((part) => (part ? [part] : []));
  const inner = told.flatMap(innerError);
  return {
    names: chain.map(({ name }) => text(name) ?? "").join(" "),
    words: isHtml ? "" : (firstText(inner, "message") ?? messageOf(chain, body, error)),
    kind: [firstText(inner, "type"), firstText(inner, "code"), firstText(inner, "status")].filter(Boolean).join(" "),
    status: statusOf([fields, ...inner]),
    retryAfterMs: retryAfter(record(fields.responseHeaders) ?? {}, body),
    isHtml,
    isThrown: error instanceof Error && inner.length === 0,
  };
}

function causesOf(error: unknown): Fields[] {
  const chain: Fields[] = [];
  for (let at = record(error); at && chain.length < 8; at = record(at.cause)) chain.push(at);
  return chain;
}

/** `{ error: { message } }`, `{ error: "..." }`, `{ detail }`, `{ response: { error } }` or `{ message }`. */
function innerError(fields: Fields): Fields[] {
  const error = record(fields.response)?.error ?? fields.error ?? fields.detail;
  if (typeof error === "string") return [{ ...fields, message: error }];
  const nested = record(error);
  if (nested) return [nested];
  return typeof fields.message === "string" && !(fields instanceof Error) ? [fields] : [];
}

/** A cause says more than "Failed to process successful response". */
function messageOf(chain: readonly Fields[], body: string, error: unknown): string {
  const words: string[] = [];
  for (const next of [...chain.map(({ message }) => text(message)), body.slice(0, 200)]) {
    if (next && !words.some((known) => known.includes(next))) words.push(next);
  }
  if (words.length > 0) return words.join(": ");
  return typeof error === "string" ? error : (stringify(error) ?? "");
}

function statusOf(parts: readonly Fields[]): number | undefined {
  for (const { statusCode, status, status_code: snake, code } of parts) {
    if (isStatus(statusCode)) return statusCode;
    for (const value of [status, snake, code]) {
      const number = typeof value === "string" && /^\d{3}$/.test(value) ? Number(value) : value;
      if (isStatus(number) && number >= 400) return number;
    }
  }
  const kind = parts.map(({ type, code, status }) => [type, code, status].join(" ")).join(" ");
  const [, status] = STATUS_BY_KIND.find(([pattern]) => pattern.test(kind)) ?? [];
  return status;
}

function isStatus(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 100 && (value as number) < 600;
}

const STATUS_BY_KIND: readonly (readonly [RegExp, number])[] = [
  [/insufficient_quota|rate_limit|resource_exhausted/i, 429],
  [/authentication|invalid_api_key|unauthenticated/i, 401],
  [/permission/i, 403],
  [/overloaded|unavailable/i, 503],
  [/server_error|api_error|\binternal\b/i, 500],
];

const NUMBER = /^\s*\d+(?:\.\d+)?\s*$/;
/** RFC 9110, 5.6.7: all three forms begin with the day of the week. */
const HTTP_DATE = /^\s*(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? /i;

/** `retry-after-ms`, `retry-after` in seconds or as a date, or the delay that Google writes into the body. */
function retryAfter(headers: Fields, body: string): number | undefined {
  const ms = text(headers["retry-after-ms"]) ?? "";
  if (NUMBER.test(ms)) return bounded(Number(ms));
  const after = text(headers["retry-after"]) ?? /"retryDelay":\s*"([\d.]+)s"/.exec(body)?.[1] ?? "";
  if (NUMBER.test(after)) return bounded(Number(after) * 1000);
  // Of anything with a digit in it, an engine makes some date.
  if (!HTTP_DATE.test(after)) return undefined;
  const wait = Date.parse(after) - Date.now();
  return Number.isFinite(wait) ? Math.max(0, wait) : undefined;
}

/** For ever is a number too: JSON has no other. */
function bounded(ms: number): number {
  return Math.min(ms, Number.MAX_SAFE_INTEGER);
}

function firstText(parts: readonly Fields[], key: string): string | undefined {
  for (const part of parts) {
    const value = part[key];
    if (typeof value === "string" && value !== "") return value;
  }
  return undefined;
}

function record(value: unknown): Fields | undefined {
  return typeof value === "object" && value !== null ? (value as Fields) : undefined;
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

function stringify(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}
