/** The system prompt: named sections, filled in with variables, assembled once a step. */
import type { Agent } from "../agent/types.ts";
import type { Awaitable, Unregister } from "../hooks/types.ts";
import type { ToolSchema } from "../model/types.ts";
import type { SessionView } from "../session/types.ts";

/** For whom a prompt is assembled. Both are absent in a bare `assemble()`. */
export interface PromptContext {
  readonly agent?: Agent;
  readonly session?: SessionView;
}

export interface PromptSection {
  readonly name: string;
  readonly order: number;
  readonly literal?: boolean;
  readonly text: string;
}

/** What one step's prompt is made of, before it is rendered. */
export interface PromptAssembly {
  readonly sections: readonly PromptSection[];
  readonly tools: readonly ToolSchema[];
  readonly variables: Readonly<Record<string, string | undefined>>;
}

export interface SystemPrompt {
  /**
   * Adds a section; an agent's section hides the harness's of the same name. Sections go by `order`
   * (default 100), equal ones as they were registered; empty ones are left out. `{{name}}` is filled in from
   * the variables, unless `literal`. DUPLICATE_SECTION within one layer, INVALID_SECTION.
   */
  section(section: {
    name: string;
    order?: number;
    literal?: boolean;
    text: string | ((context: PromptContext) => Awaitable<string | undefined>);
  }): Unregister;
  /** Names look like `[a-z][a-z0-9_]*`. DUPLICATE_VARIABLE within one layer, INVALID_VARIABLE. */
  variable(name: string, value: string | ((context: PromptContext) => Awaitable<string | undefined>)): Unregister;
  assemble(context?: PromptContext): Promise<PromptAssembly>;
  /** The whole system prompt. INVALID_PROMPT for an unknown variable, one without a value, mangled braces. */
  render(assembly: PromptAssembly): string;
}
