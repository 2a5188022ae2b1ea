/** The page: one chat, and what surrounds it. */
import { useCallback, useState, type ReactElement } from "react";
import { useAgent, useTranscript } from "turnloop/react";
import { harness, type Route } from "../harness.ts";
import { useEndpoint } from "../use-endpoint.ts";
import { Announcer } from "./announcer.tsx";
import { Composer } from "./composer.tsx";
import { Conversation } from "./conversation.tsx";
import { Header } from "./header.tsx";
import { Problem } from "./problem.tsx";
import { Queue } from "./queue.tsx";
import { Settings } from "./settings.tsx";

export function App(): ReactElement {
  const [chat, setChat] = useState(1);
  const endpoint = useEndpoint();
  const route: Route = endpoint.connected ? "endpoint" : "scripted";
  const { agent, snapshot, error } = useAgent(harness, { id: `chat-${chat}`, model: route });
  const transcript = useTranscript(agent);
  const [draft, setDraft] = useState("");
  const [isSettingUp, setSettingUp] = useState(false);
  const openSettings = useCallback((): void => setSettingUp(true), []);
  /** What was taken back goes into the input, in front of what is being typed. */
  const putBack = useCallback(
    (text: string): void => setDraft((now) => (now.trim() === "" ? text : `${text}\n${now}`)),
    [],
  );
  const startOver = (): void => {
    setChat(chat + 1);
    setDraft("");
  };

  return (
    <div className="page">
      <Header endpoint={endpoint.connected} onSettings={openSettings} onNewChat={startOver} />
      {error && <Problem title="The chat could not be opened" error={{ message: error.message }} />}
      <Conversation
        agent={agent}
        snapshot={snapshot}
        messages={transcript.messages}
        isScripted={!endpoint.connected}
        onPutBack={putBack}
        onSettings={openSettings}
      />
      <footer className="dock">
        {agent && snapshot && <Queue agent={agent} queue={snapshot.queue} onPutBack={putBack} />}
        <Composer agent={agent} snapshot={snapshot} draft={draft} onDraft={setDraft} />
      </footer>
      <Announcer messages={transcript.messages} interactions={snapshot?.interactions ?? []} />
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
