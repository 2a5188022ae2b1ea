/** The tools of the demo: harmless ones, one that needs approval, one that asks a person. */
import { askUser, defineTool, type ToolDefinition } from "turnloop";
import * as z from "zod";
import { calculate } from "./calculate.ts";

// To be fast, zod would make code of texts, which the page's policy forbids, and which the browser tells of.
z.config({ jitless: true });

/** A set with a notes list of its own, kept in memory only. */
export function demoTools(now: () => Date = () => new Date()): ToolDefinition[] {
  const notes = new Map<number, string>();
  let last = 0;

  return [
    defineTool({
      name: "calculator",
      description: "Evaluates an arithmetic expression with + - * / % ^ and parentheses.",
      inputSchema: z.object({ expression: z.string().describe("For example: (1 + 2) * 3") }),
      readOnly: true,
      execute: ({ expression }) => String(calculate(expression)),
      present: { call: ({ expression }) => ({ title: "Calculator", detail: expression }) },
    }),
    defineTool({
      name: "clock",
      description: "Tells the date and the time.",
      inputSchema: z.object({
        timeZone: z.string().optional().describe("An IANA name such as Europe/Oslo; the user's own if left out"),
      }),
      readOnly: true,
      execute: ({ timeZone }) => formatTime(now(), timeZone),
      present: { call: ({ timeZone }) => ({ title: "Clock", detail: timeZone ?? "local time" }) },
    }),
    defineTool({
      name: "list_notes",
      description: "Lists the user's notes with their numbers.",
      inputSchema: z.object({}),
      readOnly: true,
      execute: () => [...notes].map(([number, text]) => `${number}. ${text}`).join("\n") || "There are no notes.",
      present: { call: () => ({ title: "Read the notes" }) },
    }),
    defineTool({
      name: "add_note",
      description: "Adds a note. The user is asked first.",
      inputSchema: z.object({ text: z.string().min(1) }),
      needsApproval: true,
      execute({ text }) {
        notes.set((last += 1), text);
        return `Added as note ${last}.`;
      },
      present: { call: ({ text }) => ({ title: "Add a note", detail: text }) },
    }),
    defineTool({
      name: "delete_note",
      description: "Deletes the note with this number. The user is asked first.",
      inputSchema: z.object({ number: z.number().int() }),
      needsApproval: true,
      execute({ number }) {
        if (!notes.delete(number)) throw new Error(`There is no note ${number}.`);
        return `Deleted note ${number}.`;
      },
      present: { call: ({ number }) => ({ title: "Delete a note", detail: `Note ${number}` }) },
    }),
    askUser(),
  ];
}

function formatTime(at: Date, timeZone: string | undefined): string {
  return new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "short", timeZone }).format(at);
}
