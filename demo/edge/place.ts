/** Chats that live at the edge, one in each Durable Object: this page only drives them. */
import { createHarness, TurnloopError, type ErrorData, type SessionSummary } from "turnloop";
import { connectAgent, webSocket } from "turnloop/transport";
import type { Place } from "../place.ts";
import { cookieOf, SHOWN } from "./visitor.ts";

export function edge(): Place {
  const shown = decodeURIComponent(cookieOf(document.cookie, SHOWN) ?? "");
  const owner = shown.slice(0, shown.indexOf(" "));

  async function ask(method: string, id?: string, body?: string): Promise<Response> {
    const url = id === undefined ? "/api/chats" : `/api/chats/${encodeURIComponent(id)}`;
    const response = await fetch(url, { method, ...(body !== undefined && { body }) });
    if (response.ok) return response;
    const message = `the edge has answered ${response.status}; reload the page`;
    const told: Partial<ErrorData> = await response.json().catch(() => ({}));
    throw new TurnloopError(told.code ?? "EDGE_REFUSED", told.message ?? message);
  }

  const place: Place = {
    model: shown.slice(owner.length + 1),
    durable: true,
    newId: () => `${owner}.${crypto.randomUUID()}`,

    open({ id, signal }) {
      const url = new URL(`/agents/${encodeURIComponent(id)}`, location.href);
      url.protocol = url.protocol.replace("http", "ws");
      return connectAgent({ connect: webSocket(url), session: id, signal });
    },

    list: async () => (await ask("GET")).json() as Promise<SessionSummary[]>,
    rename: async (id, title) => void (await ask("PATCH", id, title)),
    delete: async (id) => void (await ask("DELETE", id)),
    export: async (id) => (await ask("GET", id)).json() as Promise<string[]>,

    async import(lines, id = place.newId()) {
      await ask("PUT", id, lines.join(""));
      return id;
    },

    /** Cut in this page: the copy is another object's. */
    async fork(from, cut, id) {
      const { sessions, agents, dispose } = createHarness();
      try {
        await sessions.import(await place.export(from), { id: from });
        const copy = await agents.fork({ from, ...cut, id });
        await copy.agent.flush();
        const lines: string[] = [];
        for await (const line of sessions.export(id)) lines.push(line);
        await place.import(lines, id);
      } finally {
        await dispose();
      }
    },
  };
  return place;
}
