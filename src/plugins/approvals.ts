/** Asks a person before certain tool calls, and remembers what was allowed for the session. */
import {
  TurnloopError,
  type Agent,
  type ApprovalAnswer,
  type ApprovalPayload,
  type Awaitable,
  type Plugin,
  type PreToolDecision,
  type ToolExecution,
} from "../core.ts";
import { callOf, createDecisions, isRemembered, type ApprovalCall } from "./approval-decisions.ts";

/** True, or the reason that the person reads: ask. False: this rule does not want to. */
export type ApprovalRule = boolean | string | ((execution: ToolExecution) => Awaitable<boolean | string>);

export interface ApprovalsOptions {
  /** One rule for all, or one for each tool by name; `*` is for the tools that have none of their own. */
  readonly when: ((execution: ToolExecution) => Awaitable<boolean | string>) | Readonly<Record<string, ApprovalRule>>;
  /** After this nobody has answered, and the call is denied. Milliseconds. Default: as long as it takes. */
  readonly expiresInMs?: number;
  /**
   * What an answer with `remember: "session"` is about: calls for which this gives the same text. Default: the
   * tool's name. It is asked of logged calls too, so it may look at nothing but the call.
   */
  readonly remembers?: (call: ApprovalCall) => string;
}

/**
 * A call for which `when` says so becomes an interaction of the kind `approval`; so does one of a tool with
 * `needsApproval`. What a policy behind this one denies stays denied. An answer with `remember: "session"`, allow or
 * deny, stands in the log and is given to all later calls that it is about, and to those that wait beside it; a
 * fork begins without it. A rule that throws fails its call. INVALID_OPTIONS.
 */
export function approvals({ when, expiresInMs, remembers = toolOf }: ApprovalsOptions): Plugin {
  if (typeof when !== "function" && (typeof when !== "object" || when === null))
    throw new TurnloopError("INVALID_OPTIONS", "`when` must be a function, or rules by the names of tools");
  if (expiresInMs !== undefined && !(Number.isFinite(expiresInMs) && expiresInMs >= 0))
    throw new TurnloopError("INVALID_OPTIONS", "`expiresInMs` must be a number of milliseconds");

  return ({ hooks }) => {
    const decisions = createDecisions(remembers);
    const end = new AbortController();
    const { signal } = end;

    const decide = async (execution: ToolExecution, next: () => Promise<PreToolDecision>): Promise<PreToolDecision> => {
      const others = await next();
      if (others?.kind !== "allow" && others?.kind !== "ask") return others;
      const rule = await ruleFor(when, execution);
      const asks = rule === true || typeof rule === "string";
      if (!asks && others.kind === "allow") return others;
      const known = decisions.of(execution.agent, execution);
      if (known) return known.decision === "allow" ? { kind: "allow" } : denied(known);
      const own = {
        ...(typeof rule === "string" && { reason: rule }),
        ...(expiresInMs !== undefined && { expiresInMs }),
      };
      return { ...own, ...others, kind: "ask" };
    };
    hooks.on("tools/pre-execute", ({ execution }, next) => decide(execution, next), { signal });

    // What waits beside an answer that is remembered has its answer too.
    const share = (agent: Agent): void => {
      for (const one of agent.interactions) {
        if (one.kind !== "approval") continue;
        const known = decisions.of(agent, callOf(one.payload as ApprovalPayload));
        if (known) answer(agent, one.id, known);
      }
    };
    hooks.on("interaction/resolved", ({ agent, value }) => void (isRemembered(value) && share(agent)), { signal });
    return () => end.abort();
  };
}

function answer(agent: Agent, id: string, { decision, reason }: ApprovalAnswer): void {
  // Somebody may have answered, or the session ended, meanwhile.
  agent.respond(id, { decision, ...(reason !== undefined && { reason }) }).catch(() => {});
}

function denied({ reason }: ApprovalAnswer): PreToolDecision {
  return { kind: "deny", reason: reason ?? "the person who was asked rejects such calls in this session" };
}

async function ruleFor(when: ApprovalsOptions["when"], execution: ToolExecution): Promise<boolean | string> {
  if (typeof when === "function") return when(execution);
  const name = [execution.name, "*"].find((one) => Object.hasOwn(when, one));
  const rule = name === undefined ? false : when[name]!;
  return typeof rule === "function" ? rule(execution) : rule;
}

function toolOf({ name }: ApprovalCall): string {
  return name;
}
