/** From a request to the call options of the AI SDK's `doStream`. */
import type {
  LanguageModelV4CallOptions,
  LanguageModelV4ProviderTool,
  LanguageModelV4ToolChoice,
} from "@ai-sdk/provider";
import type { CallConfig, ModelRequest } from "../../src/core.ts";
import { promptFor, type Version } from "./ai-sdk-legacy.ts";
import { promptOf } from "./ai-sdk-prompt.ts";

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** What the model object adds to every request. */
export interface Extras {
  readonly modelId: string;
  readonly version: Version;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly providerTools: readonly LanguageModelV4ProviderTool[];
}

export function callOptions(request: ModelRequest, extras: Extras, signal: AbortSignal): LanguageModelV4CallOptions {
  const { config } = request;
  const tools = [...functionTools(request), ...extras.providerTools.map((tool) => providerTool(tool, extras.version))];
  return {
    prompt: promptFor(extras.version, promptOf(request, extras.modelId)),
    abortSignal: signal,
    ...defined({
      maxOutputTokens: config.maxOutputTokens,
      temperature: config.temperature,
      topP: config.topP,
      topK: config.topK,
      presencePenalty: config.presencePenalty,
      frequencyPenalty: config.frequencyPenalty,
      stopSequences: config.stop && [...config.stop],
      seed: config.seed,
      reasoning: extras.version === "v4" ? config.reasoning : undefined,
      responseFormat: config.responseFormat,
      // Given by the user for this provider, and checked by it.
      providerOptions: config.providerOptions as LanguageModelV4CallOptions["providerOptions"],
      headers: extras.headers && { ...extras.headers },
      // A choice without tools is refused.
      ...(tools.length > 0 ? { tools, toolChoice: toolChoice(config.toolChoice) } : undefined),
    }),
  };
}

function functionTools({ tools = [] }: ModelRequest): NonNullable<LanguageModelV4CallOptions["tools"]> {
  return tools.map(({ name, description, parameters }) => ({
    type: "function",
    name,
    description,
    // JSON Schema, whose dialects the provider's type narrows to one.
    inputSchema: parameters as object,
  }));
}

function providerTool(tool: LanguageModelV4ProviderTool, version: Version): LanguageModelV4ProviderTool {
  // V2 has another name for the same thing.
  return version === "v2" ? ({ ...tool, type: "provider-defined" } as unknown as LanguageModelV4ProviderTool) : tool;
}

function toolChoice(choice: CallConfig["toolChoice"]): LanguageModelV4ToolChoice | undefined {
  if (choice === undefined) return undefined;
  return typeof choice === "string" ? { type: choice } : { type: "tool", toolName: choice.tool };
}

function defined<T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>;
}
