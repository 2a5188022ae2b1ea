/** Streamable HTTP to an MCP server, with headers for each request and an end for each. */
import { bounded } from "./mcp-bounded.ts";
import { StreamableHTTPClientTransport, type FetchLike, type Transport } from "@modelcontextprotocol/client";

export interface Address {
  readonly url: string | URL;
  headers?(): Readonly<Record<string, string>>;
}

/** The code of a request whose answer will not come. In the range that JSON-RPC leaves to implementations. */
export const LOST = -32_099;

/** The code of one whose answer is too large to be taken in. */
export const TOO_LARGE = -32_098;

/** Of one message of the server. What is larger is not even read: nobody could be shown it. */
const MAX_BYTES = 16_000_000;

/**
 * The transport of the library leaves a request open for ever when its stream ends before the answer; here the
 * request fails then, for the server has died or has lost it.
 */
export function httpTransport({ url, headers }: Address): Transport {
  const target = new URL(url);
  const tooLarge = new Set<unknown>();
  const fetchWith: FetchLike = async (to, init) => {
    const all = new Headers(init?.headers);
    // What proves who we are is for this server alone.
    if (headers && new URL(to).origin === target.origin) {
      for (const [key, value] of Object.entries(headers())) all.set(key, value);
    }
    return bounded(await fetch(to, { ...init, headers: all }), MAX_BYTES, () => tooLarge.add(idIn(init?.body)));
  };
  const transport = new StreamableHTTPClientTransport(target, { fetch: fetchWith });
  const send = transport.send.bind(transport);
  transport.send = async (message, options) => {
    if (!("id" in message && "method" in message) || options?.onRequestStreamEnd) return send(message, options);
    const { id } = message;
    const fail = (): void => {
      const error = tooLarge.delete(id)
        ? { code: TOO_LARGE, message: `the server's answer is larger than ${MAX_BYTES} bytes` }
        : { code: LOST, message: "the connection was lost" };
      transport.onmessage?.({ jsonrpc: "2.0", id, error });
    };
    try {
      await send(message, { ...options, onRequestStreamEnd: fail });
    } catch (error) {
      if (!tooLarge.has(id)) throw error;
      fail();
    }
  };
  return transport;
}

/** Of the request that was sent. */
function idIn(body: unknown): unknown {
  return typeof body === "string" ? (JSON.parse(body) as { id?: unknown }).id : undefined;
}
