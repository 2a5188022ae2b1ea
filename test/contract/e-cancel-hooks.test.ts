/** E, 69: a stop from whoever reads the log is seen at once: no hook is asked behind it. */
import type { HookName, SessionEventType } from "turnloop";
import { scriptedModel, type ScriptedAnswer } from "turnloop/testing";
import { expect } from "vitest";
import { calls, tool } from "../support/calls.ts";
import { harnessWith, local } from "../support/fixture.ts";

const WATERFALLS = [
  "agent/prompt-submit",
  "prompt/assemble",
  "agent/session-prefix",
  "agent/request",
  "model/stream",
  "agent/step-result",
  "tools/pre-execute",
  "tools/execute",
  "tools/post-execute",
  "agent/turn-continuation",
  "agent/request-error",
] as const;

const SCRIPT: readonly ScriptedAnswer[] = [calls("look"), "never"];
const SCRIPTS: Partial<Record<SessionEventType, readonly ScriptedAnswer[]>> = {
  "request/failed": [{ error: { message: "no" } }],
};

const HEARD_IN: readonly SessionEventType[] = [
  "turn/start",
  "user/message",
  "step/start",
  "request/header",
  "assistant/chunk",
  "request/failed",
  "assistant/message",
  "tool/call",
  "tool/start",
  "tool/result",
  "steering/message",
  "step/end",
];

for (const stop of ["cancel", "dispose"] as const) {
  for (const type of HEARD_IN) {
    local(`#69 D17 a ${stop} from a reader of ${type}: no hook is asked behind it`, async () => {
      const harness = harnessWith({ model: scriptedModel(SCRIPTS[type] ?? SCRIPT), tools: [tool("look")] });
      let stopped = false;
      const asked: HookName[] = [];
      const note = (name: HookName): void => void (stopped && asked.push(name));
      for (const name of WATERFALLS) {
        // Each answers as it would without us: only that it is asked is of interest.
        harness.hooks.on(name as "agent/request", (_, next) => {
          note(name);
          return next();
        });
      }
      for (const name of ["agent/pre-step", "agent/turn-stop"] as const) harness.hooks.on(name, () => note(name));
      const { agent, dispose } = await harness.agents.open({ id: "s" });
      agent.on("tool/start", () => void (type === "steering/message" && agent.steer("quickly")));
      agent.on(type, () => {
        if (stopped) return;
        stopped = true;
        if (stop === "cancel") agent.cancel("enough");
        else void dispose();
      });
      agent.send("go");
      await agent.whenIdle();
      expect(stopped).toBe(true);
      expect(asked).toEqual([]);
    });
  }
}
