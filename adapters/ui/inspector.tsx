/** `turnloop/inspector`: a session as a timeline, with the exact request of each step, and its log. */
import { useInsertionEffect, useState, useSyncExternalStore, type ReactElement } from "react";
import { createTimeline, type Agent, type SessionView, type Store, type Timeline, type TimelineSpan } from "turnloop";
import { Log } from "./inspector-log.tsx";
import { Picture } from "./inspector-picture.tsx";
import { Request } from "./inspector-request.tsx";
import { findSpan, requestOf, requestsIn, rowsOf } from "./inspector-spans.ts";
import { adoptStyle } from "./inspector-style.ts";

export interface InspectorProps {
  /** Of a live agent, here or remote, or of any session, `harness.sessions.load(id)` included. */
  readonly of: Agent | SessionView;
}

const stores = new WeakMap<Agent | SessionView, Store<Timeline>>();

function timelineOf(of: Agent | SessionView): Store<Timeline> {
  let store = stores.get(of);
  if (!store) stores.set(of, (store = createTimeline(of)));
  return store;
}

/**
 * Fills the width of what it is in, and takes its font and the custom properties `--tl-ink`, `--tl-soft`, `--tl-line`,
 * `--tl-paper`, `--tl-accent`, `--tl-warn`, `--tl-bad` from there; light and dark follow `color-scheme`. It shows
 * all that is in the log, which models and tools may have written: as text, never as markup.
 */
export function Inspector({ of }: InspectorProps): ReactElement {
  useInsertionEffect(adoptStyle, []);
  const store = timelineOf(of);
  const { spans } = useSyncExternalStore(store.subscribe, store.getSnapshot, store.getSnapshot);
  const session = "getSnapshot" in of ? of.session : of;
  const [chosen, choose] = useState<string>();
  const [opened, open] = useState<ReadonlySet<string>>(new Set());
  const [isLog, showLog] = useState(false);

  const selected = findSpan(spans, chosen) ?? spans.findLast(({ kind }) => kind === "turn");
  const isOpen = (span: TimelineSpan): boolean =>
    span.kind !== "turn" || opened.has(span.id) || (chosen === undefined && span === selected);
  const requests = requestsIn(spans);
  const request = selected && requestOf(spans, selected);

  function select(span: TimelineSpan): void {
    choose(span.id);
    if (span.kind !== "turn") return;
    const next = new Set(opened);
    if (span.id !== selected?.id || !isOpen(span)) next.add(span.id);
    else next.delete(span.id);
    open(next);
  }

  if (spans.length === 0) return <p className="tl-inspector tl-note">Nothing has happened yet.</p>;
  return (
    <section className="tl-inspector" aria-label="Inspector">
      <Picture spans={spans} rows={rowsOf(spans, isOpen)} selected={selected} isOpen={isOpen} onSelect={select} />
      <div className="tl-tabs" role="group" aria-label="Details">
        <button type="button" aria-pressed={!isLog} onClick={() => showLog(false)}>
          Request
        </button>
        <button type="button" aria-pressed={isLog} onClick={() => showLog(true)}>
          Events
        </button>
      </div>
      {isLog && selected && <Log session={session} range={selected.events} />}
      {!isLog && request && (
        <Request session={session} request={request} before={requests[requests.indexOf(request) - 1]} />
      )}
      {!isLog && !request && <p className="tl-note">No request belongs to this.</p>}
    </section>
  );
}
