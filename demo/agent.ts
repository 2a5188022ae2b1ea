/** What the demo's agent is, wherever it runs. */
import { standard, type HarnessOptions } from "turnloop";
import { titles } from "./titles.ts";
import { demoTools } from "./tools.ts";

export function demoAgent(): Pick<HarnessOptions, "system" | "tools" | "plugins"> {
  return {
    system: "You are the assistant of a demo page. Use the tools where they help. Answer briefly, in Markdown.",
    tools: demoTools(),
    plugins: [standard(), titles],
  };
}
