import { describe, expect, it } from "vitest";
import { renderTemplate } from "../../src/prompt/template.ts";

const invalid = expect.objectContaining({ code: "INVALID_PROMPT" });

describe("#126 a template", () => {
  it.each([
    ["no variables at all", "no variables at all"],
    ["{{city}} and {{city}}", "Oslo and Oslo"],
    ["a lone {{ stays", "a lone {{ stays"],
    ["{{city}} then a lone {{", "Oslo then a lone {{"],
    ["}} before anything", "}} before anything"],
    ['{"a":{"city":"{{city}}"}}', '{"a":{"city":"Oslo"}}'],
    ["{ {city} }", "{ {city} }"],
    ["{{empty}}!", "!"],
    ["", ""],
  ])("renders %j as %j", (text, rendered) => {
    expect(renderTemplate(text, { city: "Oslo", empty: "" })).toBe(rendered);
  });

  it.each([
    ["an unknown variable", "{{town}}"],
    ["a variable without a value", "{{nothing}}"],
    ["blanks", "{{ city }}"],
    ["a capital", "{{City}}"],
    ["nothing between the braces", "{{}}"],
    ["three braces", "{{{city}}}"],
    ["an opening within another", "{{ci{{city}}"],
    ["a mangled end", "{{city} and {{city}}"],
    ["a line break", "{{city\n}}"],
    ["a prototype's name", "{{constructor}}"],
    ["another prototype's name", "{{__proto__}}"],
    ["a path", "{{city.name}}"],
  ])("refuses %s", (_, text) => {
    expect(() => renderTemplate(`before ${text}`, { city: "Oslo", nothing: undefined })).toThrow(invalid);
  });

  it("does not look values through again", () => {
    const variables = { a: "{{b}} {{ b }} $& $1", b: "secret" };
    expect(renderTemplate("{{a}}", variables)).toBe(variables.a);
  });

  it("says where, which variable, and what to do", () => {
    expect(() => renderTemplate("{{town}}", {}, 'section "place"')).toThrow(
      /section "place": \{\{town\}\} is unknown; register it/,
    );
  });
});
