/** One step of the model: its thoughts, its text, its tool calls. */
import type { ContentBlock, TranscriptPart } from "turnloop";
import type { ReactElement } from "react";
import { textOf } from "../text.ts";
import { Attachments } from "./attachments.tsx";
import { Markdown } from "./markdown.tsx";
import type { MessageProps } from "./message.tsx";
import { Problem } from "./problem.tsx";
import { Reasoning } from "./reasoning.tsx";
import { ToolCard } from "./tool-card.tsx";
import { TurnFoot } from "./turn-foot.tsx";

export function AssistantMessage({ message, agent, isLast, onRepeat, onFork, onSettings }: MessageProps): ReactElement {
  const { parts, state, error, turn, usage } = message;
  const isWaiting = state === "streaming" && parts.length === 0;
  return (
    <article className="message assistant" aria-busy={state === "streaming"}>
      <h2 className="visually-hidden">Assistant</h2>
      {parts.map((part, place) => (
        <Part key={part.type === "tool" ? part.callId : place} part={part} agent={agent} />
      ))}
      {isWaiting && (
        <p className="waiting" role="status">
          <span className="visually-hidden">Waiting for the model</span>
        </p>
      )}
      {error && (
        <Problem
          title={state === "failed" ? "This turn failed" : "An attempt failed; trying again"}
          error={error}
          onSettings={onSettings}
        />
      )}
      {isLast && !error && (
        <TurnFoot text={textOf(parts)} usage={usage} onRepeat={() => onRepeat(turn)} onFork={() => onFork(turn)} />
      )}
    </article>
  );
}

function Part({
  part,
  agent,
}: {
  readonly part: TranscriptPart;
  readonly agent: MessageProps["agent"];
}): ReactElement | null {
  switch (part.type) {
    case "text":
      return <Markdown text={part.text} isStreaming={part.streaming} />;
    case "reasoning":
      return <Reasoning text={part.text} isStreaming={part.streaming} />;
    case "tool":
      return <ToolCard card={part} agent={agent} />;
    case "file":
    case "source":
      return <Made block={part.block} />;
  }
}

function Made({ block }: { readonly block: ContentBlock }): ReactElement | null {
  if (block.type === "file") return <Attachments files={[block]} />;
  if (block.type !== "source") return null;
  // A model may name anything as its source: only what is a page is linked.
  const isPage = /^https?:/.test(URL.parse(block.url ?? "")?.protocol ?? "");
  return (
    <p className="source">
      Source:{" "}
      {isPage ? (
        <a href={block.url} target="_blank" rel="noopener noreferrer nofollow">
          {block.title ?? block.url}
        </a>
      ) : (
        (block.title ?? block.url)
      )}
    </p>
  );
}
