/** Filling the variables of a prompt section in, strictly: a prompt is either whole or refused. */
import { TurnloopError } from "../errors.ts";

export const VARIABLE_NAME = /^[a-z][a-z0-9_]*$/;

/**
 * Replaces each `{{name}}` by its value, once: values are not looked through again. A `{{` with no `}}`
 * behind it is plain text, and so is a `}}` with no `{{` before it. `place` says in messages whose text it is.
 *
 * Throws INVALID_PROMPT for a name that is not in `variables`, one whose value is undefined, and anything
 * else between `{{` and `}}`: blanks, more braces, nothing.
 */
export function renderTemplate(
  text: string,
  variables: Readonly<Record<string, string | undefined>>,
  place = "the prompt",
): string {
  let rendered = "";
  let from = 0;
  for (;;) {
    const opening = text.indexOf("{{", from);
    const closing = opening < 0 ? -1 : text.indexOf("}}", opening + 2);
    if (closing < 0) return rendered + text.slice(from);
    const name = text.slice(opening + 2, closing);
    rendered += text.slice(from, opening) + valueOf(name, variables, place);
    from = closing + 2;
  }
}

function valueOf(name: string, variables: Readonly<Record<string, string | undefined>>, place: string): string {
  if (!VARIABLE_NAME.test(name)) {
    throw invalid(
      place,
      `{{${excerpt(name)}}} is not a variable; write {{name}} without blanks, or make the section literal`,
    );
  }
  if (!Object.hasOwn(variables, name)) {
    throw invalid(
      place,
      `{{${name}}} is unknown; register it with prompt.variable("${name}", ...), or make the section literal`,
    );
  }
  const value = variables[name];
  if (value === undefined) {
    throw invalid(place, `{{${name}}} has no value here; let its variable answer with text`);
  }
  return value;
}

function invalid(place: string, what: string): TurnloopError {
  return new TurnloopError("INVALID_PROMPT", `${place}: ${what}`);
}

function excerpt(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40).toWellFormed()}...` : text;
}
