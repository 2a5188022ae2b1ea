/** Code in colours, by rules that most languages share: comments, texts, numbers, and the words that they keep. */

export type Colour = "comment" | "string" | "number" | "keyword";
export interface Token {
  readonly text: string;
  readonly colour?: Colour;
}

/** Longer code stays plain: it would be looked through at every word that is added to it. */
const LONGEST = 20_000;

const KEYWORDS = new Set(
  (
    "abstract and as async await bool break case catch class const continue def default defer del do elif else enum " +
    "except export extends false finally fn for from func function go if implements import in instanceof int interface " +
    "is lambda let match mod mut new nil none not null number of or package pass private protected pub public raise " +
    "readonly return self static string struct super switch this throw trait true try type typeof undefined use var " +
    "void where while with yield select insert update delete create table into values"
  ).split(" "),
);

const HASHED = new Set(["py", "python", "sh", "bash", "shell", "yaml", "yml", "toml", "rb", "ruby", "dockerfile"]);
const PLAIN = new Set(["", "text", "txt", "plain", "md", "markdown", "diff", "log"]);

const SLASHES = String.raw`\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)`;
const HASHES = String.raw`#[^\n]*`;
const REST = String.raw`("(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?|${"`"}(?:\\.|[^${"`"}\\])*${"`"}?)|(\b\d[\w.]*\b)|([A-Za-z_$][\w$]*)`;
const RULES = {
  slashes: new RegExp(`(${SLASHES})|${REST}`, "g"),
  hashes: new RegExp(`(${HASHES})|${REST}`, "g"),
};

/** Joined, the texts of the tokens are the code again. */
export function highlight(code: string, language: string): readonly Token[] {
  if (PLAIN.has(language) || code.length > LONGEST) return [{ text: code }];
  const tokens: Token[] = [];
  let at = 0;
  for (const found of code.matchAll(HASHED.has(language) ? RULES.hashes : RULES.slashes)) {
    const [text, comment, string, number, word = ""] = found;
    const colour: Colour | undefined = comment
      ? "comment"
      : string
        ? "string"
        : number
          ? "number"
          : KEYWORDS.has(word)
            ? "keyword"
            : undefined;
    if (colour === undefined) continue;
    if (found.index > at) tokens.push({ text: code.slice(at, found.index) });
    tokens.push({ text, colour });
    at = found.index + text.length;
  }
  if (at < code.length) tokens.push({ text: code.slice(at) });
  return tokens;
}
