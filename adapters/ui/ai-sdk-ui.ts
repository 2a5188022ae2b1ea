/** `turnloop/ai-sdk-ui`: an agent behind the AI SDK's `useChat`, and histories that were kept for it. */
export { agentChatTransport } from "./ai-sdk-ui-transport.ts";
export { toUIMessageStreamResponse } from "./ai-sdk-ui-response.ts";
export { eventsFromUIMessages } from "./ai-sdk-ui-history.ts";
