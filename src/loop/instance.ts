/** One running agent, as the loop has it: the parts that its turns are made with. */
import type { Activity } from "../agent/activity.ts";
import type { AgentCore } from "../agent/agent.ts";
import type { Agent } from "../agent/types.ts";
import { failureOf, type Report } from "../errors.ts";
import type { Dispatch } from "../hooks/hooks.ts";
import type { AtTurn } from "../hooks/map.ts";
import type { Desk } from "../interaction/desk.ts";
import type { JsonSchema } from "../json.ts";
import type { CallConfig, Message, ModelRegistry } from "../model/types.ts";
import type { PromptLayer } from "../prompt/prompt.ts";
import type { Clock } from "../scope.ts";
import type { Log } from "../session/log.ts";
import type { Cite, SessionEventMap, SessionEventType, SurfaceOp } from "../session/types.ts";
import type { Recorder } from "../storage/recorder.ts";
import type { ToolLayer } from "../tools/registry.ts";
import type { CheckedContext, ToolOutcome } from "../tools/types.ts";

export interface Instance {
  readonly agent: Agent;
  readonly core: AgentCore;
  readonly log: Log;
  readonly recorder: Recorder;
  readonly desk: Desk;
  readonly hooks: Dispatch;
  readonly tools: ToolLayer;
  readonly prompt: PromptLayer;
  readonly models: ModelRegistry;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly report: Report;
  readonly maxParallelToolCalls: number;
  readonly interactive: boolean;
  /** What the agent's options say of a call; `configure` and hooks go on top. */
  readonly config: CallConfig;
  /** Stores all, and awaits the listeners of `session/flush`; gives up on a storage that does not answer. */
  flush(): Promise<void>;
  /** Tells `agent/error` of a failure outside any step. */
  tellError(error: unknown): void;
  /** Composed before the first request, and kept. */
  prefix: readonly Message[] | undefined;
  /** What a request is asked with, as long as nothing is configured anew. */
  base:
    | {
        readonly configured: Partial<CallConfig>;
        readonly output: JsonSchema | undefined;
        readonly config: CallConfig;
      }
    | undefined;
  /** Whether this instance has logged the header of a request. */
  requested: boolean;
}

/** A turn on its way. What the log knows of it is in `log.state.open`; here is only what it does not. */
export interface Turn {
  readonly instance: Instance;
  readonly activity: Activity;
  readonly number: number;
  /** An answer was cut short, so the turn ends as that. */
  cut: "max-tokens" | "content-filter" | undefined;
  /** A policy has stopped it: nothing that waits can start it again. */
  terminal: boolean;
  /** Reasons to go on, which steer the next step. */
  reasons: CheckedContext[];
  /** Steps in a row that a failed request has ended. */
  failedSteps: number;
  /** Bodies that have finished, and whose results are not in the log yet. */
  readonly outcomes: Map<string, ToolOutcome>;
  /** Why no more bodies may start. */
  fatal: Error | undefined;
}

/** Where a turn is, for its hooks. */
export function at(turn: Turn, step = turn.instance.log.state.open?.steps ?? 0): AtTurn {
  return { agent: turn.instance.agent, turn: turn.number, step, signal: turn.activity.signal };
}

/** Waits for what the turn needs. Whatever else comes of that is no reason not to run it. */
export async function prepare({ instance, activity, number: turn }: Turn): Promise<void> {
  const { agent, hooks, report } = instance;
  try {
    await activity.wait(hooks.parallel("agent/turn-start", { agent, turn, signal: activity.signal }));
  } catch (cause) {
    activity.check();
    report(failureOf("LISTENER_FAILED", "a listener of agent/turn-start failed", cause, agent.id));
  }
}

/** Appends, unless the turn was stopped; and throws when it was, or when what heard it has stopped it. */
export function write<T extends SessionEventType>(
  turn: Turn,
  type: T,
  data: SessionEventMap[T],
  meta?: { readonly surface?: SurfaceOp; readonly cites?: readonly Cite[] },
): void {
  turn.activity.check();
  turn.instance.log.write(type, data, meta);
  turn.activity.check();
}
