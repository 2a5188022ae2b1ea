/** `turnloop/otel`: turns, model calls and tools as OpenTelemetry spans, by the semantic conventions for generative AI. */
import { context, SpanKind, SpanStatusCode, trace, type Attributes, type Span } from "@opentelemetry/api";
import type { ContentBlock, Plugin, SessionEvent, Usage } from "../src/core.ts";

export interface OtelOptions {
  /** Also what was said, called and answered. Default false: it may be private. */
  readonly content?: boolean;
  /** Of the tracer. Default `turnloop`. */
  readonly tracer?: string;
}

/** The spans of one session that are open. */
interface Open {
  turn: Span | undefined;
  model: string | undefined;
  request: Span | undefined;
  readonly tools: Map<string, Span>;
}

/**
 * A span `invoke_agent` for each turn, and in it `chat <model>` for each request and `execute_tool <name>` for each
 * body, with the times of the log (https://opentelemetry.io/docs/specs/semconv/gen-ai/). Spans go to the tracer
 * provider that the program has registered with `@opentelemetry/api`; without one nothing is done.
 */
export function otel({ content = false, tracer: name = "turnloop" }: OtelOptions = {}): Plugin {
  return ({ hooks }) => {
    const tracer = trace.getTracer(name);
    const sessions = new Map<string, Open>();

    function start(
      parent: Span | undefined,
      called: string,
      kind: SpanKind,
      time: number,
      attributes: Attributes,
    ): Span {
      const around = parent ? trace.setSpan(context.active(), parent) : context.active();
      return tracer.startSpan(called, { kind, startTime: time, attributes }, around);
    }

    function take(id: string, open: Open, event: SessionEvent): void {
      const { time } = event;
      switch (event.type) {
        case "turn/start":
        case "turn/resumed":
          open.turn ??= start(undefined, "invoke_agent", SpanKind.INTERNAL, time, {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.conversation.id": id,
          });
          return;
        case "request/header": {
          const { config, modelId } = event.data.header;
          open.model = modelId ?? config.model;
          open.request?.updateName(`chat ${open.model}`);
          open.request?.setAttributes(modelAttributes(open.model));
          return;
        }
        case "step/start":
          open.request = start(open.turn, `chat ${open.model ?? ""}`.trim(), SpanKind.CLIENT, time, {
            "gen_ai.operation.name": "chat",
            "gen_ai.conversation.id": id,
            ...modelAttributes(open.model),
          });
          return;
        case "assistant/message":
          open.request?.setAttributes({
            "gen_ai.response.model": event.data.model,
            ...usageAttributes(event.data.usage),
          });
          if (content) open.request?.setAttribute("gen_ai.output.messages", said("assistant", event.data.content));
          open.request?.end(time);
          open.request = undefined;
          return;
        case "request/failed":
          fail(open.request, event.data.error.code, event.data.error.message);
          if (event.data.next === "retry") return;
          open.request?.end(time);
          open.request = undefined;
          return;
        case "tool/start": {
          const { callId } = event.data;
          const called = open.tools.get(callId);
          called?.end(time);
          open.tools.set(callId, start(open.turn, "execute_tool", SpanKind.INTERNAL, time, toolAttributes(callId)));
          return;
        }
        case "tool/result": {
          const span = open.tools.get(event.data.callId);
          if (event.data.isError) fail(span, event.data.error?.code, undefined);
          if (content) span?.setAttribute("gen_ai.tool.call.result", said("tool", event.data.content));
          span?.end(time);
          open.tools.delete(event.data.callId);
          return;
        }
        case "turn/end": {
          const { reason } = event.data;
          open.turn?.setAttribute("gen_ai.response.finish_reasons", [reason.kind]);
          if (reason.kind === "error") fail(open.turn, reason.code, reason.message);
          endAll(id, time);
        }
      }
    }

    /** The innermost first. */
    function endAll(id: string, time?: number): void {
      const open = sessions.get(id);
      for (const span of [...(open?.tools.values() ?? []), open?.request, open?.turn]) span?.end(time);
      sessions.delete(id);
    }

    const offEvents = hooks.on("session/event", ({ session: { id }, event }) => {
      let open = sessions.get(id);
      if (!open) sessions.set(id, (open = { turn: undefined, model: undefined, request: undefined, tools: new Map() }));
      take(id, open, event);
    });
    const offCalls = hooks.on("tools/execute", ({ execution }, next) => {
      const span = sessions.get(execution.agent.id)?.tools.get(execution.callId);
      span?.updateName(`execute_tool ${execution.name}`);
      span?.setAttribute("gen_ai.tool.name", execution.name);
      if (content) span?.setAttribute("gen_ai.tool.call.arguments", JSON.stringify(execution.arguments));
      // What the body does on its own is inside of it.
      return span ? context.with(trace.setSpan(context.active(), span), next) : next();
    });
    const offSessions = hooks.on("session/disposed", ({ session: { id } }) => {
      endAll(id);
    });
    return () => {
      for (const off of [offEvents, offCalls, offSessions]) off();
    };
  };
}

function fail(span: Span | undefined, code: string | undefined, message: string | undefined): void {
  span?.setAttribute("error.type", code ?? "_OTHER");
  span?.setStatus({ code: SpanStatusCode.ERROR, ...(message !== undefined && { message }) });
}

/** `openai/gpt-5.5` is the model `gpt-5.5` of the provider `openai`. */
function modelAttributes(id: string | undefined): Attributes {
  if (id === undefined) return {};
  const slash = id.indexOf("/");
  return {
    "gen_ai.request.model": slash < 0 ? id : id.slice(slash + 1),
    ...(slash > 0 && { "gen_ai.provider.name": id.slice(0, slash) }),
  };
}

function toolAttributes(callId: string): Attributes {
  return { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": callId };
}

function usageAttributes({ input, output, cacheRead }: Usage = {}): Attributes {
  return {
    ...(input !== undefined && { "gen_ai.usage.input_tokens": input + (cacheRead ?? 0) }),
    ...(output !== undefined && { "gen_ai.usage.output_tokens": output }),
    ...(cacheRead !== undefined && { "gen_ai.usage.cache_read.input_tokens": cacheRead }),
  };
}

function said(role: string, content: readonly ContentBlock[]): string {
  return JSON.stringify([{ role, parts: content }]);
}
