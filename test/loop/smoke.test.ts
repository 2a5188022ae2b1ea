import { createHarness, defineTool, rebuildRequest, run } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect, test } from "vitest";

test("a turn with a tool call is told by the log from start to end", async () => {
  const model = scriptedModel([
    { text: "let me see", toolCalls: [{ name: "add", args: { a: 1, b: 2 } }], usage: { input: 3, output: 4 } },
    "it is 3",
  ]);
  const diagnostics: unknown[] = [];
  const harness = createHarness({
    model,
    system: "You add.",
    onDiagnostic: (d) => diagnostics.push(d),
    tools: [
      defineTool({ name: "add", description: "Adds", inputSchema: { type: "object" }, execute: ({ a, b }) => a + b }),
    ],
  });
  const { agent, dispose } = await harness.agents.create({ id: "s1" });
  const running = run(agent, "what is 1 + 2?");
  const text: string[] = [];
  for await (const piece of running.textStream()) text.push(piece);
  const result = await running.result;
  expect(result.reason).toEqual({ kind: "completed" });
  expect(text.join("")).toBe("let me seeit is 3");
  expect(result.text).toBe("it is 3");
  expect(agent.session.events.map((e) => e.type).filter((t) => t !== "assistant/chunk")).toMatchInlineSnapshot(`
    [
      "inbox/queued",
      "turn/start",
      "user/message",
      "step/start",
      "request/header",
      "assistant/message",
      "tool/call",
      "tool/start",
      "tool/result",
      "step/end",
      "step/start",
      "assistant/message",
      "step/end",
      "turn/end",
    ]
  `);
  for (const [i, request] of model.requests.entries()) {
    expect(JSON.stringify(rebuildRequest(agent.session.events, { turn: 1, step: i + 1 }))).toBe(
      JSON.stringify(request),
    );
  }
  expect(model.requests[1]).toMatchInlineSnapshot(`
    {
      "config": {
        "model": "scripted/model",
      },
      "messages": [
        {
          "content": [
            {
              "text": "what is 1 + 2?",
              "type": "text",
            },
          ],
          "role": "user",
          "source": {
            "kind": "user",
          },
        },
        {
          "content": [
            {
              "text": "let me see",
              "type": "text",
            },
            {
              "arguments": "{"a":1,"b":2}",
              "callId": "call_1_1_1_1",
              "name": "add",
              "type": "tool-call",
            },
          ],
          "model": "scripted/model",
          "role": "assistant",
        },
        {
          "content": [
            {
              "callId": "call_1_1_1_1",
              "content": [
                {
                  "text": "3",
                  "type": "text",
                },
              ],
              "isError": false,
              "name": "add",
              "type": "tool-result",
            },
          ],
          "role": "tool",
        },
      ],
      "system": "You add.",
      "tools": [
        {
          "description": "Adds",
          "name": "add",
          "parameters": {
            "type": "object",
          },
        },
      ],
    }
  `);
  await dispose();
  await harness.dispose();
  expect(diagnostics).toEqual([]);
});
