/** The name of the thing, who answers, and two buttons. */
import type { Durability } from "turnloop";
import type { ReactElement } from "react";
import type { Endpoint } from "../endpoint.ts";
import { Icon } from "./icon.tsx";

interface Props {
  readonly endpoint: Endpoint | undefined;
  readonly durable: Durability | undefined;
  onChats(): void;
  onSettings(): void;
  onNewChat(): void;
}

/** What is said of the chat's storage; nothing while it keeps up. */
const TROUBLE: Partial<Record<Durability, string>> = {
  degraded: "Not stored: this browser takes nothing at the moment",
  lost: "Taken over by another tab; reload to see what it wrote",
};

export function Header({ endpoint, durable, onChats, onSettings, onNewChat }: Props): ReactElement {
  const trouble = durable && TROUBLE[durable];
  return (
    <header className="header">
      <h1 className="brand">
        <Icon name="loop" />
        turnloop
      </h1>
      <p className="model" data-kind={endpoint ? "endpoint" : "scripted"}>
        {endpoint ? (
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
      {trouble !== undefined && (
        <p className="trouble" role="status">
          {trouble}
        </p>
      )}
      <nav className="actions" aria-label="Chat">
        <button type="button" className="quiet" onClick={onChats}>
          <Icon name="list" />
          <span className="label">Chats</span>
        </button>
        <button type="button" className="quiet" onClick={onNewChat}>
          <Icon name="plus" />
          <span className="label">New chat</span>
        </button>
        <button type="button" className="quiet" onClick={onSettings}>
          <Icon name="settings" />
          <span className="label">Settings</span>
        </button>
      </nav>
    </header>
  );
}

function hostOf(url: string): string {
  return URL.parse(url)?.host ?? url;
}
