/** What a person is about to say: words, and files beside them. */
import type { ContentBlock, FileBlock, TextBlock, TranscriptPart } from "turnloop";

export interface Draft {
  readonly text: string;
  readonly files: readonly Attached[];
}

/** An image is a block of its own kind; a text goes as text, which every model can read. */
export type Attached = FileBlock | TextBlock;

export const EMPTY: Draft = { text: "", files: [] };

const WRAPPED = /^<attachment name="([^"]*)">\n([\s\S]*)\n<\/attachment>$/;

export function attachText(name: string, text: string): TextBlock {
  return { type: "text", text: `<attachment name="${name.replaceAll(/["\r\n]/g, "")}">\n${text}\n</attachment>` };
}

/** The file that a block of text carries, if it does. */
export function readAttachedText(text: string): { readonly name: string; readonly text: string } | undefined {
  const [, name, inner] = WRAPPED.exec(text) ?? [];
  return name === undefined || inner === undefined ? undefined : { name, text: inner };
}

/** Of an image, or of a text: never empty. */
export function nameOf(file: Attached): string {
  const name = file.type === "file" ? file.name : readAttachedText(file.text)?.name;
  return name || "a file";
}

export function isEmpty({ text, files }: Draft): boolean {
  return text.trim() === "" && files.length === 0;
}

export function contentOf({ text, files }: Draft): readonly ContentBlock[] {
  const words = text.trim();
  return [...(words === "" ? [] : [{ type: "text", text: words } as const]), ...files];
}

/** What was said, to be said otherwise. */
export function draftOf(said: readonly (TranscriptPart | ContentBlock)[]): Draft {
  const files: Attached[] = [];
  const words: string[] = [];
  for (const part of said) {
    if (part.type === "file") files.push("block" in part ? (part.block as FileBlock) : part);
    else if (part.type !== "text") continue;
    else if (readAttachedText(part.text)) files.push({ type: "text", text: part.text });
    else words.push(part.text);
  }
  return { text: words.join(""), files };
}

/** In front of what is being typed. */
export function putBefore(back: Draft, now: Draft): Draft {
  const text = now.text.trim() === "" ? back.text : `${back.text}\n${now.text}`;
  return { text, files: [...back.files, ...now.files] };
}
