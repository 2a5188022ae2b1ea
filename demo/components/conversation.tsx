/** The messages, scrolled to the last one as long as the reader is there. */
import type { Agent, AgentSnapshot, TranscriptMessage } from "turnloop";
import type { ReactElement } from "react";
import { useStickToEnd } from "../use-stick-to-end.ts";
import { GoOn } from "./go-on.tsx";
import { Icon } from "./icon.tsx";
import { MessageView } from "./message.tsx";
import { Welcome } from "./welcome.tsx";

interface Props {
  readonly agent: Agent | undefined;
  readonly snapshot: AgentSnapshot | undefined;
  readonly messages: readonly TranscriptMessage[];
  readonly isScripted: boolean;
  onPutBack(text: string): void;
  onEdit(message: string, text: string): void;
  onSettings(): void;
}

export function Conversation({
  agent,
  snapshot,
  messages,
  isScripted,
  onPutBack,
  onEdit,
  onSettings,
}: Props): ReactElement {
  const said = messages.findLast((message) => message.role === "user");
  const { ref, isAtEnd, toEnd } = useStickToEnd(messages, said?.id);
  return (
    <main className="conversation" ref={ref} aria-label="Conversation" tabIndex={-1}>
      <div className="column">
        {messages.length === 0 && agent && <Welcome isScripted={isScripted} onPick={(text) => agent.send(text)} />}
        {messages.map((message) => (
          <MessageView
            key={message.id}
            message={message}
            agent={agent}
            onPutBack={onPutBack}
            onEdit={onEdit}
            onSettings={onSettings}
          />
        ))}
        {agent && snapshot?.status === "idle" && <GoOn agent={agent} last={messages.at(-1)} />}
      </div>
      {!isAtEnd && (
        <button type="button" className="to-end" onClick={toEnd}>
          <Icon name="down" />
          Latest
        </button>
      )}
    </main>
  );
}
