/** E, 69, with D16 to D18: at whatever moment a stop comes, nothing new begins behind it. */
import type { SessionEventType } from "turnloop";
import { expect } from "vitest";
import { local } from "../support/fixture.ts";
import { calm } from "../support/lifecycle.ts";
import { dataOf } from "../support/scene.ts";
import { everyMoment } from "../support/sweep.ts";
import { endOf } from "../support/wait.ts";

/** What closes a turn: all that may stand behind its stop. */
const CLOSING: ReadonlySet<SessionEventType> = new Set([
  "agent/cancelled",
  "assistant/message",
  "tool/call",
  "tool/result",
  "context/message",
  "step/end",
  "turn/end",
]);

for (const stop of ["cancel", "dispose"] as const) {
  local(
    `#69 D16 D17 D18 whenever a ${stop} comes, the turn ends as that, and nothing new begins behind it`,
    async () => {
      const reason = stop === "cancel" ? { kind: "aborted", reason: "enough" } : { kind: "disposed" };
      const stoppedAt = new Set<string>();
      const begun: string[] = [];
      for await (const { agent, dispose, called } of everyMoment()) {
        const { session } = agent;
        const { seq } = session;
        const last = session.at(seq - 1)!.type;
        const before = called.length;
        const isOpen = dataOf(session, "turn/start").length > dataOf(session, "turn/end").length;
        if (stop === "cancel") agent.cancel("enough");
        await (stop === "cancel" ? agent.whenIdle() : dispose());
        await calm();
        const written = session.events.slice(seq).flatMap(({ type }) => (CLOSING.has(type) ? [] : [type]));
        begun.push(...[...called.slice(before), ...written].map((what) => `${what} behind ${last}`));
        if (!isOpen) continue;
        stoppedAt.add(last);
        expect(endOf(session)).toEqual(reason);
      }
      expect(begun).toEqual([]);
      // The moments were spread over the whole of the turn.
      for (const type of ["user/message", "request/header", "assistant/chunk", "tool/call", "tool/start", "step/end"]) {
        expect(stoppedAt).toContain(type);
      }
    },
  );
}
