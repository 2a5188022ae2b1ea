/** What an MCP server answers, as content of this package, and no more of it than fits. */
import type { ContentBlock as McpBlock, ResourceContents } from "@modelcontextprotocol/client";
import type { ContentBlock } from "../src/core.ts";

/** Of all files of one result, in characters of base64: about 4 MB. */
const MAX_BASE64 = 5_600_000;

type Contents = ResourceContents & { readonly text?: string; readonly blob?: string };

/** Texts are cut where `maxChars` is reached; files that are too large give way to a note. */
export function limited(blocks: readonly ContentBlock[], maxChars: number): ContentBlock[] {
  let chars = maxChars;
  let base64 = MAX_BASE64;
  let cut = 0;
  const kept = blocks.flatMap((block): ContentBlock[] => {
    if (block.type === "file" && "base64" in block.data) {
      const { length } = block.data.base64;
      if (length > base64)
        return [{ type: "text", text: `[a file ${block.mediaType} of ${length} characters is too large]` }];
      base64 -= length;
      return [block];
    }
    if (block.type !== "text") return [block];
    // Not between the halves of a character.
    const text = block.text.slice(0, chars).toWellFormed();
    chars -= text.length;
    cut += block.text.length - text.length;
    return text === "" ? [] : [{ type: "text", text }];
  });
  return cut === 0 ? kept : [...kept, { type: "text", text: `[cut here: ${cut} more characters]` }];
}

export function blockOf(block: McpBlock): ContentBlock {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text };
    case "image":
    case "audio":
      return { type: "file", mediaType: block.mimeType, data: { base64: block.data } };
    case "resource":
      return contentsOf(block.resource);
    case "resource_link":
      return { type: "text", text: `resource ${block.uri}: ${block.title ?? block.name}` };
    default:
      return { type: "text", text: `[a block of an unknown type]` };
  }
}

export function contentsOf({ uri, text, blob, mimeType = "application/octet-stream" }: Contents): ContentBlock {
  if (blob !== undefined) return { type: "file", mediaType: mimeType, data: { base64: blob }, name: uri };
  return { type: "text", text: text ?? "" };
}
