/** Section A: how an agent comes to be known. D4: what a listener may not do about it. */
import { defineTool } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { harnessWith, local } from "../support/fixture.ts";
import { isPending, stage, toldBy, ways, WAYS } from "../support/lifecycle.ts";
import { deferred, textOf } from "../support/wait.ts";

for (const way of ways) {
  local(
    `#1 ${way}: setup, both registries, the session, the agent, session-start, and only then the driver`,
    async () => {
      const { harness, begin } = await stage(way);
      const told = toldBy(harness.hooks);
      const known = (when: string): void => {
        const session = harness.sessions.get("s") ? "session" : "no session";
        const agent = harness.agents.get("s") ? "agent" : "no agent";
        told.push(`${when}: ${session}, ${agent}`);
      };
      harness.hooks.on("session/created", () => known("first word"));
      harness.hooks.on("agent/session-start", ({ agent }) => void agent.send("hello"));
      const { agent } = await begin({ setup: () => known("setup") });
      await agent.whenIdle();
      expect(told).toEqual([
        "setup: no session, no agent",
        "session/created s",
        "first word: session, agent",
        "agent/created s",
        `agent/session-start s ${WAYS[way]}`,
        "agent/status s running",
        "agent/status s idle",
      ]);
    },
  );

  local(`#2 ${way}: while setup runs nobody knows the agent, whatever it waits for`, async () => {
    const { harness, begin } = await stage(way);
    const told = toldBy(harness.hooks);
    const entered = deferred();
    const gate = deferred();
    const beginning = begin({
      async setup() {
        entered.resolve();
        await gate.promise;
      },
    });
    await entered.promise;
    expect(await isPending(beginning)).toBe(true);
    expect([harness.agents.get("s"), harness.sessions.get("s"), ...harness.agents.list()]).toEqual([
      undefined,
      undefined,
    ]);
    expect(told).toEqual([]);
    gate.resolve();
    const { agent } = await beginning;
    expect(harness.agents.get("s")).toBe(agent);
    expect(harness.sessions.get("s")).toBe(agent.session);
  });

  local(`#2 ${way}: what setup registered is there before the first word and the first prompt`, async () => {
    const model = scriptedModel(["hi"]);
    const { harness, begin } = await stage(way, { model });
    const heard: string[] = [];
    const toolsAtFirstWord: (string | undefined)[] = [];
    harness.hooks.on("session/created", ({ session }) => {
      toolsAtFirstWord.push(harness.agents.get(session.id)?.scope?.tools.get("look")?.name);
    });
    const { agent } = await begin({
      async setup({ hooks, tools, prompt }) {
        await Promise.resolve();
        hooks.on("session/created", () => void heard.push("session/created"));
        hooks.on("agent/created", () => void heard.push("agent/created"));
        hooks.on("agent/session-start", () => void heard.push("agent/session-start"));
        hooks.on("prompt/assemble", (_, next) => {
          heard.push("prompt/assemble");
          return next();
        });
        prompt.section({ name: "house", text: "Be kind." });
        tools.register(defineTool({ name: "look", description: "Looks", inputSchema: {}, execute: () => "nothing" }));
      },
    });
    agent.send("hello");
    await agent.whenIdle();
    expect(heard).toEqual(["session/created", "agent/created", "agent/session-start", "prompt/assemble"]);
    expect(toolsAtFirstWord).toEqual(["look"]);
    expect(model.requests[0]?.system).toBe("Be kind.");
    expect(model.requests[0]?.tools?.map((tool) => tool.name)).toEqual(["look"]);
  });

  local(`#3 D3 ${way}: setup gets the whole layer of the agent, and the harness behind it`, async () => {
    const { harness, begin } = await stage(way);
    let given: object | undefined;
    const { agent } = await begin({
      setup(scope) {
        given = scope;
        expect(scope.harness).toBe(harness);
        expect(scope.harness.agents).toBe(harness.agents);
        expect(scope.harness.sessions).toBe(harness.sessions);
        expect(scope.harness.models).toBe(harness.models);
        expect(scope.session).toBe(scope.agent.session);
        expect(Object.keys(scope).toSorted()).toEqual(
          ["agent", "harness", "hooks", "prompt", "session", "stop", "tools", "use"].toSorted(),
        );
      },
    });
    expect(agent.scope).toBe(given);
  });

  local(`#17 ${way}: session-start is told once for the instance, as ${WAYS[way]}`, async () => {
    const { harness, begin } = await stage(way);
    const sources: string[] = [];
    harness.hooks.on("agent/session-start", ({ source }) => void sources.push(source));
    const { agent } = await begin();
    agent.send("hello");
    await agent.whenIdle();
    agent.send("again");
    await agent.whenIdle();
    expect(sources).toEqual([WAYS[way]]);
  });

  local(`D4 #10 #15 ${way}: a listener that throws vetoes nothing and starves nobody`, async () => {
    const { harness, begin } = await stage(way);
    for (const name of ["session/created", "agent/created", "agent/session-start"] as const) {
      harness.hooks.on(name, () => {
        throw new Error(`no ${name}`);
      });
    }
    const told = toldBy(harness.hooks);
    const { agent } = await begin();
    expect(told).toEqual(["session/created s", "agent/created s", `agent/session-start s ${WAYS[way]}`]);
    expect(harness.diagnostics.map(({ code }) => code)).toEqual(Array(3).fill("LISTENER_FAILED"));
    expect(harness.agents.get("s")).toBe(agent);
  });

  // That it is never an unhandled rejection is looked at by the test runner.
  local(`#11 #15 ${way}: a listener that rejects is reported, and vetoes nothing`, async () => {
    const { harness, begin } = await stage(way);
    for (const name of ["session/created", "agent/created", "agent/session-start"] as const) {
      harness.hooks.on(name, () => Promise.reject(new Error(`no ${name}`)));
    }
    const told = toldBy(harness.hooks);
    await begin();
    expect(told).toEqual(["session/created s", "agent/created s", `agent/session-start s ${WAYS[way]}`]);
    expect(harness.diagnostics.map(({ code, message }) => [code, /no \S+$/.exec(message)?.[0]])).toEqual([
      ["LISTENER_FAILED", "no session/created"],
      ["LISTENER_FAILED", "no agent/created"],
      ["LISTENER_FAILED", "no agent/session-start"],
    ]);
  });

  local(
    `#16 ${way}: what session-start sends runs once the driver starts, and what it injects is read by it`,
    async () => {
      const model = scriptedModel(["hi"]);
      const { harness, begin } = await stage(way, { model });
      const seen: string[] = [];
      harness.hooks.on("agent/session-start", ({ agent }) => {
        agent.inject("it is raining");
        agent.send("hello");
      });
      harness.hooks.on("agent/session-start", ({ agent }) => {
        seen.push(agent.status, ...agent.queue.map((message) => textOf(message.content)));
      });
      const { agent } = await begin();
      await agent.whenIdle();
      expect(seen).toEqual(["idle", "hello"]);
      const [context, message] = model.requests[0]!.messages.slice(-2);
      expect(textOf(context!.content)).toContain("it is raining");
      expect(textOf(message!.content)).toBe("hello");
    },
  );
}

// #3: that setup must not drive is a contract, and not enforced: it has no test. Where driving begins has: #16.

local("#17 a start at once is a startup", () => {
  const harness = harnessWith();
  const sources: string[] = [];
  harness.hooks.on("agent/session-start", ({ source }) => void sources.push(source));
  harness.agents.start();
  expect(sources).toEqual(["startup"]);
});
