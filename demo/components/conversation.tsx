/** The messages, scrolled to the last one as long as the reader is there. */
import type { Agent, AgentStatus, Transcript } from "turnloop";
import { memo, type ReactElement } from "react";
import { isFirstOfTurn, isLastOfTurn, toPages, type MessagePage } from "../message-pages.ts";
import { useStickToEnd } from "../use-stick-to-end.ts";
import { GoOn } from "./go-on.tsx";
import { Icon } from "./icon.tsx";
import { MessageView, type MessageDeeds } from "./message.tsx";
import { Near } from "./near.tsx";
import { Welcome } from "./welcome.tsx";

interface Props extends MessageDeeds {
  readonly agent: Agent | undefined;
  readonly status: AgentStatus | undefined;
  readonly transcript: Transcript;
  readonly isScripted: boolean;
}

/** Pixels: of a message that was never drawn, about. */
const MESSAGE_HEIGHT = 110;

export function Conversation({ agent, status, transcript, isScripted, ...deeds }: Props): ReactElement {
  const { messages, turn } = transcript;
  const said = messages.findLast((message) => message.role === "user");
  const { ref, isAtEnd, toEnd } = useStickToEnd(messages, said?.id);
  const pages = toPages(messages);
  return (
    <main className="conversation" ref={ref} aria-label="Conversation" tabIndex={-1}>
      <div className="column">
        {messages.length === 0 && agent && <Welcome isScripted={isScripted} onPick={(text) => agent.send(text)} />}
        {pages.map((page, place) => (
          <PageView
            // Messages are only ever added: the place of a page is its name.
            // eslint-disable-next-line react/no-array-index-key
            key={`${agent?.id} ${place}`}
            page={page}
            openTurn={page.messages.at(-1)?.turn === turn?.number ? turn?.number : undefined}
            isLast={place >= pages.length - 2}
            agent={agent}
            {...deeds}
          />
        ))}
        {agent && status === "idle" && <GoOn agent={agent} last={messages.at(-1)} />}
      </div>
      {!isAtEnd && (
        <button type="button" className="to-end" onClick={toEnd}>
          <Icon name="down" />
          Latest
        </button>
      )}
    </main>
  );
}

interface PageProps extends MessageDeeds {
  readonly page: MessagePage;
  readonly openTurn: number | undefined;
  /** Of the pages. */
  readonly isLast: boolean;
  readonly agent: Agent | undefined;
}

const PageView = memo(function PageView({ page, openTurn, isLast, ...rest }: PageProps): ReactElement {
  const { messages } = page;
  return (
    <Near className="messages" estimate={messages.length * MESSAGE_HEIGHT} startsNear={isLast}>
      {() =>
        messages.map((message, at) => (
          <MessageView
            key={message.id}
            message={message}
            isFirst={isFirstOfTurn(page, at)}
            isLast={message.turn !== openTurn && isLastOfTurn(page, at)}
            {...rest}
          />
        ))
      }
    </Near>
  );
});
