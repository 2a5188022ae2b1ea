/** What was sent and has not begun yet. */
import type { Agent, QueuedMessage } from "turnloop";
import type { ReactElement } from "react";
import { textOf } from "../text.ts";
import { Icon } from "./icon.tsx";

interface Props {
  readonly agent: Agent;
  readonly queue: readonly QueuedMessage[];
  onPutBack(text: string): void;
}

export function Queue({ agent, queue, onPutBack }: Props): ReactElement | null {
  if (queue.length === 0) return null;

  async function takeBack({ id, content }: QueuedMessage): Promise<void> {
    if (await agent.withdraw(id)) onPutBack(textOf(content));
  }

  return (
    <ul className="queue" aria-label="Waiting messages">
      {queue.map((message) => (
        <li key={message.id}>
          <Icon name="clock" />
          <span className="queue-when">{message.as === "steer" ? "Next step" : "Next turn"}</span>
          <span className="queue-text">{textOf(message.content)}</span>
          <button type="button" className="link" onClick={() => void takeBack(message)}>
            Take back
          </button>
        </li>
      ))}
    </ul>
  );
}
