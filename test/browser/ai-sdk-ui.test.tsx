/** Pages built on the real `useChat`, in a real browser, over agents here and at the other end of a message port. */
import { Chat, useChat, type UIMessage } from "@ai-sdk/react";
import { lastAssistantMessageIsCompleteWithApprovalResponses, lastAssistantMessageIsCompleteWithToolCalls } from "ai";
import { StrictMode, type ReactElement, type ReactNode } from "react";
import { createRoot, type Root } from "react-dom/client";
import { approvals, createHarness, defineTool, type Agent, type HarnessOptions, type ToolDefinition } from "turnloop";
import { agentChatTransport } from "turnloop/ai-sdk-ui";
import { scriptedModel, type ScriptedAnswer } from "turnloop/testing";
import { connectAgent, messagePort, serveAgents } from "turnloop/transport";
import { afterEach, expect, test, vi } from "vitest";

/** Until it holds; a machine that is busy may take its time. */
function eventually(holds: () => void): Promise<void> {
  return vi.waitFor(holds, { timeout: 10_000 });
}

let cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups) await cleanup();
  cleanups = [];
  document.body.replaceChildren();
});

function mount(node: ReactNode): Root {
  const root = createRoot(document.body.appendChild(document.createElement("div")));
  cleanups.push(() => root.unmount());
  root.render(node);
  return root;
}

interface Made {
  /** The agent where its loop runs. */
  readonly agent: Agent;
  /** The handle that the page has. */
  readonly handle: Agent;
}

type Make = (answers: readonly ScriptedAnswer[], options?: HarnessOptions) => Promise<Made>;

const local: Make = async (answers, options) => {
  const harness = createHarness({ model: scriptedModel(answers), ...options });
  const { agent } = await harness.agents.open({ id: "chat" });
  return { agent, handle: agent };
};

const remote: Make = async (answers, options) => {
  const harness = createHarness({ model: scriptedModel(answers), ...options });
  const { agent } = await harness.agents.open({ id: "chat" });
  const server = serveAgents(harness);
  const connected = await connectAgent({
    session: "chat",
    connect() {
      const { port1, port2 } = new MessageChannel();
      server.accept(messagePort(port1), { identity: null, rights: ["drive", "answer"] }, "chat");
      return messagePort(port2);
    },
  });
  cleanups.push(async () => {
    await connected.dispose();
    await server.close();
  });
  return { agent, handle: connected.agent };
};

/** What a kit for `useChat` does: it knows nothing of agents. */
function Page({ options }: { options: Parameters<typeof useChat>[0] }): ReactElement {
  const { messages, status, error, sendMessage, stop, addToolApprovalResponse, addToolOutput } = useChat(options);
  return (
    <section data-status={status} data-error={error?.message}>
      {messages.map((message) => (
        <article key={message.id} data-role={message.role}>
          {/* oxlint-disable react/no-array-index-key -- parts are only ever added at the end */}
          {message.parts.map((part, place) => {
            if (part.type === "text" || part.type === "reasoning")
              return (
                <p key={place} data-type={part.type}>
                  {part.text}
                </p>
              );
            if (!("toolCallId" in part)) return null;
            const answer = (approved: boolean): void =>
              void addToolApprovalResponse({ id: part.approval!.id, approved });
            return (
              <div key={place} data-type={part.type} data-state={part.state}>
                {JSON.stringify(part.output)}
                {part.state === "approval-requested" && (
                  <>
                    <button onClick={() => answer(true)}>allow</button>
                    <button onClick={() => answer(false)}>deny</button>
                  </>
                )}
                {part.type === "tool-locate" && part.state === "input-available" && (
                  <button
                    onClick={() =>
                      void addToolOutput({ tool: "locate", toolCallId: part.toolCallId, output: { city: "Rome" } })
                    }
                  >
                    locate
                  </button>
                )}
              </div>
            );
          })}
        </article>
      ))}
      <button onClick={() => void sendMessage({ text: "hello" })}>send</button>
      <button onClick={() => void stop()}>stop</button>
    </section>
  );
}

const page = (): HTMLElement => document.querySelector("section")!;
const press = async (label: string): Promise<void> => {
  const find = (): HTMLButtonElement | undefined =>
    [...document.querySelectorAll("button")].find(({ textContent }) => textContent === label);
  await eventually(() => expect(find()).toBeDefined());
  find()!.click();
};
const isReady = (): Promise<void> => eventually(() => expect(page().dataset["status"]).toBe("ready"));
/** What the page shows of assistants. */
const shown = (): string[] =>
  [...document.querySelectorAll<HTMLElement>("article[data-role=assistant] [data-type]")].map(
    ({ dataset, firstChild }) => `${dataset["type"]}${dataset["state"] ?? ""}: ${firstChild?.textContent ?? ""}`,
  );

const weatherBy = (execute: () => unknown): ToolDefinition =>
  defineTool({ name: "weather", description: "The weather", inputSchema: { type: "object" }, execute });
const weather = weatherBy(() => ({ sky: "clear" }));
const locate = defineTool({ name: "locate", description: "Where", inputSchema: { type: "object" }, runsAt: "client" });
const calling = (name: string): ScriptedAnswer => ({ text: "Looking", toolCalls: [{ name, args: {} }] });

for (const [where, make] of [
  ["here", local],
  ["at the other end of a port", remote],
] as const) {
  const optionsOf = ({ handle }: Made): Parameters<typeof useChat>[0] => ({
    id: "chat",
    transport: agentChatTransport(() => handle),
  });

  test(`an agent ${where}: a message is answered, with reasoning, a tool and text, and then another`, async () => {
    const made = await make([{ reasoning: "Hm", toolCalls: [{ name: "weather", args: {} }] }, "Clear", "Still"], {
      tools: [weather],
    });
    mount(<Page options={optionsOf(made)} />);
    await press("send");
    await eventually(() =>
      expect(shown()).toEqual(["reasoning: Hm", 'tool-weatheroutput-available: {"sky":"clear"}', "text: Clear"]),
    );
    await isReady();
    await press("send");
    await eventually(() => expect(shown().at(-1)).toBe("text: Still"));
    expect(document.querySelectorAll("article")).toHaveLength(4);
  });

  test(`an agent ${where}: an approval is asked for, given, and the same message goes on`, async () => {
    const made = await make([calling("weather"), "Clear"], {
      tools: [weather],
      plugins: [approvals({ when: () => true })],
    });
    const sendAutomaticallyWhen = lastAssistantMessageIsCompleteWithApprovalResponses;
    mount(<Page options={{ ...optionsOf(made), sendAutomaticallyWhen }} />);
    await press("send");
    await press("allow");
    await eventually(() =>
      expect(shown()).toEqual(["text: Looking", 'tool-weatheroutput-available: {"sky":"clear"}', "text: Clear"]),
    );
    await isReady();
    expect(document.querySelectorAll("article")).toHaveLength(2);
  });

  test(`an agent ${where}: a denied call is shown as denied`, async () => {
    const made = await make([calling("weather"), "As you wish"], {
      tools: [weather],
      plugins: [approvals({ when: () => true })],
    });
    const sendAutomaticallyWhen = lastAssistantMessageIsCompleteWithApprovalResponses;
    mount(<Page options={{ ...optionsOf(made), sendAutomaticallyWhen }} />);
    await press("send");
    await press("deny");
    await eventually(() => expect(shown().at(-1)).toBe("text: As you wish"));
    expect(shown()[1]).toContain("output-denied");
  });

  test(`an agent ${where}: a tool of the page is answered by the page`, async () => {
    const made = await make([calling("locate"), "In Rome"], { tools: [locate] });
    const sendAutomaticallyWhen = lastAssistantMessageIsCompleteWithToolCalls;
    mount(<Page options={{ ...optionsOf(made), sendAutomaticallyWhen }} />);
    await press("send");
    await press("locate");
    await eventually(() => expect(shown().at(-1)).toBe("text: In Rome"));
    await isReady();
  });

  test(`an agent ${where}: stop cancels the turn, and what was said stays`, async () => {
    const made = await make([{ text: "slowly", hang: "polite" }]);
    mount(<Page options={optionsOf(made)} />);
    await press("send");
    await eventually(() => expect(shown()).toEqual(["text: slowly"]));
    await press("stop");
    await eventually(() =>
      expect(made.agent.session.events.at(-1)).toMatchObject({
        type: "turn/end",
        data: { reason: { kind: "aborted" } },
      }),
    );
    await isReady();
    expect(shown()).toEqual(["text: slowly"]);
  });

  test(`an agent ${where}: a page that comes back finds the turn under way, under StrictMode too`, async () => {
    const go = Promise.withResolvers<void>();
    const made = await make([calling("weather"), "Clear"], {
      tools: [weatherBy(() => go.promise.then(() => ["clear"]))],
    });
    made.handle.send("hello");
    await eventually(() => expect(made.handle.session.events.at(-1)?.type).toBe("tool/start"));
    mount(
      <StrictMode>
        <Page options={{ ...optionsOf(made), resume: true }} />
      </StrictMode>,
    );
    await eventually(() => expect(shown()).toEqual(["text: Looking", "tool-weatherinput-available: "]));
    go.resolve();
    await eventually(() =>
      expect(shown()).toEqual(["text: Looking", 'tool-weatheroutput-available: ["clear"]', "text: Clear"]),
    );
  });

  test(`an agent ${where}: an error of the turn is the page's error`, async () => {
    const made = await make([{ error: { message: "no such key", code: "AUTH" } }]);
    mount(<Page options={optionsOf(made)} />);
    await press("send");
    await eventually(() => expect(page().dataset).toMatchObject({ status: "error", error: "no such key" }));
  });
}

test("a chat that is kept outside the page outlives it: the turn goes on, and the page finds its end", async () => {
  const go = Promise.withResolvers<void>();
  const { agent } = await local([calling("weather"), "Clear"], {
    tools: [weatherBy(() => go.promise.then(() => ["clear"]))],
  });
  const chat = new Chat<UIMessage>({ id: "chat", transport: agentChatTransport(() => agent) });
  const root = mount(<Page options={{ chat }} />);
  await press("send");
  await eventually(() => expect(shown()).toHaveLength(2));
  root.render(null);
  await eventually(() => expect(page()).toBeNull());
  go.resolve();
  await agent.whenIdle();
  root.render(<Page options={{ chat }} />);
  await eventually(() => expect(shown().at(-1)).toBe("text: Clear"));
});

test("a chat that the page has made itself is stopped when the page goes, as useChat does it", async () => {
  const { agent } = await local([{ text: "slowly", hang: "polite" }]);
  const root = mount(<Page options={{ id: "chat", transport: agentChatTransport(() => agent) }} />);
  await press("send");
  await eventually(() => expect(shown()).toEqual(["text: slowly"]));
  root.render(null);
  await eventually(() => expect(agent.session.events.at(-1)).toMatchObject({ data: { reason: { kind: "aborted" } } }));
});
