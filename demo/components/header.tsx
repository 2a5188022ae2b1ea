/** The name of the thing, who answers, and what else there is to see. */
import type { AgentSnapshot } from "turnloop";
import type { ReactElement } from "react";
import type { Endpoint } from "../endpoint.ts";
import { Icon } from "./icon.tsx";
import { place } from "../place.ts";
import { Place } from "./place.tsx";

interface Props {
  readonly endpoint: Endpoint | undefined;
  readonly snapshot: AgentSnapshot | undefined;
  readonly isFailed: boolean;
  readonly isInspecting: boolean;
  onInspect(): void;
  onChats(): void;
  /** Absent where there is nothing to set. */
  readonly onSettings: (() => void) | undefined;
  onNewChat(): void;
}

export function Header({
  endpoint,
  snapshot,
  isFailed,
  isInspecting,
  onInspect,
  onChats,
  onSettings,
  onNewChat,
}: Props): ReactElement {
  return (
    <header className="header">
      <div className="identity">
        <h1 className="brand">
          <Icon name="loop" />
          turnloop
        </h1>
        <p className="model" data-kind={endpoint ? "endpoint" : "scripted"}>
          {place.model !== undefined ? (
            <span className="model-name">{place.model}</span>
          ) : endpoint ? (
            <>
              <span className="model-name">{endpoint.model}</span>
              <span className="model-host"> at {hostOf(endpoint.baseURL)}</span>
            </>
          ) : (
            <>
              Scripted demo<span className="model-host">, no language model</span>
            </>
          )}
        </p>
        <Place snapshot={snapshot} isFailed={isFailed} />
      </div>
      <nav className="actions" aria-label="Chat">
        <button type="button" className="quiet" onClick={onChats}>
          <Icon name="list" />
          <span className="label">Chats</span>
        </button>
        <button type="button" className="quiet" onClick={onNewChat}>
          <Icon name="plus" />
          <span className="label">New chat</span>
        </button>
        <button
          type="button"
          className="quiet"
          aria-expanded={isInspecting}
          {...(isInspecting && { "aria-controls": "inspection" })}
          onClick={onInspect}
        >
          <Icon name="inspect" />
          <span className="label">Inspect</span>
        </button>
        {onSettings && (
          <button type="button" className="quiet" onClick={onSettings}>
            <Icon name="settings" />
            <span className="label">Settings</span>
          </button>
        )}
      </nav>
    </header>
  );
}

function hostOf(url: string): string {
  return URL.parse(url)?.host ?? url;
}
