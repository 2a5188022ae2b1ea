/** Runs the body of a tool, and gives it its context: alive as long as the call is, inert from then on. */
import { TurnloopError } from "../errors.ts";
import { isThenable } from "../hooks/hooks.ts";
import { jsonCopy, type JsonValue } from "../json.ts";
import type { Tool } from "../tools/define.ts";
import { errorOutcome, outcomeOf } from "../tools/result.ts";
import type { ToolCallContext, ToolExecution, ToolOutcome } from "../tools/types.ts";
import { askPerson } from "./asking.ts";
import type { Turn } from "./instance.ts";

/**
 * Never rejects but for a stop of the turn; a body that has finished then keeps its own outcome. Once the call is
 * `over`, what the body still does and says is nobody's.
 */
export async function runBody(
  turn: Turn,
  tool: Tool,
  args: unknown,
  execution: ToolExecution,
  place: { readonly over: boolean } = ALIVE,
): Promise<ToolOutcome> {
  const { activity, outcomes } = turn;
  const { timeoutMs } = tool;
  const limit =
    timeoutMs === undefined ? undefined : timeLimit(turn, tool.name, timeoutMs, execution.signal, () => end());
  const { context, end } = callContext(turn, { ...execution, ...(limit && { signal: limit.signal }) }, limit, place);
  outcomes.delete(execution.callId);
  const finish = (outcome: ToolOutcome): ToolOutcome => {
    if (!limit?.over && !place.over) outcomes.set(execution.callId, outcome);
    return outcome;
  };
  // What a body throws after a stop is most likely the stop itself.
  const fail = (thrown: unknown): ToolOutcome =>
    activity.stopped ? errorOutcome(thrown) : finish(errorOutcome(thrown));
  try {
    const answer = tool.execute!(args, context);
    if (!isThenable(answer)) return finish(outcomeOf(answer));
    const body = Promise.resolve(answer).then((value) => finish(outcomeOf(value)), fail);
    return await activity.wait(limit ? Promise.race([body, limit.reached]) : body);
  } catch (thrown) {
    activity.check();
    return fail(thrown);
  } finally {
    end();
    limit?.end();
  }
}

const ALIVE = { over: false };

/** Aborts the body's signal in time, and answers for a body that does not care. It stands while a person is asked. */
function timeLimit({ instance }: Turn, tool: string, ms: number, outer: AbortSignal, expire: () => void): TimeLimit {
  const { clock } = instance;
  const controller = new AbortController();
  const reached = Promise.withResolvers<ToolOutcome>();
  let running: { readonly since: number; readonly timer: AbortController } | undefined;
  let left = ms;
  const limit: TimeLimit = {
    signal: controller.signal,
    over: false,
    reached: reached.promise,
    start() {
      const timer = new AbortController();
      running = { since: clock.now(), timer };
      clock.sleep(left, timer.signal).then(
        () => {
          limit.over = true;
          expire();
          const error = new TurnloopError("TOOL_TIMEOUT", `${tool} took longer than ${ms} ms; it may still finish`);
          controller.abort(error);
          reached.resolve(errorOutcome(error));
        },
        () => {},
      );
    },
    pause() {
      if (!running) return;
      left = Math.max(0, left - (clock.now() - running.since));
      running.timer.abort();
      running = undefined;
    },
    end() {
      outer.removeEventListener("abort", pass);
      limit.pause();
    },
  };
  const pass = (): void => controller.abort(outer.reason);
  outer.addEventListener("abort", pass, { once: true });
  if (outer.aborted) pass();
  limit.start();
  return limit;
}

interface TimeLimit {
  readonly signal: AbortSignal;
  over: boolean;
  readonly reached: Promise<ToolOutcome>;
  start(): void;
  pause(): void;
  end(): void;
}

/** What a body is handed. */
function callContext(
  turn: Turn,
  { callId, agent, signal }: ToolExecution,
  limit: TimeLimit | undefined,
  place: { readonly over: boolean },
): { context: ToolCallContext; end(): void } {
  const { log } = turn.instance;
  let ended = false;
  let asked = 0;
  let waiting = 0;
  const context: ToolCallContext = {
    callId,
    agent,
    context: agent.options.context,
    signal,
    progress(value) {
      if (ended || place.over || turn.activity.stopped) return;
      log.write("tool/progress", { callId, value: jsonCopy(value) });
    },
    async ask(payload: JsonValue, options = {}) {
      if (ended || place.over || turn.activity.stopped) {
        throw new TurnloopError("INTERACTION_CANCELLED", "the call has ended, so nothing can be asked any more");
      }
      asked += 1;
      waiting += 1;
      limit?.pause();
      try {
        return await askPerson(turn, callId, asked, jsonCopy(payload), options.expiresInMs);
      } finally {
        waiting -= 1;
        if (waiting === 0 && !ended) limit?.start();
      }
    },
  };
  return { context, end: () => void (ended = true) };
}

/** What `needsApproval` is handed: a look at the call, and nothing that only a running body has. */
export function lookingContext({ callId, agent, signal }: ToolExecution): ToolCallContext {
  return {
    callId,
    agent,
    context: agent.options.context,
    signal,
    progress() {},
    async ask() {
      throw new TurnloopError(
        "INTERACTION_UNAVAILABLE",
        "`needsApproval` cannot ask; it answers true, and a person is asked",
      );
    },
  };
}
