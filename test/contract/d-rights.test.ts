/** D31, rights: they are granted over a wire. An agent that runs here has all of them, and names none. */
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, tool } from "../support/calls.ts";
import { harnessWith, local } from "../support/fixture.ts";
import { endOf, eventOf } from "../support/wait.ts";

local(
  "D31 the handle of an agent that runs here lacks no right: every verb takes effect, and no right is named",
  async () => {
    const harness = harnessWith({
      model: scriptedModel([calls("pay"), "paid", "more"]),
      tools: [tool("pay", () => "done", { needsApproval: true })],
    });
    const { agent } = await harness.agents.open({ id: "s" });
    agent.configure({ temperature: 0 });
    agent.inject("a note");
    agent.send("go");
    const { data } = await eventOf(agent.session, "interaction/requested");
    agent.steer("quickly");
    await agent.respond(data.id, { decision: "allow" });
    await agent.whenIdle();
    expect(endOf(agent.session)).toEqual({ kind: "completed" });
    agent.continue();
    await agent.whenIdle();
    expect(await agent.withdraw("nothing")).toBe(false);
    agent.cancel();
    await agent.flush();
    expect(agent.getSnapshot()).not.toHaveProperty("rights");
  },
);
