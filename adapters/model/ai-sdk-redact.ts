/** Takes keys out of what a provider says: some repeat them in their errors. */

const HIDDEN = "[hidden]";

/** After these words, with these beginnings, or as long as no word or model name is. */
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/\b(bearer|basic)\s+[^\s"',]+/gi, `$1 ${HIDDEN}`],
  [
    /\b((?:api|access|secret)[-_ ]?(?:key|token)|authorization)(["']?(?: provided)?\s*[:=]\s*["']?)[^\s"',]+/gi,
    `$1$2${HIDDEN}`,
  ],
  [/\b(?:sk|pk|rk|gsk|xai|key|hf|r8|csk|pplx|nvapi)[-_][\w*-]{8,}/gi, HIDDEN],
  [/\bAIza[\w-]{10,}/g, HIDDEN],
  [/\b[a-z0-9]{32,}\b/gi, HIDDEN],
];

/** `secrets`: texts that are known to be secret, such as the values of headers. */
export function redact(words: string, secrets: readonly string[]): string {
  const known = secrets.filter(({ length }) => length > 3);
  const text = known.reduce((left, secret) => left.replaceAll(secret, HIDDEN), words);
  return PATTERNS.reduce((left, [pattern, replacement]) => left.replace(pattern, replacement), text);
}
