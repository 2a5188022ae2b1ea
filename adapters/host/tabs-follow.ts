/** How a tab comes to be served by whichever tab leads, itself included. */
import { systemClock } from "../../src/core.ts";
import { createHeartbeat, type Heartbeat } from "../transport/heartbeat.ts";
import type { Connection } from "../transport/types.ts";
import { openChannel, openLine, type Word } from "./tabs-channel.ts";
import { watchPresence } from "./tabs-presence.ts";

export interface Following {
  /** For `connectAgent`: resolves when a leader has made an offer, however long that takes. */
  connect(): Promise<Connection>;
  close(): void;
}

/** `silent`: whoever leads does not answer, and should be replaced; called again as long as nobody does. */
export function follow(name: string, silent: () => void): Following {
  let asking: { readonly from: string; readonly offered: PromiseWithResolvers<Connection> } | undefined;
  let heartbeat: Heartbeat | undefined;
  let served: { readonly leader: string; readonly connection: Connection } | undefined;

  const channel = openChannel(name, (word) => {
    // Those who ask do not lead.
    if (word.type !== "ask") heartbeat?.heard();
    if (word.type === "offer") take(word);
    // It may stand where a frozen one stood, which has not closed the line.
    if (word.type === "leading") {
      if (asking) ask();
      else if (word.leader !== served?.leader) served?.connection.close("another tab leads");
    }
  });

  function take({ leader, to, line }: Extract<Word, { type: "offer" }>): void {
    // The first offer counts; the line of another dies unused.
    if (to !== asking?.from) return;
    const { offered } = asking;
    stop();
    served = { leader, connection: openLine(line) };
    offered.resolve(served.connection);
  }

  function ask(): void {
    if (asking) channel.say({ type: "ask", from: asking.from });
  }

  function watch(): void {
    heartbeat?.stop();
    heartbeat = createHeartbeat(systemClock, ask, () => {
      silent();
      watch();
    });
  }

  function stop(): void {
    asking = undefined;
    heartbeat?.stop();
    heartbeat = undefined;
  }

  const unwatch = watchPresence({
    returns() {
      served?.connection.close("this page was away");
      if (!asking) return;
      // The silence was our own.
      watch();
      ask();
    },
  });

  return {
    connect() {
      asking = { from: crypto.randomUUID(), offered: Promise.withResolvers() };
      watch();
      ask();
      return asking.offered.promise;
    },
    close() {
      stop();
      unwatch();
      channel.close();
    },
  };
}
