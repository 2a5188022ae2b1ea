/** A tool with which an agent hands a task to a helper: an agent of its own, whose session is a real one. */
import { defineTool, TurnloopError, type Agent, type AgentScope, type Plugin, type ToolCallContext } from "../core.ts";
import { beginHelper, depthOf, isHelperOf } from "./subagent-begin.ts";
import { forwardQuestions } from "./subagent-questions.ts";
import { outcomeOf, tellUsage } from "./subagent-result.ts";

export type { SubagentQuestion } from "./subagent-questions.ts";

export interface SubagentOptions {
  /** Of the tool, and of this kind of helpers. Default `delegate`. */
  readonly name?: string;
  /** What the model is told that these helpers are good for. */
  readonly description?: string;
  /** What a helper begins with: its task alone, or the turns that its parent has completed too. Default: `task`. */
  readonly knows?: "task" | "conversation";
  /** Its persona, taken literally, in place of the harness's. */
  readonly system?: string;
  /** The route of its model. Default: its parent's. */
  readonly model?: string;
  /** Those of the harness's tools that it may use. Default: all. */
  readonly tools?: readonly string[];
  /** For each helper anew, on top of the harness's: limits such as `budget({ steps: 20 })`, or tools of its own. */
  readonly plugins?: readonly Plugin[];
  /** How deep helpers may have helpers; default 1: they have none. */
  readonly maxDepth?: number;
}

const DESCRIPTION = "Hands a task to a helper that works on its own and answers with its result. ";
const KNOWS = {
  task: "It knows nothing of this conversation: write down all that it needs.",
  conversation: "It knows this conversation up to the last answer: write down what has come since.",
};

/**
 * The helper's session has the id of its parent's and of the call, so that a call that is run again joins the work
 * that was begun. It is owned by its parent and ends with it; whoever looks at it may steer or cancel it. Cancelling
 * the call cancels its turn. What it asks a person is asked through the call (`SubagentQuestion`). What it used is in
 * the parent's log as `model/aux`.
 *
 * A helper that does not complete its turn is an error for the model. Throws INVALID_OPTIONS.
 */
export function subagents(options: SubagentOptions = {}): Plugin {
  const { name = "delegate", knows = "task", maxDepth = 1, system, model, tools, plugins = [] } = options;
  if (!Number.isSafeInteger(maxDepth) || maxDepth < 1)
    throw new TurnloopError("INVALID_OPTIONS", "subagents: `maxDepth` is a whole number from 1 on");
  if (!Object.hasOwn(KNOWS, knows))
    throw new TurnloopError("INVALID_OPTIONS", 'subagents: `knows` is "task" or "conversation"');

  return ({ harness, hooks, tools: layer }) => {
    const shaped = new WeakSet<Agent>();

    /** Makes an agent one of these helpers. Throws INVALID_RESTRICTION, and what a plugin throws. */
    function shape(scope: AgentScope): void {
      if (shaped.has(scope.agent)) return;
      shaped.add(scope.agent);
      if (tools) scope.tools.restrict({ allow: depthOf(scope.agent) < maxDepth ? [...tools, name] : tools });
      if (system !== undefined) scope.prompt.section({ name: "persona", order: 0, literal: true, text: system });
      for (const plugin of plugins) scope.use(plugin);
    }

    async function delegate({ task }: { task: string }, call: ToolCallContext): Promise<string> {
      const handle = await beginHelper(harness, call, { kind: name, setup: shape, knows, model });
      const helper = handle.agent;
      const { promise: left, reject: leave } = Promise.withResolvers<never>();
      let failure: unknown;
      const unforward = forwardQuestions(helper, call, harness.clock, (cause) => {
        failure ??= cause;
        helper.cancel("its questions cannot be asked");
      });
      const stop = (): void => {
        // When all is disposed, one that waits for a person waits on, as its parent does.
        const isDisposed = TurnloopError.is(call.signal.reason, "AGENT_DISPOSED");
        if (isDisposed && helper.getSnapshot().waiting) leave(call.signal.reason);
        else helper.cancel("the call that asked for it was cancelled");
      };
      call.signal.addEventListener("abort", stop, { once: true });
      try {
        if (call.signal.aborted) stop();
        else helper.send(task, { id: call.callId, source: { kind: "agent", agent: call.agent.id } });
        await Promise.race([helper.whenIdle(), left]);
        if (failure !== undefined) throw failure;
        return outcomeOf(helper.session);
      } finally {
        unforward();
        call.signal.removeEventListener("abort", stop);
        const session = harness.sessions.get(call.agent.id);
        if (session) tellUsage(session, helper.session);
        await handle.dispose();
      }
    }

    const offCreated = hooks.on("agent/created", ({ agent }) => {
      const { scope } = agent;
      if (!scope) return;
      try {
        // One that was opened to be looked at is no less bound than in its call.
        if (isHelperOf(agent, name)) shape(scope);
        if (depthOf(agent) >= maxDepth && scope.tools.get(name)) scope.tools.restrict({ deny: [name] });
      } catch (cause) {
        scope.tools.guard(() => "this helper could not be set up, so that it may use no tools");
        throw cause;
      }
    });
    const offTool = layer.register(
      defineTool<{ task: string }>({
        name,
        description: options.description ?? DESCRIPTION + KNOWS[knows],
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
    return () => {
      offCreated();
      offTool();
    };
  };
}
