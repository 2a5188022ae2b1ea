/** `turnloop/ai-sdk`: language models and tools of the AI SDK, as models and tools of this package. */
import type { LanguageModelV4CallOptions, LanguageModelV4StreamResult } from "@ai-sdk/provider";
import { TurnloopError, type ErrorData, type Model, type ModelChunk, type ModelRequest } from "../../src/core.ts";
import { callOptions, type Extras } from "./ai-sdk-call.ts";
import { cutOff, modelError, modelErrorData } from "./ai-sdk-errors.ts";
import type { Version } from "./ai-sdk-legacy.ts";
import { providerToolsOf } from "./ai-sdk-provider-tools.ts";
import { openReader, type PartReader } from "./ai-sdk-reader.ts";
import { translation } from "./ai-sdk-stream.ts";
import { onceEach, warningText } from "./ai-sdk-warnings.ts";

export { aiSdkTools } from "./ai-sdk-tools.ts";

export interface AiSdkModelOptions {
  /**
   * What the log names; default `${provider}/${modelId}`, such as `openai/gpt-5.5`. What stands before the
   * first slash is the provider family: reasoning and metadata go back to models of the family that wrote
   * them, and to no others.
   */
  readonly id?: string;
  /** Sent with every request; never logged. */
  readonly headers?: Readonly<Record<string, string>>;
  /** In tokens. */
  readonly contextWindow?: number;
  /** False for a model that cannot answer in JSON of a schema: `standard()` then has it call a tool. Default true. */
  readonly structuredOutput?: boolean;
  /** Tools that the provider runs itself, such as `{ search: openai.tools.webSearch() }`, by name. */
  readonly providerTools?: Readonly<Record<string, unknown>>;
  /** Each distinct warning of the provider, once. Default: `console.warn`. */
  readonly onWarning?: (message: string) => void;
}

interface LanguageModel {
  readonly specificationVersion: Version;
  readonly provider: string;
  readonly modelId: string;
  doStream(options: LanguageModelV4CallOptions): PromiseLike<LanguageModelV4StreamResult>;
}

/**
 * Any language model of the AI SDK (interface V4, V3 or V2) as a model. It calls `doStream` alone, so `ai`
 * itself is not needed.
 *
 * Its failures are coded RATE_LIMITED (429; `retryAfterMs` where the provider says it), MODEL_QUOTA (used up:
 * waiting does not help), MODEL_AUTH (401, 403), CONTEXT_OVERFLOW, CONTENT_FILTERED, MODEL_OVERLOADED (503, 529),
 * MODEL_BAD_RESPONSE (no model's answer), MODEL_UNREACHABLE (no answer), MODEL_UNSUPPORTED, STREAM_BROKEN (the
 * connection was lost), STREAM_INTERRUPTED (the answer has no end), and MODEL_ERROR for all else; `status`
 * holds the HTTP status. No key or header is in a message.
 *
 * Throws INVALID_MODEL.
 */
export function aiSdkModel(model: unknown, options: AiSdkModelOptions = {}): Model {
  const languageModel = checked(model);
  const { specificationVersion: version, provider, modelId } = languageModel;
  const { headers, contextWindow, structuredOutput } = options;
  const id = options.id ?? `${provider.split(".")[0]}/${modelId}`;
  const extras: Extras = { modelId: id, version, headers, providerTools: providerToolsOf(options.providerTools) };
  // eslint-disable-next-line no-console -- the way to tell a developer, until `onWarning` is given
  const warn = onceEach(options.onWarning ?? ((message) => console.warn(`turnloop: ${id}: ${message}`)));
  const origin = { modelId: id, secrets: Object.values(headers ?? {}) };

  async function* stream(
    request: ModelRequest,
    { signal }: { signal: AbortSignal },
  ): AsyncGenerator<ModelChunk | readonly ModelChunk[]> {
    let reader: PartReader | undefined;
    const parts = translation({
      error: (thrown) => modelErrorData(thrown, { ...origin, answered: true }),
      cutOff: (empty) => cutOff(id, empty, reader?.contentType),
      warnings: (warnings) => warnings.forEach((warning) => warn(warningText(warning))),
    });
    if (request.config.reasoning !== undefined && version !== "v4") {
      warn(`unsupported: reasoning: models of the interface ${version} take it through providerOptions`);
    }
    try {
      reader = await openReader(() => languageModel.doStream(callOptions(request, extras, signal)), signal);
      for (let read = await reader?.read(); read && !read.done; read = await reader?.read()) {
        const chunk = parts.next(read.value);
        if (chunk) yield chunk;
        if (read.value.type === "finish") return;
      }
      if (signal.aborted) yield ABORTED;
      else if (parts.failure) yield failed(parts.failure);
    } catch (error) {
      if (signal.aborted) yield ABORTED;
      else if (parts.failure) yield failed(parts.failure);
      else throw modelError(error, { ...origin, answered: reader !== undefined });
    } finally {
      reader?.close();
    }
  }

  return {
    id,
    ...(contextWindow === undefined ? undefined : { contextWindow }),
    ...(structuredOutput === undefined ? undefined : { structuredOutput }),
    stream,
  };
}

const ABORTED: ModelChunk = { type: "finish", reason: { kind: "aborted" } };

function failed(error: ErrorData): ModelChunk {
  return { type: "finish", reason: { kind: "error", ...error } };
}

function checked(model: unknown): LanguageModel {
  if (typeof model === "string") {
    throw invalid(
      `the id ${JSON.stringify(model)} names no provider; pass a model made by one, such as openai("gpt-5.5")`,
    );
  }
  const { specificationVersion: version, doStream, provider, modelId } = (model ?? {}) as Partial<LanguageModel>;
  if (typeof doStream !== "function") {
    throw invalid('it needs a language model of the AI SDK, such as openai("gpt-5.5"); this has no doStream');
  }
  if (version !== "v2" && version !== "v3" && version !== "v4") {
    throw invalid(
      `the model's interface is ${version ?? "unknown"}, and V2, V3 and V4 are known; use another version of its provider package`,
    );
  }
  if (typeof provider !== "string" || typeof modelId !== "string")
    throw invalid("the model names no `provider` and no `modelId`");
  return model as LanguageModel;
}

function invalid(message: string): TurnloopError {
  return new TurnloopError("INVALID_MODEL", `aiSdkModel: ${message}`);
}
