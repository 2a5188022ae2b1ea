/** The demo draws Markdown block by block: that looks as if it had been parsed as a whole. */
import { createElement, Fragment } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import ReactMarkdown from "react-markdown";
import remarkGfm from "remark-gfm";
import { expect, test } from "vitest";
import { splitMarkdown } from "../../demo/markdown-blocks.ts";

const parse = (text: string) => createElement(ReactMarkdown, { remarkPlugins: [remarkGfm] }, text);
const html = (...texts: readonly string[]): string =>
  renderToStaticMarkup(createElement(Fragment, {}, ...texts.map(parse))).replaceAll(/>\s+</g, "><");

test.for([
  ["paragraphs and headings", "# A\n\none\ntwo\n\n## B\n\nthree", 4],
  ["a loose list", "before\n\n1. one\n\n2. two\n\n   more of two\n\n3. three\n\nafter", 3],
  ["a list with code inside", "- one\n\n  ```ts\n  const a = 1;\n\n  const b = 2;\n  ```\n\n- two\n\nafter", 2],
  ["code with empty lines and a shorter fence in it", "````md\n```\n\ninside\n\n```\n````\n\nafter", 2],
  ["code that is still being written", "before\n\n```ts\nconst a = 1;\n\n\nconst b", 2],
  ["code that ends with tildes only", "~~~\na\n\n```\n\nb\n~~~\n\nafter", 2],
  ["a quote and a table", "> quoted\n> more\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\nafter", 3],
  [
    "links that are defined elsewhere",
    "See [this][r] and [that].\n\ntext\n\n[r]: https://a.example/\n[that]: https://b.example/",
    3,
  ],
  ["a footnote", "said[^1]\n\nmore\n\n[^1]: why", 1],
  ["indented code", "before\n\n    code\n\n    more code\n\nafter", 2],
] as const)("%s", ([, text, blocks]) => {
  const split = splitMarkdown(text);
  expect(split).toHaveLength(blocks);
  expect(html(...split)).toBe(html(text));
});

test("while a text grows, the blocks before its last one stay as they are", () => {
  const text = "# A\n\none two\n\n- a\n- b\n\n```ts\nx\n\ny\n```\n\nlast words";
  let before: readonly string[] = [];
  for (let length = 1; length <= text.length; length += 1) {
    const now = splitMarkdown(text.slice(0, length));
    expect(now.slice(0, before.length - 1)).toEqual(before.slice(0, -1));
    before = now;
  }
});
