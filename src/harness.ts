/** Wires the services of a harness, and owns their lifetime. */
import { systemClock } from "./clock.ts";
import { type Diagnostic, failureOf, TurnloopError } from "./errors.ts";
import { createHooks } from "./hooks/hooks.ts";
import type { Unregister } from "./hooks/types.ts";
import { createAgents } from "./life/agents.ts";
import { usePlugin, type Ground } from "./life/build.ts";
import { checkInterrupted } from "./life/claims.ts";
import { startDeclared } from "./life/declared.ts";
import { createModels, requireModel } from "./model/registry.ts";
import type { Model } from "./model/types.ts";
import { createPrompt } from "./prompt/prompt.ts";
import type { Harness, HarnessOptions } from "./scope.ts";
import { memoryStorage } from "./storage/memory.ts";
import { createSessions } from "./storage/sessions.ts";
import { createTools } from "./tools/registry.ts";

/**
 * Makes a harness: the models, tools, prompt, sessions and agents that belong together. Throws for options
 * that cannot work, before anything has begun: NO_ADAPTER, INVALID_MODEL, DUPLICATE_TOOL, INVALID_TOOL,
 * INVALID_TOOL_ORDER, INVALID_OPTIONS.
 */
export function createHarness(options: HarnessOptions = {}): Harness {
  checkOptions(options);
  const { clock = systemClock, newId = () => crypto.randomUUID(), storage = memoryStorage(), onSummary } = options;

  function report(diagnostic: Diagnostic): void {
    try {
      if (options.onDiagnostic) options.onDiagnostic(Object.freeze(diagnostic));
      else
        console.warn(
          `turnloop: ${diagnostic.code}: ${diagnostic.message}`,
          ...(diagnostic.cause === undefined ? [] : [diagnostic.cause]),
        );
    } catch {
      // There is nobody left to tell.
    }
  }

  const hooks = createHooks(report);
  const tools = createTools({ hooks, toolOrder: options.toolOrder });
  const prompt = createPrompt({ hooks, tools: { schemas: () => tools.ordered() } });
  const models = createModels(options.models);
  const { idempotent } = tools;
  const sessions = createSessions({ storage, clock, newId, report, hooks, idempotent, onSummary });
  const ground: Ground = {
    harness: () => harness,
    sessions,
    hooks,
    tools,
    prompt,
    models,
    clock,
    newId,
    report,
    defaultModel: registerDefault(models, options.model),
    routes: new Map(),
    contextOf: options.context && ((id) => options.context!(id)),
    maxParallelToolCalls: options.maxParallelToolCalls ?? 10,
    interactive: options.interactive ?? true,
    interrupted: options.interrupted ?? "close",
  };
  const agents = createAgents(ground);
  const undo = new Set<Unregister>();
  let disposed: Promise<void> | undefined;

  const harness: Harness = {
    get harness() {
      return harness;
    },
    hooks,
    tools,
    prompt,
    models,
    agents,
    sessions,
    clock,
    newId,
    report,
    use: (plugin) => usePlugin(plugin, harness, undo, hooks, report),
    get ready() {
      return ready;
    },
    dispose: () => (disposed ??= dispose()),
  };

  /** Agents first, while all that they use is there; then the plugins; then the storage. */
  async function dispose(): Promise<void> {
    await agents.close();
    await sessions.close();
    for (const off of [...undo].toReversed()) off();
    hooks.unwind();
    try {
      await storage.close?.();
    } catch (cause) {
      report(failureOf("STORAGE_FAILED", "the storage failed to close", cause));
    }
  }

  function compose(): void {
    if (options.system !== undefined)
      prompt.section({ name: "persona", order: 0, literal: true, text: options.system });
    prompt.variable("model", ({ agent }) => (agent ? ground.routes.get(agent)?.() : ground.defaultModel));
    prompt.variable("cwd", ({ session }) => session?.header.meta.cwd);
    for (const tool of options.tools ?? []) tools.register(tool);
    for (const plugin of options.plugins ?? []) harness.use(plugin);
    if (typeof options.model === "string") requireModel(models, options.model);
  }

  try {
    compose();
  } catch (thrown) {
    for (const off of [...undo].toReversed()) off();
    throw thrown;
  }
  const ready = startDeclared(agents, options, report);
  return harness;
}

/** A model that is given as an object gets a route under its own id. Answers with the name of the default route. */
function registerDefault(models: Ground["models"], model: Model | string | undefined): string | undefined {
  if (model === undefined || typeof model === "string") return model;
  const route = models.names().find((name) => models.get(name) === model);
  if (route !== undefined) return route;
  models.register(model.id, model);
  return model.id;
}

function checkOptions({ maxParallelToolCalls, interrupted, agents = [] }: HarnessOptions): void {
  const bad = (message: string): never => {
    throw new TurnloopError("INVALID_OPTIONS", message);
  };
  if (maxParallelToolCalls !== undefined && !(Number.isSafeInteger(maxParallelToolCalls) && maxParallelToolCalls > 0)) {
    bad("maxParallelToolCalls must be a whole number above 0");
  }
  checkInterrupted(interrupted);
  for (const { id, sessionId, resumeSessionId } of agents) {
    if (typeof id !== "string" || id === "") bad("a declared agent needs an `id`");
    if (sessionId !== undefined && resumeSessionId !== undefined)
      bad(`the agent ${id} cannot have both \`sessionId\` and \`resumeSessionId\``);
  }
}
