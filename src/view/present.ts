/** How a tool itself presents its calls and results, where the tool is at hand. */
import type { ToolDefinition, ToolTraits, ToolView } from "../core.ts";
import type { ToolPart } from "./types.ts";

export interface Presenter {
  call(card: ToolPart): ToolView | undefined;
  result(card: ToolPart, result: PresentedResult): ToolView | undefined;
}
type Present = NonNullable<ToolTraits<unknown>["present"]>;
type PresentedResult = Parameters<NonNullable<Present["result"]>>[1];

/**
 * Asks `present` of the tool by that name, with the arguments as `execute` would get them. Without such a tool, for
 * arguments that it would refuse, and when it throws, there is no view.
 */
export function createPresenter(find: (name: string) => ToolDefinition | undefined): Presenter {
  function view(card: ToolPart, ask: (present: Present, args: unknown) => unknown): ToolView | undefined {
    try {
      const tool = find(card.name);
      const present = tool && (tool["present"] as Present | undefined);
      if (!tool || !present) return undefined;
      const args = argumentsFor(tool, card.arguments);
      const answer = args && ask(present, args.value);
      return isToolView(answer) ? answer : undefined;
    } catch {
      return undefined;
    }
  }

  return {
    call: (card) => view(card, (present, args) => present.call?.(args)),
    result: (card, result) => view(card, (present, args) => present.result?.(args, result)),
  };
}

/** What the tool's schema makes of the raw text; undefined where that takes a promise. Throws what parsing throws. */
function argumentsFor(tool: ToolDefinition, text: string): { readonly value: unknown } | undefined {
  const parsed: unknown = JSON.parse(text.trim() === "" ? "{}" : text);
  // An open record by its type: these are the fields that `defineTool` takes.
  const { inputSchema, validate } = tool as ToolDefinition & {
    readonly inputSchema?: { readonly "~standard"?: { validate(value: unknown): unknown } };
    readonly validate?: (value: unknown) => unknown;
  };
  const standard = inputSchema?.["~standard"];
  if (standard) {
    const checked = standard.validate(parsed);
    if (typeof checked !== "object" || checked === null || !("value" in checked)) return undefined;
    return "issues" in checked && checked.issues ? undefined : { value: checked.value };
  }
  return { value: validate ? validate(parsed) : parsed };
}

function isToolView(value: unknown): value is ToolView {
  return typeof value === "object" && value !== null && "title" in value && typeof value.title === "string";
}
