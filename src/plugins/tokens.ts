/** How much of a model's window content takes, about; and content cut to a size. */
import type { ContentBlock, Usage } from "../core.ts";

/** What a note takes. */
const NOTE = 24;
/** A picture, or a page. */
const FILE = 1500;

/** An estimate that needs no tokenizer: four characters of Latin script, or one of a script that has more of them. */
export function tokensIn(content: readonly ContentBlock[]): number {
  let tokens = 0;
  for (const block of content) {
    switch (block.type) {
      case "text":
      case "reasoning":
        tokens += tokensOf(block.text);
        break;
      case "tool-call":
        tokens += tokensOf(block.name) + tokensOf(block.arguments);
        break;
      case "tool-result":
        tokens += tokensIn(block.content);
        break;
      case "file":
        tokens += FILE;
        break;
      case "provider-tool":
        tokens += tokensOf(JSON.stringify(block.data) ?? "");
        break;
      default:
        tokens += 20;
    }
  }
  return tokens;
}

/** Of any kind. */
export function usedTokens({ input = 0, cacheRead = 0, cacheWrite = 0, output = 0, reasoning = 0 }: Usage): number {
  return input + cacheRead + cacheWrite + output + reasoning;
}

export function tokensOf(text: string): number {
  let quarters = 0;
  for (let i = 0; i < text.length; i += 1) quarters += weightAt(text, i);
  return Math.ceil(quarters / 4);
}

function weightAt(text: string, i: number): number {
  return text.charCodeAt(i) < 0x500 ? 1 : 3;
}

/**
 * The text in at most about so many tokens: its beginning and its end, cut between code points, with a note between
 * them of how much is missing. The same text where it fits.
 */
export function shortenText(text: string, tokens: number): string {
  if (tokensOf(text) <= tokens) return text;
  const left = Math.max(0, tokens - NOTE);
  const head = boundary(text, reach(text, left * 3, 1));
  const tail = boundary(text, text.length - reach(text, left, -1));
  const missing = tail - head;
  return `${text.slice(0, head)}\n[… ${missing} of ${text.length} characters left out here …]\n${text.slice(tail)}`;
}

/** How many characters from one end weigh so many quarters of a token. */
function reach(text: string, quarters: number, step: 1 | -1): number {
  let taken = 0;
  let weight = 0;
  for (let i = step === 1 ? 0 : text.length - 1; i >= 0 && i < text.length; i += step) {
    weight += weightAt(text, i);
    if (weight > quarters) break;
    taken += 1;
  }
  return taken;
}

/** Not in the middle of a pair of surrogates. */
function boundary(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff ? at - 1 : at;
}

/** The content of a result in at most about so many tokens; undefined where nothing is gained. */
export function shortenContent(content: readonly ContentBlock[], tokens: number): readonly ContentBlock[] | undefined {
  const before = tokensIn(content);
  if (before <= tokens) return undefined;
  const parts = content.map((block) => (block.type === "text" ? block.text : `[a ${block.type} was left out here]`));
  const short = [{ type: "text" as const, text: shortenText(parts.join("\n"), tokens) }];
  return tokensIn(short) < before ? short : undefined;
}
