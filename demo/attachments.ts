/** Files that a person chose, dropped or pasted, as parts of what they are about to say. */
import { fileBlock } from "turnloop";
import { attachText, type Attached } from "./draft.ts";

/** A file stays in the log and goes with every request from then on: both are bounded here. */
const MAX_IMAGE = 4 * 1024 * 1024;
const MAX_TEXT = 256 * 1024;
const MAX_FILES = 8;

const IMAGES = /^image\/(png|jpeg|gif|webp)$/;
const TEXT_TYPES = /^text\/|^application\/(json|xml|yaml|x-yaml|toml|javascript|x-sh|x-ndjson|sql)$/;
const TEXT_NAMES =
  /\.(md|txt|csv|tsv|json|ndjson|ya?ml|toml|xml|html?|css|m?[jt]sx?|py|rb|go|rs|java|c|h|cpp|sh|sql|log)$/i;

/** For the input that chooses files. */
export const ACCEPT = "image/png,image/jpeg,image/gif,image/webp,text/*,.md,.json,.csv,.ts,.tsx,.js,.py,.log";

export interface Attaching {
  readonly taken: readonly Attached[];
  /** What was left out, and why, for people. */
  readonly problems: readonly string[];
}

/** `already`: how many the draft has. Never rejects. */
export async function attach(files: readonly File[], already: number): Promise<Attaching> {
  const taken: Attached[] = [];
  const problems: string[] = [];
  for (const file of files) {
    const problem = already + taken.length >= MAX_FILES ? `at most ${MAX_FILES} files go into a message` : unfit(file);
    try {
      if (problem === undefined) taken.push(await read(file));
      else problems.push(`${file.name || "The file"}: ${problem}`);
    } catch {
      problems.push(`${file.name || "The file"}: it could not be read`);
    }
  }
  return { taken, problems };
}

function unfit(file: File): string | undefined {
  if (!isImage(file) && !isText(file)) return "only images (PNG, JPEG, GIF, WebP) and texts can be attached";
  const most = isImage(file) ? MAX_IMAGE : MAX_TEXT;
  return file.size > most ? `it has ${bytes(file.size)}, and at most ${bytes(most)} are taken` : undefined;
}

async function read(file: File): Promise<Attached> {
  return isImage(file) ? fileBlock(file, { maxBytes: MAX_IMAGE }) : attachText(file.name || "text", await file.text());
}

function isImage({ type }: File): boolean {
  return IMAGES.test(type);
}

function isText({ type, name }: File): boolean {
  return TEXT_TYPES.test(type) || TEXT_NAMES.test(name);
}

export function bytes(count: number): string {
  return count < 1024 * 1024 ? `${Math.ceil(count / 1024)} kB` : `${(count / 1024 / 1024).toFixed(1)} MB`;
}
