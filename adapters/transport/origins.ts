/** Pages that may connect, as their browsers tell of them. */

/** Pages of the same host, or of the origins that are named. A client that is no page says none. */
export function isOwnPage({ headers, url }: Request, origins: readonly string[] | undefined): boolean {
  const origin = headers.get("origin");
  if (origin === null) return true;
  if (origins) return origins.includes(origin);
  return URL.canParse(origin) && new URL(origin).host === new URL(url).host;
}

/** By which a browser lets a page of a named origin read the answer, and send what it wants to. */
export function* corsHeaders(
  { headers }: Request,
  origins: readonly string[] | undefined,
): Generator<readonly [string, string]> {
  const origin = headers.get("origin");
  if (!origins) return;
  yield ["vary", "origin"];
  if (origin === null || !origins.includes(origin)) return;
  yield ["access-control-allow-origin", origin];
  yield ["access-control-allow-credentials", "true"];
  yield ["access-control-allow-methods", "GET, POST"];
  const wanted = headers.get("access-control-request-headers");
  if (wanted !== null) yield ["access-control-allow-headers", wanted];
}
