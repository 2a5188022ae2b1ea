/** The log behind the picture: its events, by type and by words. */
import { useState, type ReactElement } from "react";
import type { SessionEvent, SessionView } from "turnloop";

interface LogProps {
  readonly session: SessionView;
  /** Both ends included. */
  readonly range: readonly [first: number, last: number];
}

const GROUPS: readonly string[] = ["turns", "messages", "chunks", "requests", "tools", "questions", "other"];
const GROUP_OF: Readonly<Record<string, string>> = {
  turn: "turns",
  step: "turns",
  user: "messages",
  steering: "messages",
  context: "messages",
  prompt: "messages",
  assistant: "messages",
  inbox: "messages",
  request: "requests",
  model: "requests",
  tool: "tools",
  interaction: "questions",
};
/** As many as are drawn at once. */
const MOST = 300;

function groupOf({ type }: SessionEvent): string {
  if (type === "assistant/chunk") return "chunks";
  const family = type.slice(0, type.indexOf("/"));
  return Object.hasOwn(GROUP_OF, family) ? GROUP_OF[family]! : "other";
}

export function Log({ session, range: [first, last] }: LogProps): ReactElement {
  const [hidden, hide] = useState<ReadonlySet<string>>(new Set(["chunks"]));
  const [words, setWords] = useState("");
  const [most, setMost] = useState(MOST);
  const wanted = words.toLowerCase();
  const events: SessionEvent[] = [];
  let more = false;
  for (let seq = Math.min(last, session.seq - 1); seq >= Math.max(first, session.start) && !more; seq -= 1) {
    const event = session.at(seq);
    if (!event || hidden.has(groupOf(event))) continue;
    if (wanted !== "" && !JSON.stringify(event).toLowerCase().includes(wanted)) continue;
    if (events.length === most) more = true;
    else events.push(event);
  }
  const toggle = (group: string): void => {
    const next = new Set(hidden);
    if (!next.delete(group)) next.add(group);
    hide(next);
  };
  return (
    <div className="tl-log">
      <div className="tl-filters" role="group" aria-label="Events">
        {GROUPS.map((group) => (
          <button key={group} type="button" aria-pressed={!hidden.has(group)} onClick={() => toggle(group)}>
            {group}
          </button>
        ))}
        <input
          type="search"
          aria-label="Search the events"
          placeholder="Search"
          value={words}
          onChange={(event) => setWords(event.target.value)}
        />
      </div>
      {more && (
        <button type="button" onClick={() => setMost(most + MOST)}>
          Show earlier events
        </button>
      )}
      <ol>
        {events.toReversed().map((event) => (
          <li key={event.seq}>
            <details>
              <summary>
                <small>{event.seq}</small> <b>{event.type}</b> <span>{JSON.stringify(event.data).slice(0, 160)}</span>
              </summary>
              <time dateTime={new Date(event.time).toISOString()}>{new Date(event.time).toLocaleString()}</time>
              <pre>{JSON.stringify(event, undefined, 2)}</pre>
            </details>
          </li>
        ))}
      </ol>
      {events.length === 0 && <p className="tl-note">No event of this kind.</p>}
    </div>
  );
}
