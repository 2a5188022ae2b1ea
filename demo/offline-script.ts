/** What the scripted model says and does next. */
import type { Conversation, Result } from "./offline-conversation.ts";
import { nameOf, readAttachedText, type Attached } from "./draft.ts";
import { ESSAY, INTRODUCTION, SAMPLE, wordsOf } from "./offline-texts.ts";

/** One answer of the model. */
export interface Scene {
  readonly reasoning?: string;
  readonly text?: string;
  readonly call?: Call;
  /** The request fails with this, after what was said. */
  readonly error?: string;
}

interface Call {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

export function nextScene(conversation: Conversation): Scene {
  const { task, files, steering, steered, results, soFar } = conversation;
  if (soFar !== undefined) return { text: goOn(soFar) };
  if (/\b(fail|failure|error)\b/i.test(task)) return failure();

  const calls = [task, ...steering].flatMap(callsFor);
  const heard = steered ? `You said in between: “${steering.at(-1)}”. I take that into account.\n\n` : "";
  const next = calls[results.length];
  if (next) {
    const left = calls.length - results.length;
    return {
      reasoning: reasonFor(next, left),
      ...(heard !== "" && { text: heard.trim() }),
      call: next,
    };
  }
  const said = [...files.map(wordsFor), ...results.map(sentenceFor)];
  if (said.length > 0) return { text: heard + said.join("\n\n") };
  if (/\b(long|story|essay)\b/i.test(task))
    return { reasoning: "A long text was asked for. No tool is needed.", text: ESSAY };
  if (/\b(code|table|markdown)\b/i.test(task)) return { text: heard + SAMPLE };
  const words = Number(/\b(\d{1,6}) words\b/i.exec(task)?.[1] ?? 0);
  if (words > 0) return { text: wordsOf(words) };
  return { reasoning: "None of the words that the script knows. It says what it can do.", text: heard + INTRODUCTION };
}

/** Goes on where an answer was cut short, if it is one that the script knows. */
function goOn(soFar: string): string {
  const said = soFar.trimEnd();
  if (said === BEFORE_FAILURE) return "This time it worked: the turn went on over the same history.";
  for (const text of [ESSAY, INTRODUCTION]) {
    const at = said === "" ? -1 : text.indexOf(said);
    if (at >= 0) return text.slice(at + said.length).trimStart() || "That was all.";
  }
  return "I went on from where we stopped, and there was nothing left to do.";
}

const BEFORE_FAILURE = "You asked me to fail, so here it comes.";

function failure(): Scene {
  return { text: BEFORE_FAILURE, error: "the scripted model was asked to fail, and did" };
}

function callsFor(text: string): Call[] {
  const calls: Call[] = [];
  const expression = /[\d(][\d\s.()]*(?:[-+*/%^×÷−][\d\s.()]+)+/.exec(text)?.[0].trim();
  if (expression) calls.push({ name: "calculator", args: { expression } });
  if (/\b(time|date|clock|today)\b/i.test(text)) calls.push({ name: "clock", args: zoneOf(text) });
  const added = /\b(?:add|make|take|write)\b[^:]*\bnote\b[^:]*:\s*(.+)|\bremember\b(?:\s+to)?:?\s+(.+)/is.exec(text);
  const note = (added?.[1] ?? added?.[2])?.trim();
  const deleted = /\b(?:delete|remove)\b\D*\bnote\b\D*(\d+)/i.exec(text)?.[1];
  if (note) calls.push({ name: "add_note", args: { text: note } });
  else if (deleted) calls.push({ name: "delete_note", args: { number: Number(deleted) } });
  else if (/\bnotes\b/i.test(text)) calls.push({ name: "list_notes", args: {} });
  if (/\b(plan|recommend|suggest|dinner)\b/i.test(text)) {
    const options = ["Italian", "Japanese", "Surprise me"];
    calls.push({ name: "ask_user", args: { question: "Which kitchen do you like?", options } });
  }
  return calls;
}

const ZONES: readonly (readonly [RegExp, string])[] = [
  [/oslo/i, "Europe/Oslo"],
  [/tokyo/i, "Asia/Tokyo"],
  [/new york/i, "America/New_York"],
  [/london/i, "Europe/London"],
];

function zoneOf(text: string): { timeZone?: string } {
  const zone = ZONES.find(([city]) => city.test(text));
  return zone ? { timeZone: zone[1] } : {};
}

/** A script sees no picture; it says what it was given. */
function wordsFor(file: Attached): string {
  if (file.type === "file") {
    return `I was given the image **${nameOf(file)}** (${file.mediaType}). I am a script and cannot look at it; a real model can.`;
  }
  const lines = (readAttachedText(file.text)?.text ?? "").split("\n");
  return `I was given the text **${nameOf(file)}**, ${lines.length} ${lines.length === 1 ? "line" : "lines"} long. It begins:\n\n> ${lines[0]}`;
}

function reasonFor({ name }: Call, left: number): string {
  const more = left > 1 ? ` After it, ${left === 2 ? "one more is" : `${left - 1} more are`} needed.` : "";
  return `The message calls for the tool “${name}”.${more}`;
}

function sentenceFor({ tool, args, text, isError }: Result): string {
  if (isError) return `The tool \`${tool}\` did not do it: ${text.replace(/^Error: /, "")}`;
  switch (tool) {
    case "calculator":
      return `**${String(args["expression"])} = ${Number(text).toLocaleString("en", { maximumFractionDigits: 10 })}**`;
    case "clock":
      return `It is ${text}${typeof args["timeZone"] === "string" ? ` in ${args["timeZone"]}` : ""}.`;
    case "list_notes":
      return `Your notes:\n\n${text}`;
    case "ask_user":
      return `You chose **${text}**, so here is a plan:\n\n${menuFor(text)}`;
    default:
      return text;
  }
}

function menuFor(choice: string): string {
  const [starter, main, sweet] = /ital/i.test(choice)
    ? ["Bruschetta", "Risotto with mushrooms", "Panna cotta"]
    : /japan/i.test(choice)
      ? ["Miso soup", "Salmon with rice", "Matcha ice cream"]
      : ["Whatever is in season", "Its best friend, roasted", "Something with chocolate"];
  return `| Course | Dish |\n| --- | --- |\n| Starter | ${starter} |\n| Main | ${main} |\n| Sweet | ${sweet} |`;
}
