/** The numbers of the contract, each with its tags, and which of them owe a test. */

/**
 * S: said by the later documents. Se: only by the earlier ones. C: how the ancestor does it.
 * N: a newer idea of it. C!: what it does, and we do not.
 */
export type Tag = "S" | "Se" | "C" | "N" | "C!";

export interface Statement {
  /** As in the names of tests: `#70`, `D18`. */
  readonly id: string;
  readonly tags: readonly Tag[];
  readonly needsTest: boolean;
}

/** Ten to a line. */
const TAGS = `
    1: S S S S S C C S+C C C
   11: C C S C C C C S C S
   21: S S S C N N S+C S+C S Se+S+C
   31: Se+S Se C S C C S S S S
   41: S S+C Se C C C C C C N
   51: S C C C S S C Se+C S+C Se
   61: Se+C C C C N+C! Se+C S C S C
   71: C C C C C S S+C S Se C
   81: C Se+C C N N N Se C C N
   91: N S S+N S+Se C C C+N C C S
  101: C S S C C C N S C C
  111: S C C C C S C C S C
  121: C S S S C C C C C C
  131: C C N S S C C C C C
  141: S+Se C C S+C C C S+C C C N
  151: N S C C C C C C C C
  161: C C N N N N N C C S
  171: C C S+N C C S C C S+C C
  181: C C C C C C C S C N+C!
  191: N N N C C S S+C S S S
  201: S C N C S C S C C S
  211: C C S+C N S+C C C C+N C C+N
  221: C C C C C C C+N C C C
  231: N N C C+N C C N C C C
  241: C C C C C C C C C+N S+Se
`;
const OWING: ReadonlySet<Tag> = new Set(["S", "Se", "C"]);

const DECISIONS = 31;
/** Turns that go on after a crash are not built yet. */
const NOT_BUILT: ReadonlySet<string> = new Set(["D24"]);

export const statements: readonly Statement[] = [
  ...TAGS.split(/\s+/)
    .filter((word) => word !== "" && !word.endsWith(":"))
    .map((word, i) => {
      const tags = word.split("+") as Tag[];
      return { id: `#${i + 1}`, tags, needsTest: tags.some((tag) => OWING.has(tag)) };
    }),
  ...Array.from({ length: DECISIONS }, (_, i) => {
    const id = `D${i + 1}`;
    return { id, tags: [], needsTest: !NOT_BUILT.has(id) };
  }),
];
