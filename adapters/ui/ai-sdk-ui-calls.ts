/** The tool calls of one step, as parts of a UI message: which there are, what they wait for, what they answered. */
import type { UIMessageChunk } from "ai";
import type { ApprovalAnswer, ApprovalPayload, ContentBlock, SessionEvent, ToolCallBlock } from "../../src/core.ts";
import { inputOf, outputOf, textOf } from "./ai-sdk-ui-blocks.ts";

export interface Calls {
  /** The answer of the step is in the log: these are its calls. */
  begin(content: readonly ContentBlock[]): void;
  apply(event: SessionEvent): UIMessageChunk[];
  /** Somebody is waited for whom nobody has told yet, and nothing else is under way. */
  isWaiting(): boolean;
  /** Calls that the wait of another holds up. */
  heldUp(): ReadonlySet<string>;
}

interface Call {
  readonly name: string;
  readonly arguments: string;
  started: boolean;
  answered: boolean;
  denied: boolean;
}

/** `shown`: the calls that the page has a part of. */
export function createCalls(shown: Set<string>): Calls {
  const calls = new Map<string, Call>();
  /** Open interactions: the call they are about, and whether a client has taken them. */
  const open = new Map<string, { readonly callId: string | undefined; readonly kind: string; claimed: boolean }>();

  const isAsking = (callId: string): boolean => [...open.values()].some((one) => one.callId === callId);

  function told(
    callId: string,
    { name, arguments: args }: Pick<ToolCallBlock, "name" | "arguments">,
  ): UIMessageChunk[] {
    shown.add(callId);
    return [{ type: "tool-input-available", toolCallId: callId, toolName: name, input: inputOf(args) }];
  }

  function answered(event: SessionEvent<"tool/result">): UIMessageChunk[] {
    const { callId, content, isError } = event.data;
    const call = calls.get(callId);
    // A result that is cut short for the model: people keep what the tool said.
    if (!call || event.surface !== "append") return [];
    call.answered = true;
    const errorText = textOf(content);
    const toolCallId = callId;
    if (!shown.has(callId)) {
      // It was never taken up: as a call that may be run, it would be run by the page.
      shown.add(callId);
      return [{ type: "tool-input-error", toolCallId, toolName: call.name, input: inputOf(call.arguments), errorText }];
    }
    if (call.denied) return [{ type: "tool-output-denied", toolCallId }];
    if (isError) return [{ type: "tool-output-error", toolCallId, errorText }];
    return [{ type: "tool-output-available", toolCallId, output: outputOf(content) }];
  }

  function requested({ id, kind, callId, payload }: SessionEvent<"interaction/requested">["data"]): UIMessageChunk[] {
    open.set(id, { callId, kind, claimed: false });
    if (kind !== "approval" || callId === undefined || !shown.has(callId)) return [];
    const { reason } = payload as ApprovalPayload;
    return [{ type: "tool-approval-request", approvalId: id, toolCallId: callId, ...(reason && { reason }) }];
  }

  function resolved({ id, outcome, value }: SessionEvent<"interaction/resolved">["data"]): UIMessageChunk[] {
    const one = open.get(id);
    open.delete(id);
    if (one?.kind !== "approval" || one.callId === undefined || outcome !== "answered") return [];
    if (!shown.has(one.callId)) return [];
    const { decision, reason } = value as ApprovalAnswer;
    const call = calls.get(one.callId);
    if (call) call.denied = decision === "deny";
    const approved = decision === "allow";
    return [{ type: "tool-approval-response", approvalId: id, approved, ...(reason && { reason }) }];
  }

  return {
    begin(content) {
      calls.clear();
      for (const block of content) {
        if (block.type !== "tool-call") continue;
        const { name, arguments: args } = block;
        calls.set(block.callId, { name, arguments: args, started: false, answered: false, denied: false });
      }
    },

    apply(event) {
      switch (event.type) {
        case "tool/call":
          return told(event.data.callId, event.data);
        case "tool/start": {
          const call = calls.get(event.data.callId);
          if (call) call.started = true;
          return [];
        }
        case "tool/progress": {
          const { callId: toolCallId, value: output } = event.data;
          if (!shown.has(toolCallId)) return [];
          return [{ type: "tool-output-available", toolCallId, output, preliminary: true }];
        }
        case "tool/result":
          return answered(event);
        case "interaction/requested":
          return requested(event.data);
        case "interaction/claimed": {
          const one = open.get(event.data.id);
          if (one) one.claimed = true;
          return [];
        }
        case "interaction/released": {
          const one = open.get(event.data.id);
          if (one) one.claimed = false;
          return [];
        }
        case "interaction/resolved":
          return resolved(event.data);
        default:
          return [];
      }
    },

    isWaiting() {
      if (![...open.values()].some((one) => !one.claimed)) return false;
      return [...calls].every(([callId, call]) => call.answered || !call.started || isAsking(callId));
    },

    heldUp: () => new Set([...calls].filter(([callId, call]) => !call.answered && !isAsking(callId)).map(([id]) => id)),
  };
}
