/** One turn with calls of all kinds: approved, plain, read-only, asking and parallel, and a client's. */
import { clientTools, createHarness, type AgentHandle, type HarnessOptions, type Plugin } from "turnloop";
import { scriptedModel, type ScriptedAnswer } from "turnloop/testing";
import { calls, clientTool, tool } from "./calls.ts";

/** What the model answers, step by step. */
export const script: readonly ScriptedAnswer[] = [
  { text: "let me see", ...calls("pay", "act") },
  calls("look", "ask", "look"),
  calls("where"),
  "done",
];

/** Answers whatever is asked. */
const obliging: Plugin = ({ hooks }) =>
  hooks.on("interaction/requested", ({ agent, interaction: { id, kind } }) => {
    if (kind === "approval") void agent.respond(id, { decision: "allow" }).catch(() => {});
    if (kind === "question") void agent.respond(id, "yes").catch(() => {});
  });

type Body = (args: unknown, call: { readonly callId: string }) => unknown;

/** Opens the session `session` with these tools, whose bodies are made by their names. */
export async function openWithEveryTool(
  options: HarnessOptions,
  answer: Extract<ScriptedAnswer, (...args: never) => unknown>,
  body: (name: string) => Body,
): Promise<AgentHandle> {
  const harness = createHarness({
    model: scriptedModel(Array.from({ length: 12 }, () => answer)),
    plugins: [obliging],
    onDiagnostic() {},
    tools: [
      tool("pay", body("pay"), { needsApproval: true }),
      tool("act", body("act")),
      tool("look", body("look"), { readOnly: true }),
      tool("ask", (_, call) => call.ask("sure?"), { idempotent: true, parallel: true }),
      clientTool("where"),
    ],
    ...options,
  });
  const handle = await harness.agents.open({ id: "session" });
  clientTools(handle.agent, { where: body("where") });
  return handle;
}
