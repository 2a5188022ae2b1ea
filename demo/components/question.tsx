/** A question that a tool asks a person. */
import type { Agent, Interaction, JsonValue } from "turnloop";
import { useId, useState, type ReactElement } from "react";
import { useAnswer } from "../use-answer.ts";

interface Props {
  readonly interaction: Interaction;
  readonly agent: Agent;
}

export function Question({ interaction, agent }: Props): ReactElement {
  const { question, options } = readPayload(interaction.payload);
  const { answer, isSent, problem } = useAnswer(agent, interaction.id);
  const [text, setText] = useState("");
  const input = useId();
  return (
    <form
      className="ask"
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim() !== "") answer(text.trim());
      }}
    >
      <label htmlFor={input}>{question}</label>
      {options.length > 0 && (
        <div className="buttons">
          {options.map((option) => (
            <button key={option} type="button" disabled={isSent} onClick={() => answer(option)}>
              {option}
            </button>
          ))}
        </div>
      )}
      <div className="field">
        <input
          id={input}
          value={text}
          disabled={isSent}
          placeholder={options.length > 0 ? "Or something else" : "Your answer"}
          autoComplete="off"
          onChange={(event) => setText(event.target.value)}
        />
        <button type="submit" className="primary" disabled={isSent || text.trim() === ""}>
          Answer
        </button>
      </div>
      {problem !== undefined && <p className="problem-line">{problem}</p>}
    </form>
  );
}

/** What `askUser` sends; anything else is shown as it is. */
function readPayload(payload: JsonValue): { readonly question: string; readonly options: readonly string[] } {
  if (typeof payload === "string") return { question: payload, options: [] };
  const { question, options } = (payload ?? {}) as { question?: unknown; options?: unknown };
  return {
    question: typeof question === "string" ? question : JSON.stringify(payload),
    options: Array.isArray(options) ? options.filter((option) => typeof option === "string") : [],
  };
}
