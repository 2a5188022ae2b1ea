/** The chats that are kept here: open one, rename it, take it along, or let it go. */
import type { SessionSummary } from "turnloop";
import { useCallback, useEffect, useRef, useState, type ReactElement } from "react";
import { exportChat, importChat } from "../chats.ts";
import { place } from "../place.ts";
import { Icon, type IconName } from "./icon.tsx";
import { problemOf } from "../text.ts";

interface Props {
  readonly current: string;
  onOpen(id: string): void;
  onNew(): void;
  onClose(): void;
}

export function Chats({ current, onOpen, onNew, onClose }: Props): ReactElement {
  const dialog = useRef<HTMLDialogElement>(null);
  const file = useRef<HTMLInputElement>(null);
  const [chats, setChats] = useState<readonly SessionSummary[]>();
  const [search, setSearch] = useState("");
  const [problem, setProblem] = useState<string>();
  const refresh = useCallback(async (): Promise<void> => setChats(await place.list()), []);
  const attempt = useCallback(async (what: () => Promise<unknown>): Promise<void> => {
    try {
      setProblem(undefined);
      await what();
    } catch (error) {
      setProblem(problemOf(error));
    }
  }, []);
  useEffect(() => {
    dialog.current?.showModal();
    place.list().then(setChats, (error: unknown) => setProblem(problemOf(error)));
  }, []);

  const open = (id: string): void => {
    onOpen(id);
    dialog.current?.close();
  };
  const words = search.trim().toLowerCase();
  const shown = (chats ?? []).filter(({ id, title = id }) => title.toLowerCase().includes(words));

  return (
    <dialog ref={dialog} className="settings chats" aria-labelledby="chats-title" onClose={onClose}>
      <div className="chats-body">
        <h2 id="chats-title">Chats</h2>
        {(chats?.length ?? 0) > 3 && (
          <input
            type="search"
            aria-label="Search chats"
            placeholder="Search"
            value={search}
            onChange={(event) => setSearch(event.target.value)}
          />
        )}
        {chats?.length === 0 && <p className="hint">Nothing is kept here yet: what you say in a chat will be.</p>}
        {words !== "" && shown.length === 0 && <p className="hint">No chat is called so.</p>}
        <ul className="chat-list">
          {shown.map((chat) => (
            <Row
              key={chat.id}
              chat={chat}
              isCurrent={chat.id === current}
              onOpen={open}
              attempt={attempt}
              refresh={refresh}
            />
          ))}
        </ul>
        {problem !== undefined && (
          <p className="problem-line" role="alert">
            {problem}
          </p>
        )}
        <div className="buttons">
          <button
            type="button"
            className="primary"
            onClick={() => {
              onNew();
              dialog.current?.close();
            }}
          >
            New chat
          </button>
          <button type="button" onClick={() => file.current?.click()}>
            Import
          </button>
          <input
            ref={file}
            type="file"
            hidden
            accept=".ndjson,application/x-ndjson"
            aria-label="A chat from a file"
            onChange={({ target }) => {
              const chosen = target.files?.[0];
              target.value = "";
              if (chosen) void attempt(async () => open(await importChat(chosen)));
            }}
          />
          <button type="button" className="quiet" onClick={() => dialog.current?.close()}>
            Close
          </button>
        </div>
      </div>
    </dialog>
  );
}

/** The reader has just asked for this field. */
function focus(field: HTMLInputElement | null): void {
  field?.select();
}

/** So that a keyboard goes on where the question is. */
function focusOn(element: HTMLElement | null): void {
  element?.focus();
}

interface RowProps {
  readonly chat: SessionSummary;
  readonly isCurrent: boolean;
  onOpen(id: string): void;
  attempt(what: () => Promise<unknown>): Promise<void>;
  refresh(): Promise<void>;
}

function Row({ chat, isCurrent, onOpen, attempt, refresh }: RowProps): ReactElement {
  const { id, title = "Untitled chat", updatedAt, status } = chat;
  const [name, setName] = useState<string>();
  const [isDoomed, setDoomed] = useState(false);
  if (isDoomed) {
    return (
      <li className="doomed">
        <p>
          Delete <q>{title}</q> for good?
        </p>
        <button
          type="button"
          className="bad"
          ref={focusOn}
          onClick={() => void attempt(async () => place.delete(id).then(refresh))}
        >
          Delete
        </button>
        <button type="button" className="quiet" onClick={() => setDoomed(false)}>
          Keep
        </button>
      </li>
    );
  }
  if (name !== undefined) {
    return (
      <li>
        <form
          className="rename"
          onSubmit={(event) => {
            event.preventDefault();
            setName(undefined);
            if (name.trim() !== "") void attempt(async () => place.rename(id, name.trim()).then(refresh));
          }}
        >
          <input
            aria-label={`New name of ${title}`}
            ref={focus}
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
          <button type="submit" className="primary">
            Save
          </button>
        </form>
      </li>
    );
  }
  return (
    <li aria-current={isCurrent}>
      <button type="button" className="chat" onClick={() => onOpen(id)}>
        <span>{title}</span>
        <small>
          {new Date(updatedAt).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })}
          {status === "waiting" && ", waits for you"}
        </small>
      </button>
      <Deed verb="Rename" of={title} icon="pencil" onDo={() => setName(title)} />
      <Deed verb="Export" of={title} icon="down" onDo={() => void attempt(async () => exportChat(chat))} />
      <Deed
        verb="Delete"
        of={title}
        icon="bin"
        {...(isCurrent && { unless: "Open another chat to delete this one" })}
        onDo={() => setDoomed(true)}
      />
    </li>
  );
}

interface DeedProps {
  readonly verb: string;
  readonly of: string;
  readonly icon: IconName;
  /** Why it cannot be done now. */
  readonly unless?: string;
  onDo(): void;
}

function Deed({ verb, of, icon, unless, onDo }: DeedProps): ReactElement {
  return (
    <button
      type="button"
      className="quiet"
      aria-label={`${verb} ${of}`}
      title={unless ?? verb}
      disabled={unless !== undefined}
      onClick={onDo}
    >
      <Icon name={icon} />
    </button>
  );
}
