/** Tool calls on their way: each event about one changes its card. */
import type { Interaction, SessionEvent, SessionEventMap } from "../core.ts";
import type { Draft, Messages } from "./messages.ts";
import { card } from "./parts.ts";
import type { Presenter } from "./present.ts";
import type { ToolPart } from "./types.ts";

export interface Cards {
  /** The calls of this message are what is talked about from here on. */
  follow(draft: Draft): void;
  /** Events that are not about a call change nothing. */
  apply(event: SessionEvent): void;
  /** No call of the turn will be heard of again. */
  endTurn(): void;
}

/** Codes of results that say that nobody knows how the call ended. */
const UNKNOWN_OUTCOMES: ReadonlySet<string | undefined> = new Set(["TOOL_OUTCOME_UNKNOWN", "TOOL_ABORTED"]);

export function createCards(messages: Messages, presenter: Presenter): Cards {
  /** The messages of the open turn. */
  let drafts: Draft[] = [];
  /** Calls of the open turn whose body was started. */
  const started = new Set<string>();
  /** Open interactions by id. */
  const open = new Map<string, Interaction>();

  function change(callId: string | undefined, next: (part: ToolPart) => ToolPart): boolean {
    if (callId === undefined) return false;
    for (let i = drafts.length - 1; i >= 0; i -= 1) {
      const draft = drafts[i]!;
      const place = draft.parts.findIndex((part) => part.type === "tool" && part.callId === callId);
      if (place < 0) continue;
      draft.parts[place] = next(draft.parts[place] as ToolPart);
      messages.changed(draft);
      return true;
    }
    return false;
  }

  function called({ callId, name, arguments: args }: SessionEventMap["tool/call"]): void {
    const taken = (part: ToolPart): ToolPart => {
      const next: ToolPart = { ...part, name, arguments: args, state: "running" };
      const call = presenter.call(next);
      return call ? { ...next, call } : next;
    };
    const last = drafts.at(-1);
    if (change(callId, taken) || !last) return;
    last.parts.push(taken(card(callId, name, args)));
    messages.changed(last);
  }

  function answered({ callId, content, isError, error, meta }: SessionEventMap["tool/result"]): void {
    change(callId, (part) => {
      const state = UNKNOWN_OUTCOMES.has(error?.code) ? "unknown" : isError ? "failed" : "done";
      const view = presenter.result(part, { content, isError, ...(meta !== undefined && { meta }) });
      return { ...withoutInteraction(part), state, result: content, ...(view && { view }) };
    });
  }

  function asked(interaction: Interaction): void {
    open.set(interaction.id, interaction);
    change(interaction.callId, (part) => ({ ...part, interaction, state: stateWith(interaction) }));
  }

  function claimed({ id, client }: SessionEventMap["interaction/claimed"]): void {
    const interaction = open.get(id);
    if (!interaction) return;
    if (interaction.callId !== undefined) started.add(interaction.callId);
    asked({ ...interaction, claimedBy: client });
  }

  function released(id: string): void {
    const interaction = open.get(id);
    if (!interaction) return;
    const { claimedBy: _gone, ...free } = interaction;
    asked(free);
  }

  function resolved(id: string): void {
    const callId = open.get(id)?.callId;
    open.delete(id);
    const other = [...open.values()].find((one) => one.callId === callId);
    change(callId, (part) =>
      other
        ? { ...part, interaction: other, state: stateWith(other) }
        : { ...withoutInteraction(part), state: "running" },
    );
  }

  return {
    follow(draft) {
      drafts.push(draft);
    },

    apply(event) {
      switch (event.type) {
        case "tool/call":
          return called(event.data);
        case "tool/start":
          started.add(event.data.callId);
          change(event.data.callId, (part) => ({ ...part, state: part.interaction ? part.state : "running" }));
          return;
        case "tool/progress":
          change(event.data.callId, (part) => ({ ...part, progress: event.data.value }));
          return;
        case "tool/result":
          // A pruned result is for the model; people keep what the tool said.
          if (event.surface === "append") answered(event.data);
          return;
        case "interaction/requested":
          return asked(event.data);
        case "interaction/claimed":
          return claimed(event.data);
        case "interaction/released":
          return released(event.data.id);
        case "interaction/resolved":
          return resolved(event.data.id);
      }
    },

    endTurn() {
      for (const draft of drafts) {
        const { parts } = draft;
        for (let place = parts.length - 1; place >= 0; place -= 1) {
          const part = parts[place]!;
          if (part.type !== "tool" || part.result || part.state === "done") continue;
          // One that was never handed over came to nothing, like the rest of its half-written message.
          if (part.state === "writing") parts.splice(place, 1);
          else parts[place] = { ...withoutInteraction(part), state: started.has(part.callId) ? "unknown" : "failed" };
          messages.changed(draft);
        }
      }
      drafts = [];
      started.clear();
      open.clear();
    },
  };
}

function stateWith(interaction: Interaction): ToolPart["state"] {
  return interaction.claimedBy === undefined ? "asking" : "running";
}

function withoutInteraction(part: ToolPart): ToolPart {
  const rest: { -readonly [K in keyof ToolPart]: ToolPart[K] } = { ...part };
  delete rest.interaction;
  return rest;
}
