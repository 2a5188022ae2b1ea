/** The page: one chat, and what surrounds it. */
import { useCallback, useState, type ReactElement } from "react";
import { useAgent, useTranscript } from "turnloop/react";
import { TurnloopError, type ErrorData } from "turnloop";
import { forkBefore, newChat } from "../chats.ts";
import { harness, type Route } from "../harness.ts";
import { useChatAddress } from "../use-chat-address.ts";
import { useEndpoint } from "../use-endpoint.ts";
import { Announcer } from "./announcer.tsx";
import { Chats } from "./chats.tsx";
import { Composer } from "./composer.tsx";
import { Conversation } from "./conversation.tsx";
import { Header } from "./header.tsx";
import { Problem } from "./problem.tsx";
import { Queue } from "./queue.tsx";
import { Settings } from "./settings.tsx";
import { problemOf } from "../text.ts";

/** After a reload the tab's former page may take a moment to let go; another tab will not. */
const CLAIM = { claim: "wait", claimTimeoutMs: 3000 } as const;

function errorData(error: Error): ErrorData {
  return { message: error.message, ...(TurnloopError.is(error) && { code: error.code }) };
}

export function App(): ReactElement {
  const [chat, openChat] = useChatAddress();
  const endpoint = useEndpoint();
  const route: Route = endpoint.connected ? "endpoint" : "scripted";
  const { agent, snapshot, error } = useAgent(harness, { id: chat, model: route, ...CLAIM });
  const transcript = useTranscript(agent);
  const [problem, setProblem] = useState<string>();
  const [draft, setDraft] = useState("");
  const [isSettingUp, setSettingUp] = useState(false);
  const [isChoosing, setChoosing] = useState(false);
  const openSettings = useCallback((): void => setSettingUp(true), []);
  /** What was taken back goes into the input, in front of what is being typed. */
  const putBack = useCallback(
    (text: string): void => setDraft((now) => (now.trim() === "" ? text : `${text}\n${now}`)),
    [],
  );
  const startOver = (): void => {
    openChat(newChat());
    setDraft("");
  };
  /** A copy of the chat up to this message, which goes into the input to be said otherwise. */
  const edit = useCallback(
    (message: string, text: string): void => {
      forkBefore(chat, message).then(
        (id) => {
          openChat(id);
          setDraft(text);
        },
        (thrown: unknown) => setProblem(problemOf(thrown)),
      );
    },
    [chat, openChat],
  );

  return (
    <div className="page">
      <Header
        endpoint={endpoint.connected}
        durable={snapshot?.durable}
        onChats={() => setChoosing(true)}
        onSettings={openSettings}
        onNewChat={startOver}
      />
      {error && <Problem title="The chat could not be opened" error={errorData(error)} />}
      {problem !== undefined && <Problem title="The chat could not be copied" error={{ message: problem }} />}
      <Conversation
        agent={agent}
        snapshot={snapshot}
        messages={transcript.messages}
        isScripted={!endpoint.connected}
        onPutBack={putBack}
        onEdit={edit}
        onSettings={openSettings}
      />
      <footer className="dock">
        {agent && snapshot && <Queue agent={agent} queue={snapshot.queue} onPutBack={putBack} />}
        <Composer key={chat} agent={agent} snapshot={snapshot} draft={draft} onDraft={setDraft} />
      </footer>
      <Announcer messages={transcript.messages} interactions={snapshot?.interactions ?? []} />
      {isChoosing && <Chats current={chat} onOpen={openChat} onNew={startOver} onClose={() => setChoosing(false)} />}
      {isSettingUp && (
        <Settings
          endpoint={endpoint}
          onClose={() => setSettingUp(false)}
          onRoute={(next) => agent?.configure({ model: next })}
        />
      )}
    </div>
  );
}
