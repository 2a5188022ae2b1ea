/** The React hooks, under a real react-dom in a real browser. */
import { startTransition, StrictMode, useEffect, useState, type ReactElement, type ReactNode } from "react";
import { createRoot, type Root } from "react-dom/client";
import { renderToString } from "react-dom/server.browser";
import {
  createHarness,
  memoryStorage,
  TurnloopError,
  type Agent,
  type AgentHandle,
  type Harness,
  type ModelChunk,
  type SessionStorage,
} from "turnloop";
import { useAgent, useTranscript } from "turnloop/react";
import { scriptedModel, type ScriptedAnswer } from "turnloop/testing";
import { afterEach, expect, test, vi } from "vitest";

/** Until it holds; a machine that is busy may take its time. */
function eventually(holds: () => void): Promise<void> {
  return vi.waitFor(holds, { timeout: 10_000 });
}

let roots: Root[] = [];

function mount(node: ReactNode): { readonly host: HTMLElement; readonly root: Root } {
  const host = document.body.appendChild(document.createElement("div"));
  const root = createRoot(host);
  roots.push(root);
  root.render(node);
  return { host, root };
}

afterEach(() => {
  for (const root of roots) root.unmount();
  roots = [];
  document.body.replaceChildren();
});

interface Counted {
  readonly harness: Harness;
  /** The agents that were ever made here, by id. */
  readonly made: readonly string[];
}

function counted(answers: readonly ScriptedAnswer[] = []): Counted {
  const made: string[] = [];
  const harness = createHarness({ model: scriptedModel(answers) });
  harness.hooks.on("agent/created", ({ agent }) => void made.push(agent.id));
  return { harness, made };
}

function Chat({ harness, id, name = id }: { harness: Harness; id: string; name?: string }): ReactElement {
  const { agent, snapshot, error } = useAgent(harness, { id });
  const { messages } = useTranscript(agent);
  return (
    <section
      data-name={name}
      data-agent={agent?.id ?? "none"}
      data-status={snapshot?.status}
      data-error={error?.message}
    >
      {messages.map((message) => (
        <p key={message.id}>{message.parts.map((part) => ("text" in part ? part.text : ""))}</p>
      ))}
    </section>
  );
}

const view = (name: string): HTMLElement => document.querySelector<HTMLElement>(`[data-name="${name}"]`)!;
const isOpen = (name: string): Promise<void> =>
  eventually(() => expect(view(name)?.dataset).toMatchObject({ status: "idle" }));

test("a chat shows what was sent and what is answered, and its status", async () => {
  const { harness } = counted(["Hello to you"]);
  mount(<Chat harness={harness} id="a" />);
  await isOpen("a");
  harness.agents.get("a")!.send("hello");
  await eventually(() => expect(view("a").innerText).toBe("hello\n\nHello to you"));
  await isOpen("a");
});

test("StrictMode's double mount opens one agent, once, and an unmount leaves none", async () => {
  const { harness, made } = counted();
  const { root } = mount(
    <StrictMode>
      <Chat harness={harness} id="a" />
    </StrictMode>,
  );
  await isOpen("a");
  expect(made).toEqual(["a"]);
  root.unmount();
  await eventually(() => expect(harness.agents.list()).toEqual([]));
  expect(made).toEqual(["a"]);
});

test("two components on one id share one agent, which lives until the last of them goes", async () => {
  const { harness, made } = counted(["shared"]);
  const both = (isSecond: boolean): ReactElement => (
    <>
      <Chat harness={harness} id="a" name="first" />
      {isSecond && <Chat harness={harness} id="a" name="second" />}
    </>
  );
  const { root } = mount(both(true));
  await isOpen("first");
  await isOpen("second");
  const agent = harness.agents.get("a")!;
  root.render(both(false));
  await eventually(() => expect(view("second")).toBeNull());
  agent.send("still there?");
  await eventually(() => expect(view("first").innerText).toContain("shared"));
  expect(harness.agents.get("a")).toBe(agent);
  root.unmount();
  await eventually(() => expect(harness.agents.list()).toEqual([]));
  expect(made).toEqual(["a"]);
});

/** A harness whose storage does not answer until it is released. */
function held(): Counted & { release(): void; readonly asked: () => number } {
  const made: string[] = [];
  const storage = memoryStorage();
  const gate = Promise.withResolvers<void>();
  let asked = 0;
  const slow: SessionStorage = {
    ...storage,
    async load(id, options) {
      asked += 1;
      await gate.promise;
      return storage.load(id, options);
    },
  };
  const harness = createHarness({ model: scriptedModel([]), storage: slow });
  harness.hooks.on("agent/created", ({ agent }) => void made.push(agent.id));
  return { harness, made, release: () => gate.resolve(), asked: () => asked };
}

test("two components of which the first goes while both are still opening: the second gets its agent", async () => {
  const { harness, release, asked } = held();
  const both = (isFirst: boolean): ReactElement => (
    <>
      {isFirst && <Chat key="1" harness={harness} id="a" name="first" />}
      <Chat key="2" harness={harness} id="a" name="second" />
    </>
  );
  const { root } = mount(both(true));
  await eventually(() => expect(asked()).toBeGreaterThan(0));
  root.render(both(false));
  await eventually(() => expect(view("first")).toBeNull());
  release();
  await isOpen("second");
  root.unmount();
  await eventually(() => expect(harness.agents.list()).toEqual([]));
});

test("a view that replaces another in one commit finds the agent, and the turn under way, alive", async () => {
  const { harness, made } = counted([{ text: "thinking", hang: "polite" }]);
  const { root } = mount(<Chat key="1" harness={harness} id="a" name="first" />);
  await isOpen("first");
  harness.agents.get("a")!.send("go");
  await eventually(() => expect(view("first").innerText).toContain("thinking"));
  root.render(<Chat key="2" harness={harness} id="a" name="second" />);
  await eventually(() => expect(view("second")?.innerText).toContain("thinking"));
  expect(view("second").dataset).toMatchObject({ status: "running" });
  expect(made).toEqual(["a"]);
});

test("mounted again after it went, it is a new agent on the same log", async () => {
  const { harness, made } = counted(["noted"]);
  const { root } = mount(<Chat harness={harness} id="a" />);
  await isOpen("a");
  const before = harness.agents.get("a")!;
  before.send("remember");
  await eventually(() => expect(view("a").innerText).toContain("noted"));
  await before.whenIdle();
  root.render(null);
  await eventually(() => expect(harness.agents.list()).toEqual([]));
  root.render(<Chat harness={harness} id="a" />);
  await eventually(() => expect(view("a")?.innerText).toContain("noted"));
  expect(harness.agents.get("a")).not.toBe(before);
  expect(made).toEqual(["a", "a"]);
});

test("another id is another agent; the first one is gone, and never shown under the other's name", async () => {
  const { harness } = counted();
  const { root, host } = mount(<Chat harness={harness} id="a" />);
  await isOpen("a");
  const wrong: string[] = [];
  new MutationObserver(() => {
    for (const { dataset } of host.querySelectorAll("section")) {
      if (dataset["agent"] !== "none" && dataset["agent"] !== dataset["name"]) wrong.push(JSON.stringify(dataset));
    }
  }).observe(host, { subtree: true, childList: true, attributes: true });
  root.render(<Chat harness={harness} id="b" />);
  await isOpen("b");
  await eventually(() => expect(harness.agents.list().map((agent) => agent.id)).toEqual(["b"]));
  root.render(<Chat harness={harness} id="a" />);
  await isOpen("a");
  expect(wrong).toEqual([]);
});

/** `useAgent` by a function, as for a remote agent. */
function Remote({ open, id }: { open(signal: AbortSignal): Promise<AgentHandle>; id: string }): ReactElement {
  const { agent, error } = useAgent(async (signal) => open(signal), id);
  return (
    <section data-name={id} data-agent={agent?.id ?? "none"} data-error={error?.message}>
      {TurnloopError.is(error) ? error.code : ""}
    </section>
  );
}

test("unmounted while it opens: the signal aborts, and a handle that comes late is given back", async () => {
  const { harness } = counted();
  const signals: AbortSignal[] = [];
  const late = Promise.withResolvers<AgentHandle>();
  const { root } = mount(
    <Remote
      id="a"
      open={(signal) => {
        signals.push(signal);
        return late.promise;
      }}
    />,
  );
  await eventually(() => expect(signals).toHaveLength(1));
  root.unmount();
  await eventually(() => expect(signals[0]!.aborted).toBe(true));
  late.resolve(await harness.agents.open({ id: "a" }));
  await eventually(() => expect(harness.agents.list()).toEqual([]));
});

test("a harness that is still opening when the component goes opens nothing", async () => {
  const { harness, made, release, asked } = held();
  const { root } = mount(<Chat harness={harness} id="a" />);
  await eventually(() => expect(asked()).toBe(1));
  root.unmount();
  release();
  await harness.agents.open({ id: "b" });
  await eventually(() => expect(harness.agents.list().map((agent) => agent.id)).toEqual(["b"]));
  expect(made).toEqual(["b"]);
});

test("a new function at each render opens nothing anew, a new key does, by the function of that render", async () => {
  const { harness } = counted();
  const opened: string[] = [];
  const at = (key: string): ReactElement => (
    <Remote
      id={key}
      open={(signal) => {
        opened.push(key);
        return harness.agents.open({ id: key, signal });
      }}
    />
  );
  const { root } = mount(at("a"));
  await eventually(() => expect(view("a")?.dataset["agent"]).toBe("a"));
  root.render(at("a"));
  root.render(at("b"));
  await eventually(() => expect(view("b")?.dataset["agent"]).toBe("b"));
  expect(opened).toEqual(["a", "b"]);
});

test("what kept it from opening is the error, also when it was thrown at once or is no Error", async () => {
  mount(<Remote id="a" open={() => Promise.reject(new TurnloopError("SESSION_CLAIMED", "another tab has it"))} />);
  await eventually(() => expect(view("a")?.innerText).toBe("SESSION_CLAIMED"));
  mount(
    <Remote
      id="b"
      open={() => {
        // oxlint-disable-next-line no-throw-literal, typescript/only-throw-error -- what a careless caller may do
        throw "nothing";
      }}
    />,
  );
  await eventually(() => expect(view("b")?.dataset["error"]).toContain("nothing"));
});

/** Sixty words, each in a task of its own. */
async function* pacedWords(): AsyncGenerator<ModelChunk> {
  for (let n = 0; n < 60; n += 1) {
    await new Promise((resolve) => setTimeout(resolve));
    yield { type: "delta", index: 0, text: `word${n} ` };
  }
  yield { type: "finish", reason: { kind: "stop" } };
}

/** Renders that take their time are ones that React has to interrupt. */
function keepBusy(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

test("readers of one transcript never show two states at once, under transitions too", async () => {
  const harness = createHarness({ model: { id: "paced", stream: pacedWords } });
  let shift: (n: number) => void = () => {};

  function Reader({ agent, slow }: { agent: Agent | undefined; slow: number }): ReactElement {
    const { messages } = useTranscript(agent);
    keepBusy(slow);
    return <b>{messages.flatMap(({ parts }) => parts.map((part) => ("text" in part ? part.text : "")))}</b>;
  }
  function Pair(): ReactElement {
    const { agent } = useAgent(harness, { id: "a" });
    const [n, set] = useState(0);
    useEffect(() => {
      shift = set;
    }, []);
    return (
      <div data-name="pair" data-n={n} data-agent={agent?.id}>
        <Reader agent={agent} slow={n % 7} />
        <Reader agent={agent} slow={n % 5} />
      </div>
    );
  }
  const { host } = mount(<Pair />);
  await eventually(() => expect(view("pair")?.dataset["agent"]).toBe("a"));
  const torn: string[] = [];
  new MutationObserver(() => {
    const [one, two] = [...host.querySelectorAll("b")].map((reader) => reader.textContent);
    if (one !== two) torn.push(`${one} / ${two}`);
  }).observe(host, { subtree: true, childList: true, characterData: true });
  const agent = harness.agents.get("a")!;
  let n = 0;
  agent.on("assistant/chunk", () => startTransition(() => shift((n += 1))));
  agent.send("go");
  await eventually(() => expect(host.textContent).toContain("word59"));
  expect(torn).toEqual([]);
});

test("on a server nothing is opened, and the page is rendered without an agent", () => {
  const { harness, made } = counted();
  const html = renderToString(<Chat harness={harness} id="a" />);
  expect(html).toContain('data-agent="none"');
  expect(made).toEqual([]);
});
