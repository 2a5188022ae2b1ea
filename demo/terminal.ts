/** The demo in a terminal: the same model, the same tools, the same handle. `npm run demo:node` starts it. */
import process, { stdin, stdout } from "node:process";
import { createInterface } from "node:readline";
import { createHarness, type ApprovalPayload, type Interaction, type JsonValue } from "turnloop";
import { offlineModel } from "./offline-model.ts";
import { createTerminalView } from "./terminal-view.ts";
import { demoTools } from "./tools.ts";
import { problemOf } from "./text.ts";

const harness = createHarness({ model: offlineModel(), tools: demoTools() });
const { agent } = await harness.agents.open({ id: "terminal" });
const terminal = createInterface({ input: stdin, output: stdout, prompt: "\n> " });
const view = createTerminalView((text) => stdout.write(text));

view.note("A scripted demo, no language model. Write a message; while it works, a line steers it,");
view.note("/queue TEXT waits for the next turn, /continue goes on after a stop. Ctrl+C stops, twice quits.");
agent.session.subscribe(view.show);
harness.hooks.on("interaction/requested", ({ interaction }) => view.ask(questionOf(interaction)));
harness.hooks.on("agent/status", ({ status }) => {
  if (status === "idle") terminal.prompt();
});

terminal.on("line", (line) => {
  take(line.trim()).catch((error: unknown) => view.note(problemOf(error)));
});
let stops = 0;
const stop = (): void => {
  stops = agent.status === "running" ? 1 : stops + 1;
  if (stops > 1) terminal.close();
  else if (agent.status === "running") agent.cancel("stopped by the user");
  else view.note("\nCtrl+C again quits.");
};
// A terminal hands it to readline, a pipe leaves it to the process.
terminal.on("SIGINT", stop);
process.on("SIGINT", stop);
terminal.on("close", () => {
  if (agent.getSnapshot().waiting) agent.cancel("the terminal was closed");
  void agent.whenIdle().then(() => harness.dispose());
});
terminal.prompt();

async function take(line: string): Promise<void> {
  stops = 0;
  const [asked] = agent.interactions;
  if (line === "") terminal.prompt();
  else if (asked) await agent.respond(asked.id, answerOf(asked, line));
  else if (line === "/continue") agent.continue();
  else if (line.startsWith("/queue ")) agent.send(line.slice("/queue ".length));
  else agent.steer(line);
}

function questionOf({ kind, payload }: Interaction): string {
  if (kind === "approval") {
    const { tool, arguments: args } = payload as JsonValue & ApprovalPayload;
    return `Allow ${tool} ${args}? (y/n)`;
  }
  const { question, options = [] } = payload as { question: string; options?: string[] };
  return [question, ...options.map((option) => `  - ${option}`)].join("\n");
}

function answerOf({ kind }: Interaction, line: string): JsonValue {
  if (kind !== "approval") return line;
  return /^y/i.test(line) ? { decision: "allow" } : { decision: "deny", reason: "the user did not allow it" };
}
