/** Structured output by way of a tool, for models that cannot answer in JSON of a schema by themselves. */
import {
  TurnloopError,
  type CallConfig,
  type ContentBlock,
  type JsonSchema,
  type Message,
  type Plugin,
  type SessionView,
  type ToolSchema,
} from "../core.ts";
import { foldOf, type Fold } from "./follow.ts";

export interface OutputToolOptions {
  /** The routes of models that need it. Default: those whose model says `structuredOutput: false`. */
  readonly models?: readonly string[];
  /** Default: `final_answer`. */
  readonly name?: string;
}

const DESCRIPTION = "Gives the final answer. Call it once, when everything else is done; it ends the conversation.";

/**
 * In a turn that asks for output the model is shown one tool more, and made to call tools: its call of that tool
 * becomes the text of the answer, and is never run. Other tools may be called before. INVALID_OPTIONS.
 */
export function outputTool({ models, name = "final_answer" }: OutputToolOptions = {}): Plugin {
  if (!/^[\w-]{1,64}$/.test(name)) throw new TurnloopError("INVALID_OPTIONS", "`name` must be the name of a tool");

  return ({ hooks, harness }) => {
    const isNeeded = (route = ""): boolean =>
      models ? models.includes(route) : harness.models.get(route)?.structuredOutput === false;
    const end = new AbortController();
    const { signal } = end;
    /** Where the tool is shown, and whether what it takes is in a field of its own. */
    const shown = new WeakMap<SessionView, { readonly wrapped: boolean }>();

    hooks.on(
      "prompt/assemble",
      async ({ context }, next) => {
        const assembly = await next();
        const { session } = context;
        const schema = session && wantedIn(session).open;
        if (session) shown.delete(session);
        if (!session || !schema || !isNeeded(assembly.variables["model"])) return assembly;
        const wrapped = schema["type"] !== "object";
        shown.set(session, { wrapped });
        const tool: ToolSchema = { name, description: DESCRIPTION, parameters: wrapped ? wrap(schema) : schema };
        return { ...assembly, tools: [...assembly.tools, tool] };
      },
      { signal },
    );

    hooks.on(
      "agent/request",
      async ({ agent }, next): Promise<CallConfig> => {
        const { responseFormat, ...config } = await next();
        if (!responseFormat || !shown.has(agent.session))
          return responseFormat ? { ...config, responseFormat } : config;
        return { ...config, toolChoice: "required" };
      },
      { signal },
    );

    hooks.on(
      "agent/step-result",
      async ({ agent }, next) => {
        const message = await next();
        const how = shown.get(agent.session);
        return how ? answered(message, name, how.wrapped) : message;
      },
      { signal },
    );
    return () => end.abort();
  };
}

/** The call becomes the text; beside other calls it is too early, and goes. */
function answered(message: Message, name: string, wrapped: boolean): Message {
  const isAnswer = (block: ContentBlock): boolean => block.type === "tool-call" && block.name === name;
  const answer = message.content.find(isAnswer);
  if (answer?.type !== "tool-call") return message;
  const rest = message.content.filter((block) => !isAnswer(block));
  if (rest.some((block) => block.type === "tool-call")) return { ...message, content: rest };
  const text = wrapped ? unwrap(answer.arguments) : answer.arguments;
  return { ...message, content: [...rest.filter((block) => block.type !== "text"), { type: "text", text }] };
}

/** What a tool takes is an object. */
function wrap({ $defs, ...value }: JsonSchema): JsonSchema {
  return {
    type: "object",
    properties: { value },
    required: ["value"],
    additionalProperties: false,
    ...($defs !== undefined && { $defs }),
  };
}

function unwrap(raw: string): string {
  try {
    const { value } = JSON.parse(raw) as { value?: unknown };
    return value === undefined ? raw : JSON.stringify(value);
  } catch {
    return raw;
  }
}

/** What the open turn is asked for. */
interface Wanted extends Fold {
  open: JsonSchema | undefined;
}

const wantedIn: (session: SessionView) => Wanted = /* @__PURE__ */ foldOf(createWanted, ({ start }) => start);

function createWanted(): Wanted {
  const asked = new Map<string, JsonSchema>();
  const wanted: Wanted = {
    open: undefined,
    take(event) {
      if (event.type === "inbox/queued" && event.data.output) asked.set(event.data.id, event.data.output);
      else if (event.type === "turn/end") wanted.open = undefined;
      else if (event.type === "turn/start") {
        const id = event.data.messages?.find((one) => asked.has(one));
        wanted.open = id === undefined ? undefined : asked.get(id);
      }
    },
  };
  return wanted;
}
