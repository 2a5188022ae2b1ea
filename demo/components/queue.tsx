/** What was sent and has not begun yet. */
import type { Agent, QueuedMessage } from "turnloop";
import type { ReactElement } from "react";
import { draftOf, nameOf, type Draft } from "../draft.ts";
import { Icon } from "./icon.tsx";

interface Props {
  readonly agent: Agent;
  readonly queue: readonly QueuedMessage[];
  onPutBack(draft: Draft): void;
}

export function Queue({ agent, queue, onPutBack }: Props): ReactElement | null {
  if (queue.length === 0) return null;

  async function takeBack({ id, content }: QueuedMessage): Promise<void> {
    if (await agent.withdraw(id)) onPutBack(draftOf(content));
  }

  return (
    <ul className="queue" aria-label="Waiting messages">
      {queue.map((message) => (
        <li key={message.id}>
          <Icon name="clock" />
          <span className="queue-when">{message.as === "steer" ? "Next step" : "Next turn"}</span>
          <span className="queue-text">{wordsOf(message)}</span>
          <button type="button" className="link" onClick={() => void takeBack(message)}>
            Take back
          </button>
        </li>
      ))}
    </ul>
  );
}

function wordsOf({ content }: QueuedMessage): string {
  const { text, files } = draftOf(content);
  return [text, ...files.map(nameOf)].filter(Boolean).join(", ");
}
