/** A layer of the system prompt: registering its parts, assembling them for a step, rendering the text. */
import { isObject } from "../json.ts";
import { messageOf, TurnloopError } from "../errors.ts";
import { enter } from "../hooks/entries.ts";
import { isThenable, type Dispatch } from "../hooks/hooks.ts";
import type { Awaitable } from "../hooks/types.ts";
import type { ToolSchema } from "../model/types.ts";
import { checkAssembly } from "./assembly.ts";
import { renderTemplate, VARIABLE_NAME } from "./template.ts";
import type { PromptAssembly, PromptContext, PromptSection, SystemPrompt } from "./types.ts";

export interface PromptLayer extends SystemPrompt {
  /** What a step shows the model. No promise where all of the text stands already, and nobody is asked. */
  compose(context: PromptContext): Awaitable<Composed>;
  /** For the layer above. */
  parts(): Parts;
  /** Removes every part of this layer, without telling `prompt/change`. */
  unwind(): void;
}

export interface Composed {
  readonly system: string;
  readonly tools: readonly ToolSchema[];
}

export interface PromptDeps {
  readonly hooks: Dispatch;
  /** What the model is shown, frozen; the same array as long as nothing changed. */
  readonly tools: { schemas(): readonly ToolSchema[] };
  readonly parent?: PromptLayer;
}

type Text = Parameters<SystemPrompt["variable"]>[1];

interface Section {
  readonly name: string;
  readonly order: number;
  readonly literal: boolean;
  readonly text: Text;
}

/** What a layer shows to the one above it: its own parts over those of the layers below, sorted. */
export interface Parts {
  readonly sections: readonly Section[];
  readonly variables: ReadonlyMap<string, { readonly value: Text }>;
  /** All of it is text, no functions. */
  readonly fixed: boolean;
}

const DEFAULT_ORDER = 100;

/** Sections that exist, are empty, and keep their place when somebody fills them. */
const RESERVED: readonly Section[] = [
  { name: "identity", order: -100, literal: true, text: "" },
  { name: "persona", order: 0, literal: true, text: "" },
];

/** What lies below every layer. */
const BASE: Parts = { sections: RESERVED, variables: new Map(), fixed: true };

/** A layer of prompt parts above `parent`, whose parts of the same names it hides. */
export function createPrompt({ hooks, tools, parent }: PromptDeps): PromptLayer {
  const sections = new Map<string, Section>();
  const variables = new Map<string, { readonly value: Text }>();
  let merged: { readonly below: Parts; readonly parts: Parts } | undefined;
  let rendered: { readonly parts: Parts; readonly system: string } | undefined;

  /** The same object until something changes, here or below. */
  function parts(): Parts {
    const below = parent?.parts() ?? BASE;
    if (sections.size === 0 && variables.size === 0) return below;
    if (merged?.below === below) return merged.parts;
    const all = [...below.sections.filter(({ name }) => !sections.has(name)), ...sections.values()];
    const named = new Map([...below.variables, ...variables]);
    const now: Parts = {
      sections: all.toSorted((a, b) => a.order - b.order),
      variables: named,
      fixed: all.every(({ text }) => isFixed(text)) && [...named.values()].every(({ value }) => isFixed(value)),
    };
    merged = { below, parts: now };
    return now;
  }

  function changed(): void {
    merged = undefined;
    hooks.emit("prompt/change", {});
  }

  const layer: PromptLayer = {
    parts,

    section(given) {
      hooks.checkOpen();
      const section = checkSection(given);
      return enter(sections, section.name, section, "DUPLICATE_SECTION", "section", changed);
    },

    variable(name, value) {
      hooks.checkOpen();
      checkVariable(name, value);
      return enter(variables, name, { value }, "DUPLICATE_VARIABLE", "variable", changed);
    },

    compose(context) {
      const now = parts();
      if (!now.fixed || hooks.heard("prompt/assemble")) {
        return layer.assemble(context).then((made) => ({ system: layer.render(made), tools: made.tools }));
      }
      if (rendered?.parts !== now) rendered = { parts: now, system: renderFixed(now) };
      return { system: rendered.system, tools: tools.schemas() };
    },

    async assemble(context = {}) {
      const seed = {
        sections: [] as PromptSection[],
        tools: tools.schemas(),
        variables: {} as Record<string, string | undefined>,
      };
      const { tools: known } = seed;
      const { sections: rows, variables: named } = parts();
      for (const { name, order, literal, text } of rows) {
        const said = textOf(text, context, `section "${name}"`);
        const spoken = isThenable(said) ? await said : said;
        seed.sections.push({ name, order, ...(literal ? { literal } : undefined), text: spoken ?? "" });
      }
      for (const [name, { value }] of named) {
        const said = textOf(value, context, `variable "${name}"`);
        seed.variables[name] = isThenable(said) ? await said : said;
      }
      if (!hooks.heard("prompt/assemble")) return seed;
      return checkAssembly(await hooks.waterfall("prompt/assemble", { assembly: seed, context }, () => seed), known);
    },

    render,

    unwind() {
      sections.clear();
      variables.clear();
      merged = undefined;
    },
  };
  return layer;
}

function render({ sections, variables }: Pick<PromptAssembly, "sections" | "variables">): string {
  return sections
    .map(({ name, literal, text }) => (literal ? text : renderTemplate(text, variables, `section "${name}"`)))
    .filter((text) => text.trim() !== "")
    .join("\n\n");
}

/** The same for parts that need no asking. */
function renderFixed({ sections, variables }: Parts): string {
  const values = Object.fromEntries([...variables].map(([name, { value }]) => [name, value as string]));
  return render({ sections: sections as readonly PromptSection[], variables: values });
}

function isFixed(text: Text): boolean {
  return typeof text === "string";
}

function checkSection(given: Parameters<SystemPrompt["section"]>[0]): Section {
  const refuse = (what: string): never => {
    throw new TurnloopError("INVALID_SECTION", `a prompt section is { name, order?, literal?, text }: ${what}`);
  };
  if (!isObject(given)) return refuse("it must be an object");
  const { name, literal = false, text } = given;
  if (typeof name !== "string" || name === "") return refuse("its name must be text");
  // A reserved section that is filled in keeps its place.
  const { order = RESERVED.find((reserved) => reserved.name === name)?.order ?? DEFAULT_ORDER } = given;
  if (!Number.isFinite(order)) return refuse(`the order of "${name}" must be a finite number`);
  if (typeof literal !== "boolean") return refuse(`literal of "${name}" must be a boolean`);
  if (!isText(text)) return refuse(`the text of "${name}" must be a string or a function`);
  return { name, order, literal, text };
}

function checkVariable(name: unknown, value: unknown): void {
  if (typeof name !== "string" || !VARIABLE_NAME.test(name)) {
    throw new TurnloopError("INVALID_VARIABLE", `a variable's name looks like [a-z][a-z0-9_]*, not ${String(name)}`);
  }
  if (!isText(value)) {
    throw new TurnloopError("INVALID_VARIABLE", `the value of variable "${name}" must be a string or a function`);
  }
}

function isText(value: unknown): value is Text {
  return typeof value === "string" || typeof value === "function";
}

/** What a part says in this context. A promise only where its function answers with one. INVALID_PROMPT. */
function textOf(
  text: Text,
  context: PromptContext,
  what: string,
): string | undefined | PromiseLike<string | undefined> {
  if (typeof text === "string") return text;
  const failed = (cause: unknown): never => {
    if (TurnloopError.is(cause)) throw cause;
    throw new TurnloopError("INVALID_PROMPT", `${what} failed: ${messageOf(cause)}`, { cause });
  };
  const check = (said: unknown): string | undefined => {
    if (said === undefined || typeof said === "string") return said;
    throw new TurnloopError("INVALID_PROMPT", `${what} must answer with a string or undefined, not ${typeof said}`);
  };
  let said: unknown;
  try {
    said = text(context);
  } catch (cause) {
    return failed(cause);
  }
  return isThenable(said) ? said.then(check, failed) : check(said);
}
