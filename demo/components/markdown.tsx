/** Text of a model as Markdown. It is not trusted: no raw HTML, no images from elsewhere, links that tell nothing. */
import { memo, useDeferredValue, type ReactElement } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";

const PLUGINS = [remarkGfm];

const COMPONENTS: Components = {
  a: ({ href, children }) => (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  ),
  // Loading it would tell its host that, and when, this was read.
  img: ({ alt, src }) => (
    <a href={typeof src === "string" ? src : undefined} target="_blank" rel="noopener noreferrer nofollow">
      Image: {alt || "without a description"}
    </a>
  ),
  table: ({ children }) => (
    <div className="table" tabIndex={0} role="region" aria-label="Table">
      <table>{children}</table>
    </div>
  ),
  pre: ({ children }) => <pre tabIndex={0}>{children}</pre>,
};

interface Props {
  readonly text: string;
  readonly isStreaming: boolean;
}

export function Markdown({ text, isStreaming }: Props): ReactElement {
  // Parsing may fall behind a fast stream, rather than the page behind the reader.
  const shown = useDeferredValue(text);
  return (
    <div className={isStreaming ? "prose streaming" : "prose"}>
      <Parsed text={isStreaming ? shown : text} />
    </div>
  );
}

const Parsed = memo(function Parsed({ text }: { readonly text: string }): ReactElement {
  return (
    <ReactMarkdown remarkPlugins={PLUGINS} components={COMPONENTS}>
      {text}
    </ReactMarkdown>
  );
});
