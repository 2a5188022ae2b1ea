/** A block of code: its language, its colours, and a way to take it along. */
import { memo, type ReactElement } from "react";
import { highlight } from "../highlight.ts";
import { useCopy } from "../use-copy.ts";
import { Icon } from "./icon.tsx";

interface Props {
  readonly code: string;
  readonly language: string;
}

export const CodeBlock = memo(function CodeBlock({ code, language }: Props): ReactElement {
  const { isCopied, copy } = useCopy();
  return (
    <div className="code">
      <div className="code-head">
        <span>{language || "text"}</span>
        <button type="button" className="quiet" onClick={() => copy(code)}>
          <Icon name={isCopied ? "check" : "copy"} />
          {isCopied ? "Copied" : "Copy code"}
        </button>
      </div>
      <pre tabIndex={0}>
        <code>
          {highlight(code, language).map(({ text, colour }, place) =>
            colour === undefined ? (
              text
            ) : (
              // Code has no names for its pieces but their places.
              // eslint-disable-next-line react/no-array-index-key
              <span key={place} className={colour}>
                {text}
              </span>
            ),
          )}
        </code>
      </pre>
    </div>
  );
});
