/** The stages of a tool call, without the log: what may run, with which arguments, and what the model reads of it. */
import { messageOf, TurnloopError } from "../errors.ts";
import { isThenable, type Dispatch } from "../hooks/hooks.ts";
import type { Awaitable } from "../hooks/types.ts";
import { jsonCopy, type JsonValue } from "../json.ts";
import type { Tool } from "./define.ts";
import type { Validation } from "../model/schema.ts";
import type { Guard } from "./registry.ts";
import { checkContext, checkOutcome, errorOutcome } from "./result.ts";
import type {
  CheckedContext,
  HookContext,
  PostToolDecision,
  PreToolDecision,
  ToolExecution,
  ToolOutcome,
} from "./types.ts";

/** What a model wrote as arguments: the JSON, frozen; or the text as it is, where it is none. */
export interface ParsedArguments {
  readonly value: JsonValue;
  readonly valid: boolean;
}

export function parseArguments(raw: string): ParsedArguments {
  if (raw.trim() === "") return { value: EMPTY, valid: true };
  try {
    const parsed = raw.includes("-0") ? JSON.parse(raw, noNegativeZero) : JSON.parse(raw);
    return { value: jsonCopy(parsed as JsonValue), valid: true };
  } catch {
    return { value: raw, valid: false };
  }
}

const EMPTY = Object.freeze({});

function noNegativeZero(_key: string, value: unknown): unknown {
  return value === 0 ? 0 : value;
}

/** The arguments as the body gets them. Throws INVALID_ARGS. */
export function validated(tool: Tool, { value, valid }: ParsedArguments): Awaitable<unknown> {
  if (!valid) {
    throw new TurnloopError(
      "INVALID_ARGS",
      `the arguments of ${tool.name} are not valid JSON; write them again, whole`,
    );
  }
  const verdict = (result: Validation): unknown => {
    if (result.ok) return result.value;
    throw new TurnloopError("INVALID_ARGS", `the arguments of ${tool.name} do not fit: ${result.message}`);
  };
  const result = tool.validate(value);
  return isThenable(result) ? Promise.resolve(result).then(verdict) : verdict(result);
}

/** The decision of the policies, checked: what is none of the three is refused. */
export async function decide(
  hooks: Dispatch,
  execution: ToolExecution,
  byDefault: () => Awaitable<PreToolDecision>,
): Promise<PreToolDecision> {
  const decision = await hooks.waterfall("tools/pre-execute", { execution }, byDefault);
  switch (decision?.kind) {
    case "allow":
    case "ask":
      return decision;
    case "deny":
      return { kind: "deny", reason: typeof decision.reason === "string" ? decision.reason : "the call was denied" };
    default:
      return { kind: "deny", reason: "no policy has said that the call may run" };
  }
}

/** Why a guard denies the call; undefined when none does. A guard that fails denies. */
export function guarded(guards: readonly Guard[], execution: ToolExecution): string | undefined {
  for (const guard of guards) {
    try {
      const reason: unknown = guard(execution);
      if (reason === undefined) continue;
      if (isThenable(reason)) reason.then(undefined, () => {});
      return typeof reason === "string" ? reason : "a guard answered without a reason";
    } catch (thrown) {
      return `a guard failed: ${messageOf(thrown)}`;
    }
  }
  return undefined;
}

export interface Finished {
  readonly outcome: ToolOutcome;
  readonly contexts: readonly CheckedContext[];
}

/** What the model reads in the end: accepted, replaced or blocked by the policies behind the body. */
export async function postExecute(hooks: Dispatch, execution: ToolExecution, outcome: ToolOutcome): Promise<Finished> {
  const decision = await hooks.waterfall("tools/post-execute", { execution, outcome }, () => ACCEPT);
  if (decision === ACCEPT && !outcome.additionalContext) return { outcome, contexts: NONE };
  const { additionalContext, ...bare } = outcome;
  switch (decision?.kind) {
    case "accept":
      return finish(
        decision.content === undefined ? bare : { ...bare, content: decision.content },
        additionalContext,
        decision,
      );
    case "block":
      return finish(
        { content: [{ type: "text", text: String(decision.feedback) }], isError: true },
        additionalContext,
        decision,
      );
    default:
      return { outcome: errorOutcome("a policy did not say what becomes of the result"), contexts: NONE };
  }
}

const NONE: readonly CheckedContext[] = Object.freeze([]);
const ACCEPT: PostToolDecision = Object.freeze({ kind: "accept" });

function finish(
  outcome: ToolOutcome,
  own: HookContext | undefined,
  { additionalContext: added }: PostToolDecision,
): Finished {
  const contexts = [own, added].flatMap((given) => (given ? [checkContext(given)] : []));
  return { outcome: checkOutcome(outcome), contexts };
}
