/** The input. It stays open while the agent works: what is sent then steers the turn, or waits for the next one. */
import type { Agent, AgentSnapshot } from "turnloop";
import { useEffect, useLayoutEffect, useRef, type Dispatch, type KeyboardEvent, type SetStateAction } from "react";
import type { ReactElement } from "react";
import { ACCEPT } from "../attachments.ts";
import { contentOf, EMPTY, isEmpty as isNothing, type Draft } from "../draft.ts";
import { useAttaching } from "../use-attaching.ts";
import { Attachments } from "./attachments.tsx";
import { Icon } from "./icon.tsx";

interface Props {
  readonly agent: Agent | undefined;
  readonly status: AgentSnapshot["status"] | undefined;
  readonly waiting: boolean | undefined;
  readonly draft: Draft;
  readonly setDraft: Dispatch<SetStateAction<Draft>>;
}

type Verb = "send" | "steer";

export function Composer({ agent, status, waiting, draft, setDraft }: Props): ReactElement {
  const input = useRef<HTMLTextAreaElement>(null);
  const chooser = useRef<HTMLInputElement>(null);
  /** Asked for before the chat was open: it is done when it is, unless the words are changed until then. */
  const early = useRef<{ readonly verb: Verb; readonly draft: Draft }>(undefined);
  const { problems, isOver, take, dismiss } = useAttaching(draft, setDraft);
  const isRunning = status === "running";
  const isEmpty = isNothing(draft);

  useLayoutEffect(() => {
    const area = input.current;
    if (!area) return;
    area.style.height = "auto";
    area.style.height = `${area.scrollHeight}px`;
  }, [draft.text]);

  // Not where it would bring up a keyboard over half of the page.
  useEffect(() => {
    if (matchMedia("(hover: hover)").matches) input.current?.focus();
  }, []);

  useEffect(() => {
    const asked = early.current;
    if (!agent || !asked) return;
    early.current = undefined;
    if (asked.draft !== draft) return;
    agent[asked.verb](contentOf(draft));
    setDraft(EMPTY);
  }, [agent, draft, setDraft]);

  function submit(verb: Verb): void {
    if (isEmpty) return;
    dismiss();
    if (!agent) {
      early.current = { verb, draft };
      return;
    }
    agent[verb](contentOf(draft));
    setDraft(EMPTY);
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    submit(event.ctrlKey || event.metaKey ? "send" : "steer");
  }

  return (
    <form
      className={isOver ? "composer over" : "composer"}
      aria-label="Your message"
      onSubmit={(event) => {
        event.preventDefault();
        submit("steer");
        input.current?.focus();
      }}
    >
      <Attachments
        files={draft.files}
        onRemove={(file) => setDraft((now) => ({ ...now, files: now.files.filter((other) => other !== file) }))}
      />
      {problems.length > 0 && (
        <p className="problem-line" role="alert">
          {problems.join(". ")}
        </p>
      )}
      <label className="visually-hidden" htmlFor="message">
        Message
      </label>
      <textarea
        id="message"
        ref={input}
        rows={1}
        value={draft.text}
        placeholder={isOver ? "Drop it here" : isRunning ? "Say something while it works" : "Write a message"}
        aria-describedby="keys"
        onChange={({ target }) => setDraft((now) => ({ ...now, text: target.value }))}
        onKeyDown={onKeyDown}
        onPaste={(event) => {
          if (event.clipboardData.files.length === 0) return;
          event.preventDefault();
          take(event.clipboardData.files);
        }}
      />
      <div className="composer-foot">
        <button type="button" className="round quiet" title="Attach" onClick={() => chooser.current?.click()}>
          <Icon name="clip" />
          <span className="visually-hidden">Attach images or texts</span>
        </button>
        <input
          ref={chooser}
          type="file"
          hidden
          multiple
          accept={ACCEPT}
          aria-label="Images or texts to attach"
          onChange={({ target }) => {
            take(target.files ?? []);
            target.value = "";
          }}
        />
        <p className="working" role="status">
          {isRunning ? (waiting ? "Waits for you" : "Working") : ""}
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
