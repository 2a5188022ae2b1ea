/** The input. It stays open while the agent works: what is sent then steers the turn, or waits for the next one. */
import type { Agent, AgentSnapshot } from "turnloop";
import { useEffect, useLayoutEffect, useRef, type KeyboardEvent, type ReactElement } from "react";
import { Icon } from "./icon.tsx";

interface Props {
  readonly agent: Agent | undefined;
  readonly snapshot: AgentSnapshot | undefined;
  readonly draft: string;
  onDraft(text: string): void;
}

export function Composer({ agent, snapshot, draft, onDraft }: Props): ReactElement {
  const input = useRef<HTMLTextAreaElement>(null);
  /** Asked for before the chat was open: it is done when it is, unless the words are changed until then. */
  const early = useRef<{ readonly verb: "send" | "steer"; readonly text: string }>(undefined);
  const isRunning = snapshot?.status === "running";
  const isEmpty = draft.trim() === "";

  useLayoutEffect(() => {
    const area = input.current;
    if (!area) return;
    area.style.height = "auto";
    area.style.height = `${area.scrollHeight}px`;
  }, [draft]);

  // Not where it would bring up a keyboard over half of the page.
  useEffect(() => {
    if (matchMedia("(hover: hover)").matches) input.current?.focus();
  }, []);

  useEffect(() => {
    const asked = early.current;
    if (!agent || !asked) return;
    early.current = undefined;
    if (asked.text !== draft.trim()) return;
    agent[asked.verb](asked.text);
    onDraft("");
  }, [agent, draft, onDraft]);

  function submit(verb: "send" | "steer"): void {
    const text = draft.trim();
    if (text === "") return;
    if (!agent) {
      early.current = { verb, text };
      return;
    }
    agent[verb](text);
    onDraft("");
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    submit(event.ctrlKey || event.metaKey ? "send" : "steer");
  }

  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        submit("steer");
        input.current?.focus();
      }}
    >
      <label className="visually-hidden" htmlFor="message">
        Message
      </label>
      <textarea
        id="message"
        ref={input}
        rows={1}
        value={draft}
        placeholder={isRunning ? "Say something while it works" : "Write a message"}
        aria-describedby="keys"
        onChange={(event) => onDraft(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <div className="composer-foot">
        <p id="keys" className="keys">
          <span>
            <kbd>Enter</kbd> {isRunning ? "steers this turn" : "sends"}
          </span>
          <span>
            <kbd>{isRunning ? "Ctrl" : "Shift"}</kbd> <kbd>Enter</kbd>{" "}
            {isRunning ? "queues for the next" : "makes a new line"}
          </span>
        </p>
        <p className="working" role="status">
          {isRunning ? (snapshot.waiting ? "Waits for you" : "Working") : ""}
        </p>
        {isRunning && (
          <button type="button" className="round stop" onClick={() => agent?.cancel("stopped by the user")}>
            <Icon name="stop" />
            <span className="visually-hidden">Stop</span>
          </button>
        )}
        {isRunning && !isEmpty && (
          <button type="button" className="queue-it" onClick={() => submit("send")}>
            Queue
          </button>
        )}
        {(!isRunning || !isEmpty) && (
          <button type="submit" className="round primary" disabled={isEmpty}>
            <Icon name="send" />
            <span className="visually-hidden">{isRunning ? "Steer" : "Send"}</span>
          </button>
        )}
      </div>
    </form>
  );
}
