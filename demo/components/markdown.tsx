/** Text of a model as Markdown. It is not trusted: no raw HTML, no images from elsewhere, links that tell nothing. */
import { memo, type ComponentProps, type ReactElement } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { inParts, splitMarkdown } from "../markdown-blocks.ts";
import { CodeBlock } from "./code-block.tsx";
import { Near } from "./near.tsx";

const PLUGINS = [remarkGfm];

const COMPONENTS: Components = {
  a: ({ href, children }) => <Elsewhere href={href}>{children}</Elsewhere>,
  // Loading it would tell its host that, and when, this was read.
  img: ({ alt, src }) => (
    <Elsewhere href={typeof src === "string" ? src : undefined}>Image: {alt || "without a description"}</Elsewhere>
  ),
  table: ({ children }) => (
    <div className="table" tabIndex={0} role="group" aria-label="Table">
      <table>{children}</table>
    </div>
  ),
  pre: ({ node, children }) => {
    const [code] = node?.children ?? [];
    const [text] = code?.type === "element" ? code.children : [];
    if (code?.type !== "element" || text?.type !== "text") return <pre tabIndex={0}>{children}</pre>;
    return <CodeBlock code={text.value.replace(/\n$/, "")} language={languageOf(code.properties["className"])} />;
  },
};

function Elsewhere({ href, children }: Pick<ComponentProps<"a">, "href" | "children">): ReactElement {
  // Without an address, as after one that was refused, it is no link.
  if (!href) return <span>{children}</span>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}

function languageOf(className: unknown): string {
  const [name] = Array.isArray(className) ? className : [];
  return String(name ?? "").replace(/^language-/, "");
}

interface Props {
  readonly text: string;
  readonly isStreaming: boolean;
}

/** Blocks that are drawn, or not, together. */
const PART = 30;
/** Pixels: of a block that was never drawn, about. */
const BLOCK_HEIGHT = 75;

/** What a text that grows has settled is neither parsed nor drawn again. */
export function Markdown({ text, isStreaming }: Props): ReactElement {
  const parts = inParts(splitMarkdown(text), PART);
  return (
    <div className={isStreaming ? "prose streaming" : "prose"}>
      {parts.map((blocks, part) => (
        <Near
          // Text is only ever added at the end: the place of a block is its name.
          // eslint-disable-next-line react/no-array-index-key
          key={part}
          className="part"
          estimate={blocks.length * BLOCK_HEIGHT}
          startsNear={part === 0 || part >= parts.length - 2}
        >
          {() => <Blocks blocks={blocks} />}
        </Near>
      ))}
    </div>
  );
}

function Blocks({ blocks }: { readonly blocks: readonly string[] }): ReactElement[] {
  // eslint-disable-next-line react/no-array-index-key
  return blocks.map((block, place) => <Parsed key={place} text={block} />);
}

const Parsed = memo(function Parsed({ text }: { readonly text: string }): ReactElement {
  return (
    <ReactMarkdown remarkPlugins={PLUGINS} components={COMPONENTS}>
      {text}
    </ReactMarkdown>
  );
});
