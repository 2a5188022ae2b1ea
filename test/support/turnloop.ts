/** The package as tests import it: the same, with every session watched for what must always hold. */
import {
  createHarness as create,
  type Harness,
  type HarnessOptions,
  type Model,
  type SessionView,
} from "../../src/index.ts";
import { brokenPromises, definedBetweenTurns, placeOf, type SeenRequest } from "./invariants.ts";

export * from "../../src/index.ts";

interface Watched {
  readonly session: SessionView;
  readonly requests: SeenRequest[];
}

const harnesses = new Set<Harness>();
const watched = new Map<SessionView, Watched>();

export function createHarness(options: HarnessOptions = {}): Harness {
  const byId = new Map<string, Watched>();
  const plugin = ({ hooks }: { readonly hooks: Harness["hooks"] }): void => {
    hooks.on("session/created", ({ session }) => {
      const entry: Watched = { session, requests: [] };
      watched.set(session, entry);
      byId.set(session.id, entry);
    });
  };
  for (const model of modelsOf(options)) watchModel(model, byId);
  const harness = create({ ...options, plugins: [plugin, ...(options.plugins ?? [])] });
  const { register } = harness.models;
  Object.assign(harness.models, {
    register(name: string, model: Model) {
      watchModel(model, byId);
      return register(name, model);
    },
  });
  const { define } = harness.sessions;
  Object.assign(harness.sessions, {
    define(type: never, rules: { betweenTurns: boolean }) {
      if (rules.betweenTurns) definedBetweenTurns.add(type);
      return define(type, rules);
    },
  });
  harnesses.add(harness);
  return harness;
}

function modelsOf({ model, models }: HarnessOptions): Model[] {
  const given = [model, ...Object.values(models ?? {})];
  return given.filter(
    (one): one is Model => typeof one === "object" && one !== null && typeof one.stream === "function",
  );
}

const seenModels = new WeakMap<Model, Set<Map<string, Watched>>>();

/** Notes what the model is sent, by the place of the step in the log at that moment. */
function watchModel(model: Model, byId: Map<string, Watched>): void {
  const watchers = seenModels.get(model);
  if (watchers) {
    watchers.add(byId);
    return;
  }
  const all = new Set([byId]);
  seenModels.set(model, all);
  const stream = model.stream;
  const note = (id: string, json: string): void => {
    for (const sessions of all) {
      const entry = sessions.get(id);
      const at = entry && placeOf(entry.session);
      if (at) entry.requests.push({ ...at, json });
    }
  };
  Object.assign(model, {
    stream(this: Model, ...[request, options]: Parameters<Model["stream"]>) {
      note(options.sessionId, JSON.stringify(request));
      return stream.call(this, request, options);
    },
  });
}

/** Ends what a test has left, and answers with every promise that its sessions broke. */
export async function settleTest(): Promise<string[]> {
  const live = [...harnesses];
  harnesses.clear();
  await Promise.all(live.map((harness) => harness.dispose()));
  const broken = [...watched.values()].flatMap(({ session, requests }) => brokenPromises(session, requests));
  watched.clear();
  return broken;
}
