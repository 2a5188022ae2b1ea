/** The name of the thing, who answers, and two buttons. */
import type { ReactElement } from "react";
import type { Endpoint } from "../endpoint.ts";
import { Icon } from "./icon.tsx";

interface Props {
  readonly endpoint: Endpoint | undefined;
  onSettings(): void;
  onNewChat(): void;
}

export function Header({ endpoint, onSettings, onNewChat }: Props): ReactElement {
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
      <nav className="actions" aria-label="Chat">
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
