/** Changes to sessions that rest in the storage: each is opened in private, for one change. */
import { repair } from "../session/repair.ts";
import { queuedMessages } from "../session/state.ts";
import type { SessionSummary } from "../session/types.ts";
import type { Archive } from "./archive.ts";
import type { LiveSession } from "./live.ts";
import { summaryOf } from "./summary.ts";

type Prepare = (archive: Archive, stored: number) => LiveSession;

export async function retitle(prepare: Prepare, archive: Archive, title: string): Promise<void> {
  await amend(prepare(archive, archive.events.length), ({ log }) => log.session.append("session/titled", { title }));
}

/** Stores what comes from elsewhere. What waits in its inbox comes along only when the session moves. */
export function settleIn(
  prepare: Prepare,
  archive: Archive,
  { move, idempotent }: { readonly move: boolean; readonly idempotent: (tool: string) => boolean },
): Promise<SessionSummary> {
  return amend(prepare(archive, 0), ({ log }) => {
    repair(log, idempotent);
    const left = queuedMessages(log.state).map((entry) => entry.id);
    if (!move && left.length > 0) log.write("inbox/dropped", { ids: Object.freeze(left), reason: "imported" });
  });
}

async function amend(live: LiveSession, edit: (live: LiveSession) => unknown): Promise<SessionSummary> {
  try {
    edit(live);
    await live.recorder.settle();
    return summaryOf(live.log);
  } finally {
    await live.close();
  }
}
