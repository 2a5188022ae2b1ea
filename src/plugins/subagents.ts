/** A tool with which an agent hands a task to a helper: an agent of its own, whose session is a real one. */
import {
  defineTool,
  TurnloopError,
  type Agent,
  type AgentHandle,
  type AgentScope,
  type Plugin,
  type Session,
  type ToolCallContext,
} from "../core.ts";
import { forwardQuestions } from "./subagent-questions.ts";
import { outcomeOf, usageByModel } from "./subagent-result.ts";

export interface SubagentOptions {
  /** Of the tool. Default `delegate`. */
  readonly name?: string;
  /** What the model is told that helpers are good for. */
  readonly description?: string;
  /** How deep helpers may have helpers; default 1: they have none. */
  readonly maxDepth?: number;
  /** Those of the harness's tools that helpers may use. Default: all. */
  readonly tools?: readonly string[];
  /** The route of the helpers' model. Default: that of the harness. */
  readonly model?: string;
}

const DESCRIPTION =
  "Hands a task to a helper that works on its own and answers with its result. It knows nothing of this conversation: write down all that it needs.";

/**
 * The helper's session has the id of its parent's and of the call, so that a call that is run again joins the work
 * that was begun. It is owned by its parent and ends with it; cancelling the call cancels its turn. What it asks a
 * person is asked through the call, as a question with the payload
 * `{ helper, interaction, kind, payload }`, whose answer is handed on as it is. What it used is in the parent's log as `model/aux`.
 *
 * A helper that does not complete its turn is an error for the model. Throws INVALID_OPTIONS.
 */
export function subagents(options: SubagentOptions = {}): Plugin {
  const { name = "delegate", description = DESCRIPTION, maxDepth = 1, tools, model } = options;
  if (!Number.isSafeInteger(maxDepth) || maxDepth < 1)
    throw new TurnloopError("INVALID_OPTIONS", "subagents: `maxDepth` is a whole number from 1 on");

  return ({ harness, tools: layer }) => {
    async function helperFor(parent: Agent, callId: string): Promise<AgentHandle> {
      const id = `${parent.id}.${callId}`;
      const depth = depthOf(parent) + 1;
      const common = {
        id,
        owner: parent,
        ...(model !== undefined && { model }),
        setup(scope: AgentScope) {
          if (tools) scope.tools.restrict({ allow: [...tools, ...(depth < maxDepth ? [name] : [])] });
          else if (depth >= maxDepth && scope.tools.get(name)) scope.tools.restrict({ deny: [name] });
        },
      };
      try {
        const lineage = { id: parent.id, seq: 0 };
        return await harness.agents.create({
          ...common,
          parent: lineage,
          meta: { depth, title: `Helper of ${parent.id}` },
        });
      } catch (thrown) {
        if (!TurnloopError.is(thrown, "SESSION_EXISTS")) throw thrown;
        return harness.agents.open({ ...common, interrupted: "continue" });
      }
    }

    async function delegate({ task }: { task: string }, call: ToolCallContext): Promise<string> {
      const parent = call.agent;
      const handle = await helperFor(parent, call.callId);
      const helper = handle.agent;
      const cancel = (): void => helper.cancel("the call that asked for it was cancelled");
      const unforward = forwardQuestions(helper, parent, call);
      call.signal.addEventListener("abort", cancel, { once: true });
      try {
        if (call.signal.aborted) throw call.signal.reason;
        helper.send(task, { id: call.callId, source: { kind: "agent", agent: parent.id } });
        await helper.whenIdle();
        const session = harness.sessions.get(parent.id);
        if (session) tellUsage(session, helper);
        return outcomeOf(helper.session);
      } finally {
        unforward();
        call.signal.removeEventListener("abort", cancel);
        await handle.dispose();
      }
    }

    return layer.register(
      defineTool<{ task: string }>({
        name,
        description,
        inputSchema: {
          type: "object",
          properties: { task: { type: "string", description: "All that the helper has to know and to do" } },
          required: ["task"],
          additionalProperties: false,
        },
        validate(args) {
          const { task } = args as { task?: unknown };
          if (typeof task !== "string" || task.trim() === "") throw new TypeError("`task` must be text");
          return { task };
        },
        idempotent: true,
        parallel: true,
        execute: delegate,
      }),
    );
  };
}

/** How many agents stand above it. */
function depthOf({ session }: Agent): number {
  const { depth } = session.header.meta;
  return typeof depth === "number" ? depth : 0;
}

/** Once for each helper, however often its call is run. */
function tellUsage(parent: Session, helper: Agent): void {
  const purpose = `helper ${helper.id}`;
  if (parent.events.some((event) => event.type === "model/aux" && event.data.purpose === purpose)) return;
  for (const [model, usage] of usageByModel(helper.session)) parent.append("model/aux", { purpose, model, usage });
}
