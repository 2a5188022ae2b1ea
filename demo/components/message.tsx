/** One message of the transcript, by its role. Drawn again only when it changed. */
import type { Agent, TranscriptMessage } from "turnloop";
import { memo, type ReactElement } from "react";
import { AssistantMessage } from "./assistant-message.tsx";
import { Mark } from "./mark.tsx";
import { UserMessage } from "./user-message.tsx";

export interface MessageProps {
  readonly message: TranscriptMessage;
  readonly agent: Agent | undefined;
  onPutBack(text: string): void;
  /** Says this message otherwise, in a copy of the chat. */
  onEdit(message: string, text: string): void;
  onSettings(): void;
}

export const MessageView = memo(function MessageView(props: MessageProps): ReactElement {
  switch (props.message.role) {
    case "assistant":
      return <AssistantMessage {...props} />;
    case "mark":
      return <Mark {...props} />;
    case "user":
    case "context":
      return <UserMessage message={props.message} onEdit={props.onEdit} />;
  }
});
