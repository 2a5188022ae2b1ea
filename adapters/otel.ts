/** `turnloop/otel`: turns, steps, model calls and tools as OpenTelemetry spans, by the semantic conventions for generative AI. */
import { context, SpanKind, SpanStatusCode, trace, type Attributes, type Span } from "@opentelemetry/api";
import type { Plugin, SessionEvent, SessionView } from "../src/core.ts";
import { finishReasonOf, modelAttributes, requestAttributes, usageAttributes } from "./otel-attributes.ts";
import { argumentsOf, definitionsOf, inputOf, instructionsOf, outputOf, resultOf } from "./otel-messages.ts";

export interface OtelOptions {
  /** Also what was said, called and answered, and what errors say. Default false: it may be private. */
  readonly content?: boolean;
  /** Of the tracer. Default `turnloop`. */
  readonly tracer?: string;
}

/** What is open in one session. */
interface Open {
  turn: Span | undefined;
  step: Span | undefined;
  request: Span | undefined;
  /** By `Model.id`, of the next request. */
  model: string | undefined;
  finish: string | undefined;
  readonly tools: Map<string, Span>;
  /** The names of the calls. */
  readonly names: Map<string, string>;
}

/**
 * A span `invoke_agent` for each turn, in it `step <n>`, and in that `chat <model>` for each attempt of a request and
 * `execute_tool <name>` for each body, with the times of the log (https://opentelemetry.io/docs/specs/semconv/gen-ai/).
 * The turns of a helper are in the span of the call that it works for. A turn that is taken up again, in this process
 * or another, has a new span. Spans go to the tracer provider that the program has registered with
 * `@opentelemetry/api`; without one nothing is done.
 */
export function otel({ content = false, tracer: name = "turnloop" }: OtelOptions = {}): Plugin {
  return ({ harness, hooks }) => {
    const tracer = trace.getTracer(name);
    const sessions = new Map<string, Open>();

    function openOf(id: string): Open {
      let open = sessions.get(id);
      if (!open) {
        open = {
          turn: undefined,
          step: undefined,
          request: undefined,
          model: undefined,
          finish: undefined,
          tools: new Map(),
          names: new Map(),
        };
        sessions.set(id, open);
      }
      return open;
    }

    function start(
      parent: Span | undefined,
      called: string,
      startTime: number,
      attributes: Attributes,
      kind?: SpanKind,
    ) {
      const around = parent ? trace.setSpan(context.active(), parent) : context.active();
      return tracer.startSpan(called, { kind: kind ?? SpanKind.INTERNAL, startTime, attributes }, around);
    }

    /** A turn that was parked begins here in the middle. */
    function turnOf(open: Open, session: SessionView, time: number): Span {
      const helper = session.header.meta["helper"];
      return (open.turn ??= start(callOf(session), "invoke_agent", time, {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.conversation.id": session.id,
        ...(typeof helper === "string" && { "gen_ai.agent.name": helper }),
      }));
    }

    /** The span of the call for which a session was begun. */
    function callOf({ id, header: { parent } }: SessionView): Span | undefined {
      if (!parent || !id.startsWith(`${parent.id}.`)) return undefined;
      return sessions.get(parent.id)?.tools.get(id.slice(parent.id.length + 1));
    }

    function fail(span: Span | undefined, code: string | undefined, message?: string): void {
      span?.setAttribute("error.type", code ?? "_OTHER");
      span?.setStatus({ code: SpanStatusCode.ERROR, ...(content && message !== undefined && { message }) });
    }

    function endRequest(open: Open, time: number): void {
      if (open.finish !== undefined) open.request?.setAttribute("gen_ai.response.finish_reasons", [open.finish]);
      open.request?.end(time);
      open.request = open.finish = undefined;
    }

    function endStep(open: Open, time: number): void {
      endRequest(open, time);
      for (const span of open.tools.values()) span.end(time);
      open.tools.clear();
      open.names.clear();
      open.step?.end(time);
      open.step = undefined;
    }

    function take(session: SessionView, event: SessionEvent): void {
      const { time } = event;
      const open = openOf(session.id);
      switch (event.type) {
        case "turn/start":
        case "turn/resumed":
          turnOf(open, session, time);
          return;
        case "step/start": {
          const attributes = { "turnloop.turn": event.data.turn, "turnloop.step": event.data.step };
          open.step = start(turnOf(open, session, time), `step ${event.data.step}`, time, attributes);
          return;
        }
        case "request/header":
          open.model = event.data.header.modelId ?? event.data.header.config.model;
          return;
        case "assistant/chunk":
          if (event.data.chunk.type === "finish") open.finish = finishReasonOf(event.data.chunk.reason);
          return;
        case "assistant/message": {
          const { model, usage, content: said, interrupted } = event.data;
          open.request?.setAttributes({
            "gen_ai.response.model": modelAttributes(model)["gen_ai.request.model"]!,
            ...usageAttributes(usage),
            ...(content && { "gen_ai.output.messages": outputOf(said, interrupted ? "aborted" : open.finish) }),
          });
          endRequest(open, time);
          return;
        }
        case "request/failed":
          open.request?.setAttributes(usageAttributes(event.data.usage));
          fail(open.request, event.data.error.code, event.data.error.message);
          endRequest(open, time);
          return;
        case "tool/call":
          open.names.set(event.data.callId, event.data.name);
          return;
        case "tool/start":
          startTool(open, session, event);
          return;
        case "tool/result": {
          const { callId, isError, error, content: said } = event.data;
          const span = open.tools.get(callId);
          if (isError) fail(span, error?.code);
          if (content) span?.setAttribute("gen_ai.tool.call.result", resultOf(said));
          span?.end(time);
          open.tools.delete(callId);
          return;
        }
        case "step/end":
          endStep(open, time);
          return;
        case "turn/end": {
          const { reason } = event.data;
          open.turn?.setAttribute("turnloop.turn.end", reason.kind);
          if (reason.kind === "error") fail(open.turn, reason.code, reason.message);
          endTurn(open, time);
        }
      }
    }

    function startTool(open: Open, session: SessionView, { time, data: { callId } }: SessionEvent<"tool/start">): void {
      // A body that is run again.
      open.tools.get(callId)?.end(time);
      const span = start(open.step ?? turnOf(open, session, time), "execute_tool", time, {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.conversation.id": session.id,
        "gen_ai.tool.call.id": callId,
        "gen_ai.tool.type": "function",
      });
      open.tools.set(callId, span);
      const called = open.names.get(callId);
      if (called !== undefined) nameTool(span, called);
    }

    /** The innermost first. What is known of the model stays: the next turn may not name it again. */
    function endTurn(open: Open, time: number): void {
      endStep(open, time);
      open.turn?.end(time);
      open.turn = undefined;
    }

    function forget(id: string): void {
      const open = sessions.get(id);
      if (open) endTurn(open, harness.clock.now());
      sessions.delete(id);
    }

    const offs = [
      hooks.on("session/event", ({ session, event }) => take(session, event)),
      hooks.on("session/disposed", ({ session: { id } }) => forget(id)),
      hooks.on("model/stream", ({ agent, request }, next) => {
        const open = openOf(agent.id);
        const time = harness.clock.now();
        const around = open.step ?? turnOf(open, agent.session, time);
        open.request = start(
          around,
          `chat ${modelAttributes(open.model)["gen_ai.request.model"] ?? ""}`.trim(),
          time,
          {
            "gen_ai.operation.name": "chat",
            "gen_ai.conversation.id": agent.id,
            ...modelAttributes(open.model),
            ...requestAttributes(request.config),
            ...(content && {
              "gen_ai.input.messages": inputOf(request.messages),
              ...instructionsOf(request.system),
              ...definitionsOf(request.tools),
            }),
          },
          SpanKind.CLIENT,
        );
        // What the model does on its own, such as its requests, is inside of it.
        return context.with(trace.setSpan(context.active(), open.request), next);
      }),
      hooks.on("tools/execute", ({ execution }, next) => {
        const span = sessions.get(execution.agent.id)?.tools.get(execution.callId);
        if (!span) return next();
        nameTool(span, execution.name);
        if (content) span.setAttribute("gen_ai.tool.call.arguments", argumentsOf(execution.arguments));
        return context.with(trace.setSpan(context.active(), span), next);
      }),
    ];
    return () => {
      for (const off of offs) off();
      for (const id of [...sessions.keys()]) forget(id);
    };
  };
}

function nameTool(span: Span, name: string): void {
  span.updateName(`execute_tool ${name}`);
  span.setAttribute("gen_ai.tool.name", name);
}
