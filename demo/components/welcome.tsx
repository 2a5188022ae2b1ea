/** An empty chat: what this is, and some first messages. */
import type { ReactElement } from "react";
import { place } from "../place.ts";

interface Props {
  readonly isScripted: boolean;
  onPick(text: string): void;
}

const STARTERS: readonly (readonly [text: string, shows: string])[] = [
  ["What is 1234 * 5678, and what time is it in Oslo?", "Two tools, one after the other"],
  ["Add a note: buy oat milk", "A tool that you have to allow"],
  ["Plan a dinner for me", "A tool that asks you a question"],
  ["Write something long", "Time to steer, to queue, to stop"],
];

export function Welcome({ isScripted, onPick }: Props): ReactElement {
  return (
    <section className="welcome" aria-labelledby="welcome-title">
      {place.model === undefined ? <Here isScripted={isScripted} /> : <AtTheEdge />}
      <ul className="starters">
        {STARTERS.map(([text, shows]) => (
          <li key={text}>
            <button type="button" onClick={() => onPick(text)}>
              <span>{text}</span>
              <small>{shows}</small>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Here({ isScripted }: { readonly isScripted: boolean }): ReactElement {
  return (
    <>
      <h2 id="welcome-title">An agent, in this page</h2>
      <p>
        The loop that calls the model, runs the tools and keeps the log runs here in your browser; there is no server
        behind it.{" "}
        {isScripted
          ? "The model is a script that knows a few words, so that it works without a key. Settings connects a real one."
          : "The model is the endpoint that you chose in Settings."}{" "}
        What is said stays in this browser: a reload, or a crash, comes back to it.
      </p>
    </>
  );
}

function AtTheEdge(): ReactElement {
  return (
    <>
      <h2 id="welcome-title">An agent, at the edge</h2>
      <p>
        Each chat has an agent of its own in a Durable Object, which calls the model, runs the tools and keeps the log.
        This page only drives it: close it in mid answer, come back, and the answer is there. Your other tabs show the
        same, as it happens.
      </p>
    </>
  );
}
