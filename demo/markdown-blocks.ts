/** Markdown cut where one block ends and another begins, so that a text that grows is parsed at its end only. */

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const LIST_ITEM = /^(?:[-*+]|\d{1,9}[.)])(?:\s|$)/;
const DEFINITION = /^ {0,3}\[[^\]^][^\]]*\]:\s*\S/;

/** Joined by empty lines they are the text again, but for definitions, which go with each block that may refer to them. */
export function splitMarkdown(text: string): readonly string[] {
  // Footnotes belong to the whole.
  if (text.includes("[^")) return [text];
  const blocks: string[] = [];
  const definitions: string[] = [];
  let lines: string[] = [];
  let fence: string | undefined;
  let isAfterBlank = false;
  let isList = false;

  for (const line of text.split("\n")) {
    const isBlank = line.trim() === "";
    const begins = isAfterBlank && fence === undefined && !isBlank && !/^\s/.test(line);
    if (begins && !(isList && LIST_ITEM.test(line))) {
      blocks.push(lines.join("\n"));
      lines = [];
    }
    if (lines.length === 0) isList = LIST_ITEM.test(line);
    const mark = FENCE.exec(line)?.[1];
    if (fence === undefined) {
      fence = mark;
      if (mark === undefined && DEFINITION.test(line)) definitions.push(line);
    } else if (mark?.startsWith(fence) && line.trim() === mark) {
      fence = undefined;
    }
    lines.push(line);
    isAfterBlank = isBlank;
  }
  blocks.push(lines.join("\n"));

  const all = definitions.join("\n");
  const refers = (block: string): boolean => all !== "" && block.includes("[") && !FENCE.test(block);
  return blocks.filter((block) => block.trim() !== "").map((block) => (refers(block) ? `${block}\n\n${all}` : block));
}

/** Lists of at most `length` blocks, in order. */
export function inParts(blocks: readonly string[], length: number): readonly (readonly string[])[] {
  const parts: string[][] = [];
  for (let from = 0; from < blocks.length; from += length) parts.push(blocks.slice(from, from + length));
  return parts;
}
