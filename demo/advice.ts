/** What a person can do about an error. */
import type { ErrorData } from "turnloop";

const ADVICE: Readonly<Record<string, string>> = {
  MODEL_AUTH: "Check the API key in Settings.",
  RATE_LIMITED: "Wait a moment, then try again.",
  MODEL_OVERLOADED: "The model is busy or down. Try again.",
  MODEL_UNREACHABLE:
    "Check the base URL in Settings, that you are online, and that the endpoint allows this page (CORS).",
  MODEL_BAD_RESPONSE: "The endpoint did not answer like an API. Check the base URL in Settings; it often ends in /v1.",
  STREAM_BROKEN: "The connection broke. What came so far is kept; try again.",
  STREAM_INCOMPLETE: "The answer ended early. What came so far is kept; try again.",
  SESSION_CLAIMED: "Another tab has this chat open. Go on there, or take it over: the other tab then only shows it.",
  NO_ADAPTER: "This model is not connected. Open Settings and connect it, or choose the scripted demo.",
};

export function adviceFor({ code }: ErrorData): string {
  return (code !== undefined && Object.hasOwn(ADVICE, code) && ADVICE[code]) || "Try again, or start a new chat.";
}
