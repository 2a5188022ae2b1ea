/** The prompt for models of the older interfaces V2 and V3, which differ in how they carry files. */
import type {
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4TextPart,
  LanguageModelV4ToolResultOutput,
} from "@ai-sdk/provider";

export type Version = "v2" | "v3" | "v4";

type Part = Exclude<LanguageModelV4Message, { role: "system" }>["content"][number];
type OutputPart = Extract<LanguageModelV4ToolResultOutput, { type: "content" }>["value"][number];

/** The same prompt, as a model of that version reads it. */
export function promptFor(version: Version, prompt: LanguageModelV4Prompt): LanguageModelV4Prompt {
  if (version === "v4") return prompt;
  const messages = prompt.map((message) =>
    message.role === "system"
      ? message
      : { ...message, content: message.content.filter(isKnown).map((part) => oldPart(part, version)) },
  );
  // From here on the types are those of another version.
  return messages as LanguageModelV4Prompt;
}

/** V2 and V3 have no part for these. */
function isKnown({ type }: Part): boolean {
  return type !== "custom" && type !== "reasoning-file";
}

function oldPart(part: Part, version: "v2" | "v3"): unknown {
  if (part.type === "file") return { ...part, data: oldData(part) };
  if (part.type !== "tool-result" || part.output.type !== "content") return part;
  const value = part.output.value.map((item) => oldOutput(item, version));
  return { ...part, output: { type: "content", value } };
}

function oldOutput(item: OutputPart, version: "v2" | "v3"): unknown {
  if (item.type !== "file") return item;
  const { mediaType } = item;
  const data = oldData(item);
  if (data instanceof URL) {
    const url = String(data);
    return version === "v2" ? text(`[file: ${url}]`) : { type: kind(mediaType, "url"), url };
  }
  return version === "v2" ? { type: "media", data, mediaType } : { type: kind(mediaType, "data"), data, mediaType };
}

function kind(mediaType: string, form: "data" | "url"): string {
  return `${mediaType.startsWith("image/") ? "image" : "file"}-${form}`;
}

function oldData({ data }: Pick<LanguageModelV4FilePart, "data">): unknown {
  return data.type === "url" ? data.url : data.type === "data" ? data.data : data;
}

function text(words: string): LanguageModelV4TextPart {
  return { type: "text", text: words };
}
