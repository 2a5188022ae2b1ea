/** The exact request of a step, and what it says otherwise than the one before. */
import { useMemo, type ReactElement, type ReactNode } from "react";
import { rebuildRequest, requestChanges, TurnloopError, type ContentBlock, type ModelRequest } from "turnloop";
import type { RequestChanges, SessionView, TimelineSpan } from "turnloop";
import { countText } from "./inspector-text.ts";

interface RequestProps {
  readonly session: SessionView;
  readonly request: TimelineSpan;
  readonly before: TimelineSpan | undefined;
}

export function Request({ session, request, before }: RequestProps): ReactElement {
  const { seq, start } = session;
  const sent = useMemo(() => sentBy(session, start, request), [session, start, request]);
  const last = useMemo(() => before && sentBy(session, start, before), [session, start, before]);
  if (start > 0) return <Beginning session={session} />;
  if (!sent) return <p className="tl-note">The log of {seq} events does not hold this request.</p>;
  const changes = last && requestChanges(last, sent);
  const kept = changes?.messages.kept ?? 0;
  return (
    <div className="tl-request">
      <p className="tl-note">{changes ? changesText(changes) : "The first request of the session."}</p>
      <Part title="Settings" open={(changes?.config.length ?? 0) > 0}>
        <pre>{JSON.stringify(sent.config, undefined, 2)}</pre>
      </Part>
      {sent.system !== undefined && (
        <Part title="System prompt" open={changes?.system ?? false}>
          <pre>{sent.system}</pre>
        </Part>
      )}
      {sent.tools && (
        <Part title={countText(sent.tools.length, "tool")} open={false}>
          {sent.tools.map((tool) => (
            <Part key={tool.name} title={tool.name} open={false}>
              <p>{tool.description}</p>
              <pre>{JSON.stringify(tool.parameters, undefined, 2)}</pre>
            </Part>
          ))}
        </Part>
      )}
      {kept > 0 && (
        <Part title={`${countText(kept, "message")} as in the request before`} open={false}>
          <Messages messages={sent.messages.slice(0, kept)} />
        </Part>
      )}
      <Messages messages={sent.messages.slice(kept)} />
    </div>
  );
}

function sentBy(
  session: SessionView,
  start: number,
  { turn = 0, step = 0, attempt }: TimelineSpan,
): ModelRequest | undefined {
  if (start > 0) return undefined;
  try {
    return rebuildRequest(session.events, { turn, step, ...(attempt !== undefined && { attempt }) });
  } catch (thrown) {
    if (TurnloopError.is(thrown, "REQUEST_NOT_FOUND")) return undefined;
    throw thrown;
  }
}

/** A request is made of everything before it. */
function Beginning({ session }: { readonly session: SessionView }): ReactElement {
  return (
    <p className="tl-note">
      Only the end of the session is here.{" "}
      {session.loadEarlier && (
        <button type="button" onClick={() => void session.loadEarlier?.().catch(() => {})}>
          Load the rest
        </button>
      )}
    </p>
  );
}

function Part(props: { readonly title: string; readonly open: boolean; readonly children: ReactNode }): ReactElement {
  return (
    <details open={props.open}>
      <summary>{props.title}</summary>
      {props.children}
    </details>
  );
}

function Messages({ messages }: Pick<ModelRequest, "messages">): ReactElement {
  return (
    <ol className="tl-messages">
      {byPlace(messages).map(({ key, item: { role, content, model, source } }) => (
        <li key={key}>
          <b>{role}</b> <small>{model ?? (source && source.kind !== "user" ? source.kind : "")}</small>
          {byPlace(content).map(({ key: place, item }) => (
            <pre key={place} className={`tl-block tl-${item.type}`}>
              {textOfBlock(item)}
            </pre>
          ))}
        </li>
      ))}
    </ol>
  );
}

/** In a request, a place is all that tells one from another. */
function byPlace<T>(items: readonly T[]): { readonly key: string; readonly item: T }[] {
  return items.map((item, place) => ({ key: `at ${place}`, item }));
}

function textOfBlock(block: ContentBlock): string {
  switch (block.type) {
    case "text":
    case "reasoning":
      return block.text;
    case "tool-call":
      return `${block.name}(${block.arguments})`;
    case "tool-result":
      return `${block.name}${block.isError ? " failed" : ""}: ${block.content.map(textOfBlock).join("\n")}`;
    case "file":
      return `${block.name ?? "file"} (${block.mediaType})`;
    default:
      return JSON.stringify(block, undefined, 2);
  }
}

function changesText({ config, system, tools, messages }: RequestChanges): string {
  const parts = [
    system && "another system prompt",
    config.length > 0 && `other settings: ${config.join(", ")}`,
    tools.added.length > 0 && `tools added: ${tools.added.join(", ")}`,
    tools.removed.length > 0 && `tools removed: ${tools.removed.join(", ")}`,
    tools.changed.length > 0 && `tools changed: ${tools.changed.join(", ")}`,
    messages.removed > 0 && `${countText(messages.removed, "message")} replaced`,
    messages.added > 0 && `${countText(messages.added, "message")} more`,
  ].filter((part) => part !== false);
  return parts.length === 0 ? "The same as the request before." : `Since the request before: ${parts.join("; ")}.`;
}
