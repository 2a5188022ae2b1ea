/** A file that somebody chose, as a block of a message. */
import { type FileBlock, TurnloopError } from "../core.ts";

/** 8 MiB: a file is kept in the log as base64, and sent with every request from then on. */
const MAX_BYTES = 8 * 1024 * 1024;
/** Divisible by three, so that the pieces join without padding between them. */
const PIECE = 3 * 8192;

/**
 * Reads a `Blob` or `File` into a file block. Throws FILE_TOO_LARGE above `maxBytes` (default 8 MiB), before
 * anything is read.
 */
export async function fileBlock(file: Blob, options: { maxBytes?: number } = {}): Promise<FileBlock> {
  const { maxBytes = MAX_BYTES } = options;
  const name = "name" in file && typeof file.name === "string" && file.name !== "" ? file.name : undefined;
  if (file.size > maxBytes) {
    const what = name === undefined ? "the file" : `the file ${name}`;
    throw new TurnloopError(
      "FILE_TOO_LARGE",
      `${what} has ${file.size} bytes and at most ${maxBytes} are taken; choose a smaller one, or send its URL`,
    );
  }
  const bytes = new Uint8Array(await file.arrayBuffer());
  return {
    type: "file",
    mediaType: file.type || "application/octet-stream",
    data: { base64: base64Of(bytes) },
    ...(name !== undefined && { name }),
  };
}

function base64Of(bytes: Uint8Array): string {
  const pieces: string[] = [];
  for (let from = 0; from < bytes.length; from += PIECE) {
    pieces.push(btoa(String.fromCharCode(...bytes.subarray(from, from + PIECE))));
  }
  return pieces.join("");
}
