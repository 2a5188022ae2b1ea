/** Streamable HTTP to an MCP server, with headers for each request and an end for each. */
import { StreamableHTTPClientTransport, type FetchLike, type Transport } from "@modelcontextprotocol/client";

export interface Address {
  readonly url: string | URL;
  headers?(): Readonly<Record<string, string>>;
}

/** The code of a request whose answer will not come. In the range that JSON-RPC leaves to implementations. */
export const LOST = -32_099;

/**
 * The transport of the library leaves a request open for ever when its stream ends before the answer; here the
 * request fails then, for the server has died or has lost it.
 */
export function httpTransport({ url, headers }: Address): Transport {
  const target = new URL(url);
  const fetchWith: FetchLike = (to, init) => {
    const all = new Headers(init?.headers);
    // What proves who we are is for this server alone.
    if (headers && new URL(to).origin === target.origin) {
      for (const [key, value] of Object.entries(headers())) all.set(key, value);
    }
    return fetch(to, { ...init, headers: all });
  };
  const transport = new StreamableHTTPClientTransport(target, { fetch: fetchWith });
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    if (!("id" in message && "method" in message) || options?.onRequestStreamEnd) return send(message, options);
    const { id } = message;
    const onRequestStreamEnd = (): void =>
      transport.onmessage?.({ jsonrpc: "2.0", id, error: { code: LOST, message: "the connection was lost" } });
    return send(message, { ...options, onRequestStreamEnd });
  };
  return transport;
}
