/** One step of the model: its thoughts, its text, its tool calls. */
import type { TranscriptPart } from "turnloop";
import type { ReactElement } from "react";
import { Markdown } from "./markdown.tsx";
import type { MessageProps } from "./message.tsx";
import { Problem } from "./problem.tsx";
import { Reasoning } from "./reasoning.tsx";
import { ToolCard } from "./tool-card.tsx";

export function AssistantMessage({ message, agent, onSettings }: MessageProps): ReactElement {
  const { parts, state, error } = message;
  const isWaiting = state === "streaming" && parts.length === 0;
  return (
    <article className="message assistant" aria-busy={state === "streaming"}>
      <h3 className="visually-hidden">Assistant</h3>
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
      return <Attachment part={part} />;
  }
}

function Attachment({ part }: { readonly part: TranscriptPart & { type: "file" | "source" } }): ReactElement | null {
  const { block } = part;
  if (block.type === "source" && block.url !== undefined) {
    return (
      <p className="attachment">
        Source:{" "}
        <a href={block.url} target="_blank" rel="noopener noreferrer nofollow">
          {block.title ?? block.url}
        </a>
      </p>
    );
  }
  if (block.type !== "file") return null;
  if ("base64" in block.data && /^image\/(png|jpeg|gif|webp)$/.test(block.mediaType)) {
    return (
      <img
        className="attachment"
        alt={block.name ?? "made by the model"}
        src={`data:${block.mediaType};base64,${block.data.base64}`}
      />
    );
  }
  return <p className="attachment">A file: {block.name ?? block.mediaType}</p>;
}
