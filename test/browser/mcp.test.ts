/** `turnloop/mcp` in a page, with real MCP servers of another origin. */
import { createHarness, run } from "turnloop";
import { mcp } from "turnloop/mcp";
import { scriptedModel } from "turnloop/testing";
import { expect, inject, test } from "vitest";
import { calls, resultsOf } from "../support/calls.ts";

test.each(["modern", "legacy"] as const)(
  "a page uses the tools of a %s server, with a key of its own",
  async (kind) => {
    const diagnostics: string[] = [];
    const model = scriptedModel([calls({ name: "sea_look", args: { at: "fjord" } }), "done"]);
    const harness = createHarness({
      model,
      onDiagnostic: ({ code }) => diagnostics.push(code),
      plugins: [mcp({ name: "sea", url: inject("mcp")[kind], headers: () => ({ authorization: "Bearer mine" }) })],
    });
    const { agent } = await harness.agents.create();
    expect((await run(agent, "go").result).reason).toEqual({ kind: "completed" });
    expect(resultsOf(agent.session)).toEqual([{ tool: "sea_look", says: "blue fjord" }]);
    expect(diagnostics).toEqual([]);
    await harness.dispose();
  },
);

test("a server that is not there, or does not allow the page, changes nothing else", async () => {
  const diagnostics: string[] = [];
  const harness = createHarness({
    model: scriptedModel(["hello"]),
    onDiagnostic: ({ code }) => diagnostics.push(code),
    plugins: [mcp({ name: "sea", url: "http://127.0.0.1:9/mcp" })],
  });
  const { agent } = await harness.agents.create();
  expect((await run(agent, "go").result).text).toBe("hello");
  expect(diagnostics).toEqual(["MCP_UNAVAILABLE"]);
  await harness.dispose();
});
