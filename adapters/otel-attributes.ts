/** What a request asks with and has used, as attributes of the conventions. */
import type { Attributes } from "@opentelemetry/api";
import type { CallConfig, FinishReason, Usage } from "../src/core.ts";

/** `openai/gpt-5.5` is the model `gpt-5.5` of the provider `openai`. */
export function modelAttributes(id: string | undefined): {
  "gen_ai.request.model"?: string;
  "gen_ai.provider.name"?: string;
} {
  if (id === undefined) return {};
  const slash = id.indexOf("/");
  return {
    "gen_ai.request.model": slash < 0 ? id : id.slice(slash + 1),
    ...(slash > 0 && { "gen_ai.provider.name": id.slice(0, slash) }),
  };
}

/** What is not asked for is absent. */
export function requestAttributes(config: CallConfig): Attributes {
  return {
    "gen_ai.request.stream": true,
    "gen_ai.request.max_tokens": config.maxOutputTokens,
    "gen_ai.request.temperature": config.temperature,
    "gen_ai.request.top_p": config.topP,
    "gen_ai.request.top_k": config.topK,
    "gen_ai.request.presence_penalty": config.presencePenalty,
    "gen_ai.request.frequency_penalty": config.frequencyPenalty,
    "gen_ai.request.seed": config.seed,
    "gen_ai.request.stop_sequences": config.stop && [...config.stop],
    "gen_ai.output.type": config.responseFormat?.type,
  };
}

/** The conventions count what was cached as input, and reasoning as output. */
export function usageAttributes({ input, cacheRead, cacheWrite, output, reasoning }: Usage = {}): Attributes {
  return {
    "gen_ai.usage.input_tokens": sum(input, cacheRead, cacheWrite),
    "gen_ai.usage.cache_read.input_tokens": cacheRead,
    "gen_ai.usage.cache_creation.input_tokens": cacheWrite,
    "gen_ai.usage.output_tokens": sum(output, reasoning),
    "gen_ai.usage.reasoning.output_tokens": reasoning,
  };
}

function sum(...counts: readonly (number | undefined)[]): number | undefined {
  const known = counts.filter((count) => count !== undefined);
  return known.length === 0 ? undefined : known.reduce((total, count) => total + count, 0);
}

const REASONS: Partial<Record<FinishReason["kind"], string>> = {
  "tool-calls": "tool_call",
  "max-tokens": "length",
  "content-filter": "content_filter",
};

export function finishReasonOf({ kind }: FinishReason): string {
  return REASONS[kind] ?? kind;
}
