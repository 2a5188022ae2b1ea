/** A program of somebody who uses every adapter, with the peers that they need. */
import { createHarness, defineTool, type Transcript } from "turnloop";
import { aiSdkModel, aiSdkTools } from "turnloop/ai-sdk";
import { useAgent, useTranscript } from "turnloop/react";
import { MockLanguageModelV4 } from "ai/test";
import { z } from "zod";

const order = defineTool({
  name: "order",
  description: "Orders something",
  inputSchema: z.object({ what: z.string() }),
  execute: ({ what }) => what.toUpperCase(),
});

const harness = createHarness({
  model: aiSdkModel(new MockLanguageModelV4()),
  tools: [order, ...aiSdkTools({})],
});

export function useChat(id: string): Transcript {
  const { agent } = useAgent(harness, { id });
  return useTranscript(agent);
}

await harness.dispose();
