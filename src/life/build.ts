/** Builds one agent in private: its layer of hooks, tools and prompt, its handle, and what its loop needs. */
import { createAgent, type AgentCore } from "../agent/agent.ts";
import type { Agent, AgentOptions } from "../agent/types.ts";
import { failureOf, type Report, toError } from "../errors.ts";
import { createHooks, type Dispatch } from "../hooks/hooks.ts";
import type { Unregister } from "../hooks/types.ts";
import { createDesk, type Desk } from "../interaction/desk.ts";
import { defined, jsonCopy } from "../json.ts";
import type { CallConfig, ModelRegistry } from "../model/types.ts";
import { createPrompt, type PromptLayer } from "../prompt/prompt.ts";
import type { AgentScope, Clock, Harness, Plugin } from "../scope.ts";
import type { LiveSession } from "../storage/live.ts";
import type { Archive } from "../storage/archive.ts";
import type { SessionStore } from "../storage/sessions.ts";
import { createTools, type ToolLayer } from "../tools/registry.ts";
import type { Instance } from "../loop/instance.ts";

/** What all agents of a harness share. */
export interface Ground {
  readonly harness: () => Harness;
  readonly sessions: SessionStore;
  readonly hooks: Dispatch;
  readonly tools: ToolLayer;
  readonly prompt: PromptLayer;
  readonly models: ModelRegistry;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly report: Report;
  readonly defaultModel: string | undefined;
  /** Which model an agent's next request goes to, as far as no hook says otherwise. */
  readonly routes: Map<Agent, () => string | undefined>;
  /** Rebuilds the context of an agent that is opened without one. */
  readonly contextOf: ((sessionId: string) => unknown) | undefined;
  readonly maxParallelToolCalls: number;
  readonly interactive: boolean;
  /** What becomes of a turn that was cut short, unless whoever resumes it says otherwise. */
  readonly interrupted: "close" | "continue";
}

/** An agent that nobody sees yet. */
export interface Built {
  readonly agent: Agent;
  readonly core: AgentCore;
  readonly live: LiveSession;
  readonly instance: Instance;
  readonly scope: AgentScope;
  /** Takes the layer down: what plugins asked for, then hooks, tools and prompt. Failures are reported. */
  unwind(): void;
}

export function build(ground: Ground, archive: Archive, stored: number, options: AgentOptions): Built {
  const { clock, models, newId, report } = ground;
  const hooks = createHooks(report, ground.hooks);
  const tools = createTools({ hooks, parent: ground.tools });
  const prompt = createPrompt({ hooks, tools: { schemas: () => tools.ordered() }, parent: ground.prompt });
  const live = ground.sessions.prepare(archive, stored, hooks);
  const { log, recorder } = live;
  const { model, call, context } = options;
  const agentOptions: AgentOptions = Object.freeze(defined({ model, call: call && jsonCopy(call), context }));

  const tellError = (error: unknown): void => {
    report(failureOf("FLUSH_FAILED", "the turn is not stored", error, agent.id));
    hooks.emit("agent/error", { agent, turn: log.state.turn, step: 0, error: toError(error) });
  };
  const core: AgentCore = createAgent({
    live,
    options: agentOptions,
    scope: () => scope,
    desk: () => desk,
    newId,
    report,
    tell: {
      status: (status) => hooks.emit("agent/status", { agent, status }),
      queued: (message) => hooks.emit("agent/queued", { agent, message, steering: message.as === "steer" }),
      error: tellError,
    },
    flush: live.flush,
  });
  const { agent } = core;
  const desk: Desk = createDesk({
    log,
    hooks,
    clock,
    report,
    agent: () => agent,
    idempotent: tools.idempotent,
    stored: () => recorder.flush(),
    settled: () => recorder.settle(),
    watched: () => core.snapshots.watched() || core.heeded,
  });
  live.listener = {
    changed: () => core.snapshots.changed(),
    lost(error) {
      if (core.activity) core.activity.stop({ kind: "failed", error });
      else log.close(() => error);
      core.lost();
    },
  };

  const config = configOf(agentOptions, ground.defaultModel);
  ground.routes.set(agent, () => log.state.configured.model ?? (config.model || undefined));

  const undo = new Set<Unregister>();
  const scope: AgentScope = Object.freeze({
    harness: ground.harness(),
    agent,
    session: log.session,
    hooks,
    tools,
    prompt,
    stop: core.stop,
    use: (plugin: Plugin) => usePlugin(plugin, scope, undo, hooks, report),
  });
  const instance: Instance = {
    agent,
    core,
    log,
    recorder,
    desk,
    hooks,
    tools,
    prompt,
    models,
    clock,
    newId,
    report,
    maxParallelToolCalls: ground.maxParallelToolCalls,
    interactive: ground.interactive,
    config,
    flush: live.flush,
    tellError,
    prefix: undefined,
    base: undefined,
    requested: false,
  };
  return {
    agent,
    core,
    live,
    instance,
    scope,
    unwind() {
      ground.routes.delete(agent);
      for (const off of [...undo].toReversed()) off();
      hooks.unwind();
      tools.unwind();
      prompt.unwind();
    },
  };
}

function configOf({ model, call }: AgentOptions, defaultModel: string | undefined): CallConfig {
  return Object.freeze({ model: model ?? defaultModel ?? "", ...call });
}

/** Runs a plugin on a layer; what it returns is undone once, with the layer at the latest. */
export function usePlugin<S extends Parameters<Plugin>[0]>(
  plugin: Plugin,
  scope: S,
  undo: Set<Unregister>,
  hooks: Dispatch,
  report: Report,
): Unregister {
  hooks.checkOpen();
  const end = plugin(scope);
  const off = (): void => {
    if (!undo.delete(off)) return;
    try {
      end?.();
    } catch (cause) {
      report(failureOf("PLUGIN_FAILED", "a plugin failed to unwind", cause));
    }
  };
  undo.add(off);
  return off;
}
