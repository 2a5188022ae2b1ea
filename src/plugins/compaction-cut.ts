/** Where a history may be cut, and the events that put something shorter in the place of a part of it. */
import type { ContentBlock, Harness, Session, SessionEvent } from "../core.ts";
import type { History } from "./history.ts";
import { shortenContent } from "./tokens.ts";

/**
 * How many nodes go, so that about `keep` tokens stay: the first place within reach where no call is parted from its
 * result, else the last one that there is. 0 when there is none; the last node always stays.
 */
export function cutOf(history: History, keep: number): number {
  const { nodes } = history;
  let cut = 0;
  let kept = 0;
  let owing = false;
  for (let at = nodes.length - 1; at > 0; at -= 1) {
    const node = nodes[at]!;
    kept += history.size(at, at + 1);
    // From the end to the front: results first, then the answer that called for them.
    if (node.type === "tool/result") owing = true;
    else if (node.type === "assistant/message") owing = false;
    if (owing) continue;
    if (kept > keep && cut > 0) break;
    cut = at;
    if (kept > keep) break;
  }
  return cut;
}

/** Cuts each result among these nodes to at most `most` tokens. The whole ones stay in the log. */
export function shortenResults(session: Session, nodes: readonly SessionEvent[], most: number): boolean {
  let shortened = false;
  for (const node of nodes) {
    if (node.type !== "tool/result") continue;
    const content = shortenContent(node.data.content, most);
    if (!content) continue;
    session.append("tool/result", { ...node.data, content }, { surface: { replace: [node.seq, node.seq] } });
    shortened = true;
  }
  return shortened;
}

/** Puts a summary in the place of these nodes, the first ones of the history. INVALID_SURFACE when they have changed. */
export function replaceWith(
  harness: Harness,
  session: Session,
  nodes: readonly SessionEvent[],
  content: readonly ContentBlock[],
): void {
  const surface = { replace: [nodes[0]!.seq, nodes.at(-1)!.seq] } as const;
  const data = { id: harness.newId(), content, source: { kind: "compaction" } };
  session.append("context/message", data, { surface });
}
