/** A structured result: what is asked for, whether an answer is it, and the rounds in which it is asked for again. */
import { messageOf, TurnloopError } from "../errors.ts";
import type { JsonSchema } from "../json.ts";
import { schemaOf, validatorOf } from "../model/schema.ts";
import { addUsage } from "../model/usage.ts";
import type { StandardSchema } from "../tools/types.ts";
import { problemsOf } from "./json-schema.ts";
import { followMessage, type FollowedMessage } from "./run-fold.ts";
import type { RunResult } from "./run.ts";
import type { Agent } from "./types.ts";

export interface Output {
  /** For the request. */
  readonly schema: JsonSchema;
  /** Answers with the value. Throws, in words that a model understands, when the text is not what was asked for. */
  read(text: string): Promise<unknown>;
}

/** How often a model is asked to mend its answer. */
const REPAIRS = 2;

/** Throws INVALID_SCHEMA. */
export function outputOf(given: StandardSchema | JsonSchema): Output {
  const validate = validatorOf(given);
  let schema: JsonSchema;
  try {
    schema = schemaOf(given);
  } catch (cause) {
    const what = "`output` must be JSON Schema, or a schema that can be said as JSON Schema, such as zod's";
    throw new TurnloopError("INVALID_SCHEMA", what, { cause });
  }
  return {
    schema,
    async read(text) {
      const value = jsonOf(text);
      if (validate) {
        const verdict = await validate(value);
        if (verdict.ok) return verdict.value;
        throw new TypeError(verdict.message);
      }
      const problems = problemsOf(schema, value);
      if (problems.length > 0) throw new TypeError(problems.join("; "));
      return value;
    },
  };
}

/** Models like to put JSON into a fence. */
function jsonOf(text: string): unknown {
  const fenced = /^\s*```(?:json)?\s*\n(?<json>[^]*?)\n?```\s*$/u.exec(text)?.groups?.["json"];
  try {
    return JSON.parse(fenced ?? text);
  } catch {
    throw new TypeError("it is not JSON");
  }
}

/**
 * The message, and those that ask for a better answer, as if they were one. The result rejects OUTPUT_INVALID when the
 * last answer is not what was asked for either, and with a code of its own when a turn ends before there is one.
 */
export function withRepairs(agent: Agent, first: FollowedMessage, output: Output): FollowedMessage<unknown> {
  /** The messages so far; each with the next one, or undefined when it was the last. */
  const rounds = [{ message: first, next: Promise.withResolvers<FollowedMessage | undefined>() }];
  let aborted = false;

  async function judge(): Promise<RunResult<unknown>> {
    let whole: RunResult | undefined;
    for (let repairs = 0; ; repairs += 1) {
      const round = rounds.at(-1)!;
      const result = await round.message.result;
      whole = joined(whole, result);
      checkEnd(result.reason);
      try {
        return { ...whole, output: await output.read(result.text) };
      } catch (cause) {
        const why = messageOf(cause);
        if (aborted) throw new TurnloopError("ABORTED", "the run was aborted before there was a valid answer");
        if (result.reason.kind !== "completed" || repairs === REPAIRS)
          throw new TurnloopError("OUTPUT_INVALID", `the answer is not what was asked for: ${why}`, { cause });
        const from = agent.session.seq;
        const id = agent.send(repairOf(why), { output: output.schema, source: { kind: "output-repair" } });
        const message = followMessage(agent, id, from);
        rounds.push({ message, next: Promise.withResolvers() });
        round.next.resolve(message);
      }
    }
  }

  const result = judge().finally(() => rounds.at(-1)!.next.resolve(undefined));
  return {
    result,
    abort() {
      aborted = true;
      rounds.at(-1)!.message.abort();
    },
    follow(event, end) {
      let over = false;
      let off = (): void => {};
      const follow = (at: number): void => {
        const { message, next } = rounds[at]!;
        off = message.follow(event, () => {
          void next.promise.then((more) => {
            if (over) return;
            if (more) follow(at + 1);
            else end();
          });
        });
      };
      follow(0);
      return () => {
        over = true;
        off();
      };
    },
  };
}

function repairOf(why: string): string {
  return `This answer does not fit the schema: ${why}. Answer again with the whole JSON, and with nothing else.`;
}

function joined(before: RunResult | undefined, after: RunResult): RunResult {
  if (!before) return after;
  const messages = [...before.messages, ...after.messages];
  return { ...after, messages, usage: addUsage(before.usage, after.usage) };
}

/** Throws when the turn has not come to an answer. */
function checkEnd(reason: RunResult["reason"]): void {
  const fail = (code: string, message: string): never => {
    throw new TurnloopError(code, message);
  };
  switch (reason.kind) {
    case "error":
      return fail(reason.code ?? "TURN_FAILED", reason.message);
    case "interrupted":
      return fail("TURN_INTERRUPTED", "the turn was interrupted; the log tells how far it came");
    case "aborted":
      return fail("ABORTED", `the turn was cancelled: ${reason.reason}`);
    case "disposed":
      return fail("AGENT_DISPOSED", "the agent was disposed before it had answered");
    case "blocked":
    case "rejected":
      return fail("MESSAGE_BLOCKED", `the message was blocked: ${reason.reason}`);
    case "dropped":
      return fail("MESSAGE_DROPPED", "the message was dropped before it was answered");
  }
}
