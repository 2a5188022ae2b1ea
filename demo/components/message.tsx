/** One message of the transcript, by its role. Drawn again only when it changed. */
import type { Agent, TranscriptMessage } from "turnloop";
import { memo, type ReactElement } from "react";
import type { Draft } from "../draft.ts";
import { AssistantMessage } from "./assistant-message.tsx";
import { Mark } from "./mark.tsx";
import { UserMessage } from "./user-message.tsx";

export interface MessageDeeds {
  onPutBack(draft: Draft): void;
  /** Says this message otherwise, in a copy of the chat. */
  onEdit(message: string, said: Draft): void;
  /** Has this turn answered again, in a copy of the chat. */
  onRepeat(turn: number): void;
  /** A copy of the chat that ends with this turn. */
  onFork(turn: number): void;
  onSettings(): void;
}

export interface MessageProps extends MessageDeeds {
  readonly message: TranscriptMessage;
  readonly agent: Agent | undefined;
  /** Of its turn, which a message opened. */
  readonly isFirst: boolean;
  /** Of its turn, which is over. */
  readonly isLast: boolean;
}

declare global {
  /** Where somebody wants to know how often messages are drawn. */
  var onMessageDrawn: ((id: string) => void) | undefined;
}

export const MessageView = memo(function MessageView(props: MessageProps): ReactElement {
  globalThis.onMessageDrawn?.(props.message.id);
  switch (props.message.role) {
    case "assistant":
      return <AssistantMessage {...props} />;
    case "mark":
      return <Mark {...props} />;
    case "user":
    case "context":
      return <UserMessage {...props} />;
  }
});
