/** The page: one chat, and what surrounds it. */
import { useCallback, useState, type ReactElement } from "react";
import { useAgent } from "turnloop/react";
import { TurnloopError, type ErrorData } from "turnloop";
import { exportChat } from "../chats.ts";
import { EMPTY, putBefore, type Draft } from "../draft.ts";
import { place, type Route } from "../place.ts";
import { storedPrices } from "../prices.ts";
import { problemOf } from "../text.ts";
import { useChatAddress } from "../use-chat-address.ts";
import { useEndpoint } from "../use-endpoint.ts";
import { useForks } from "../use-forks.ts";
import { useTranscriptFrames } from "../use-transcript-frames.ts";
import { Announcer } from "./announcer.tsx";
import { Chats } from "./chats.tsx";
import { Composer } from "./composer.tsx";
import { Conversation } from "./conversation.tsx";
import { Header } from "./header.tsx";
import { Inspection } from "./inspection.tsx";
import { Meter } from "./meter.tsx";
import { Problem } from "./problem.tsx";
import { Queue } from "./queue.tsx";
import { Settings } from "./settings.tsx";
import { Trouble } from "./trouble.tsx";

function errorData(error: Error): ErrorData {
  return { message: error.message, ...(TurnloopError.is(error) && { code: error.code }) };
}

export function App(): ReactElement {
  const [chat, showChat] = useChatAddress();
  const endpoint = useEndpoint();
  const route: Route = endpoint.connected ? "endpoint" : "scripted";
  /** How often the visitor has had a chat taken from another tab. */
  const [taking, setTaking] = useState({ chat: "", times: 0 });
  const takesOver = taking.chat === chat;
  const { agent, snapshot, error } = useAgent(
    (signal) => place.open({ id: chat, model: route, takesOver, signal }),
    takesOver ? `${chat} ${taking.times}` : chat,
  );
  const takeOver = (): void => setTaking(({ times }) => ({ chat, times: times + 1 }));
  const transcript = useTranscriptFrames(agent);
  const [problem, setProblem] = useState<string>();
  const [draft, setDraft] = useState(EMPTY);
  const [prices, setPrices] = useState(storedPrices);
  const [isSettingUp, setSettingUp] = useState(false);
  const [isChoosing, setChoosing] = useState(false);
  const [isInspecting, setInspecting] = useState(false);
  const openSettings = useCallback((): void => setSettingUp(true), []);
  const putBack = useCallback((back: Draft): void => setDraft((now) => putBefore(back, now)), []);
  const { edit, repeat, fork } = useForks(agent, showChat, setDraft, setProblem);

  const startOver = (): void => {
    showChat(place.newId());
    setDraft(EMPTY);
  };
  const takeAlong = (): void => {
    exportChat({ id: chat }).catch((thrown: unknown) => setProblem(problemOf(thrown)));
  };

  return (
    <div className={isInspecting ? "page inspecting" : "page"}>
      <Header
        endpoint={endpoint.connected}
        snapshot={snapshot}
        isFailed={error !== undefined}
        isInspecting={isInspecting}
        onInspect={() => setInspecting(!isInspecting)}
        onChats={() => setChoosing(true)}
        onSettings={place.setModel && openSettings}
        onNewChat={startOver}
      />
      <div className="notices">
        {error && (
          <Problem title="The chat could not be opened" error={errorData(error)}>
            {TurnloopError.is(error, "SESSION_CLAIMED") && (
              <button type="button" onClick={takeOver}>
                Take it over
              </button>
            )}
          </Problem>
        )}
        {problem !== undefined && <Problem title="That could not be done" error={{ message: problem }} />}
        <Trouble
          durable={snapshot?.durable}
          isForgetful={agent !== undefined && !place.durable}
          onExport={takeAlong}
          onReopen={takeOver}
        />
      </div>
      <Conversation
        agent={agent}
        status={snapshot?.status}
        transcript={transcript}
        isScripted={!endpoint.connected}
        onPutBack={putBack}
        onEdit={edit}
        onRepeat={repeat}
        onFork={fork}
        onSettings={openSettings}
      />
      <footer className="dock">
        {agent && snapshot && <Queue agent={agent} queue={snapshot.queue} onPutBack={putBack} />}
        <Composer
          key={chat}
          agent={agent}
          status={snapshot?.status}
          waiting={snapshot?.waiting}
          draft={draft}
          setDraft={setDraft}
        />
        <div className="below">
          <Keys isRunning={snapshot?.status === "running"} />
          <Meter agent={agent} prices={prices} />
        </div>
      </footer>
      {isInspecting && <Inspection agent={agent} onClose={() => setInspecting(false)} />}
      <Announcer messages={transcript.messages} interactions={snapshot?.interactions ?? []} />
      {isChoosing && <Chats current={chat} onOpen={showChat} onNew={startOver} onClose={() => setChoosing(false)} />}
      {isSettingUp && (
        <Settings
          endpoint={endpoint}
          onClose={() => {
            setSettingUp(false);
            setPrices(storedPrices());
          }}
          onRoute={(next) => agent?.configure({ model: next })}
        />
      )}
    </div>
  );
}

function Keys({ isRunning }: { readonly isRunning: boolean }): ReactElement {
  return (
    <p id="keys" className="keys">
      <span>
        <kbd>Enter</kbd> {isRunning ? "steers this turn" : "sends"}
      </span>
      <span>
        <kbd>{isRunning ? "Ctrl" : "Shift"}</kbd> <kbd>Enter</kbd>{" "}
        {isRunning ? "queues for the next" : "makes a new line"}
      </span>
    </p>
  );
}
