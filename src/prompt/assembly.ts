/** Checking what the `prompt/assemble` hook answered: it is believed, but only in the right shape. */
import { TurnloopError } from "../errors.ts";
import { isRecord, jsonCopy } from "../json.ts";
import type { ToolSchema } from "../model/types.ts";
import type { PromptAssembly, PromptSection } from "./types.ts";

/**
 * A detached copy. Tool schemas that are among `known` keep their identity, and an unchanged list is `known`
 * itself, so that whoever compares can do so by identity; others are copied and frozen. INVALID_PROMPT.
 */
export function checkAssembly(answer: unknown, known: readonly ToolSchema[]): PromptAssembly {
  const { sections, tools, variables } = asRecord(answer, "the answer");
  if (!Array.isArray(sections)) throw invalid("sections must be an array");
  return {
    sections: sections.map(checkSection),
    tools: checkTools(tools, known),
    variables: checkVariables(variables),
  };
}

function checkSection(section: unknown): PromptSection {
  const { name, order, literal, text } = asRecord(section, "a section");
  if (typeof name !== "string") throw invalid("a section has no name");
  if (typeof order !== "number" || !Number.isFinite(order)) throw invalid(`section "${name}" needs a finite order`);
  if (literal !== undefined && typeof literal !== "boolean") {
    throw invalid(`literal of section "${name}" must be a boolean`);
  }
  if (typeof text !== "string") throw invalid(`section "${name}" has no text`);
  return { name, order, ...(literal ? { literal } : undefined), text };
}

function checkTools(tools: unknown, known: readonly ToolSchema[]): readonly ToolSchema[] {
  if (tools === known) return known;
  if (!Array.isArray(tools)) throw invalid("tools must be an array");
  if (tools.length === known.length && known.every((tool, i) => tool === tools[i])) return known;
  const ours = new Set<unknown>(known);
  return Object.freeze(tools.map((tool) => (ours.has(tool) ? (tool as ToolSchema) : checkTool(tool))));
}

function checkTool(tool: unknown): ToolSchema {
  const { name, description, parameters } = asRecord(tool, "a tool");
  if (typeof name !== "string" || typeof description !== "string") {
    throw invalid("a tool needs a name and a description");
  }
  asRecord(parameters, `the parameters of tool "${name}"`);
  try {
    return jsonCopy({ name, description, parameters: parameters as ToolSchema["parameters"] });
  } catch (cause) {
    throw invalid(`the parameters of tool "${name}" are not plain JSON`, cause);
  }
}

function checkVariables(variables: unknown): PromptAssembly["variables"] {
  const copy = { ...asRecord(variables, "variables") };
  for (const [name, value] of Object.entries(copy)) {
    if (value !== undefined && typeof value !== "string") throw invalid(`variable ${name} must be text or undefined`);
  }
  return copy as PromptAssembly["variables"];
}

function asRecord(value: unknown, what: string): Record<string, unknown> {
  if (!isRecord(value)) throw invalid(`${what} must be an object`);
  return value;
}

function invalid(what: string, cause?: unknown): TurnloopError {
  const message = `prompt/assemble must answer with { sections, tools, variables }, as next() does: ${what}`;
  return new TurnloopError("INVALID_PROMPT", message, cause === undefined ? undefined : { cause });
}
