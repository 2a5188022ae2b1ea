/** What must hold after a schedule, whatever has happened in it. */
import type { SessionEvent } from "turnloop";
import { expect } from "vitest";
import { brokenPromises } from "../support/invariants.ts";
import type { Effect } from "./agents.ts";
import type { Client } from "./client.ts";

/** `stored`: the log as the host has it; `effects`: of this session. */
export function judge(clients: readonly Client[], stored: readonly SessionEvent[], effects: readonly Effect[]): void {
  for (const { agent, told } of clients) {
    expect(brokenPromises(agent.session, []), "what a client's session breaks").toEqual([]);
    expect(told, "what a client was told, in order").toEqual(stored);
    expect(agent.session.events, "what a client has").toEqual(stored);
  }

  const queued = idsOf(stored, "inbox/queued");
  const sent = clients.flatMap((client) => client.sent);
  expect(queued.toSorted(), "what was accepted, each once").toEqual(sent.toSorted());
  const ran = [
    ...idsOf(stored, "user/message"),
    ...idsOf(stored, "steering/message"),
    ...idsOf(stored, "prompt/blocked"),
  ];
  const dropped = stored.flatMap((event) => (event.type === "inbox/dropped" ? event.data.ids : []));
  const gone = stored.flatMap((event) => (event.type === "agent/cancelled" ? event.data.dropped : []));
  expect([...ran, ...dropped, ...gone].toSorted(), "what became of each message").toEqual(sent.toSorted());

  const configured = stored.flatMap((event) =>
    event.type === "agent/configured" ? [String(event.data.patch.temperature)] : [],
  );
  const wanted = clients.flatMap((client) => client.configured.map(String));
  expect(configured.toSorted(), "what was configured, each once").toEqual(wanted.toSorted());
  const cancels = clients.reduce((sum, client) => sum + client.cancels, 0);
  expect(idsOf(stored, "agent/cancelled").length, "cancels").toBeLessThanOrEqual(cancels);

  const asked = idsOf(stored, "interaction/requested");
  expect(idsOf(stored, "interaction/resolved").toSorted(), "each question is resolved once").toEqual(asked.toSorted());
  judgeEffects(stored, effects);
}

/** A tool that is not idempotent never runs twice; one whose result is good has run. */
function judgeEffects(stored: readonly SessionEvent[], effects: readonly Effect[]): void {
  const names = new Map<string, string>();
  for (const event of stored) {
    if (event.type === "tool/call") names.set(event.data.callId, event.data.name);
  }
  const counts = new Map<string, number>();
  for (const { callId } of effects) counts.set(callId, (counts.get(callId) ?? 0) + 1);
  const twice = [...counts].filter(([callId, count]) => count > 1 && names.get(callId) !== "sure");
  expect(twice, "what ran twice").toEqual([]);
  const good = stored.flatMap((event) =>
    event.type === "tool/result" && !event.data.isError ? [event.data.callId] : [],
  );
  expect(
    good.filter((callId) => names.has(callId) && !counts.has(callId)),
    "results without an effect",
  ).toEqual([]);
}

function idsOf(events: readonly SessionEvent[], type: SessionEvent["type"]): string[] {
  return events.flatMap((event) => (event.type === type ? [(event.data as { readonly id: string }).id] : []));
}
