/** Checks a value against plain JSON Schema: the part of it that people write to say what they want. */
import { isObject, isRecord, jsonEqual, type JsonSchema } from "../json.ts";

/** So many schemas may be about the same part of the value; beyond that they go around in circles. */
const DEEPEST = 16;
const MOST = 10;

/**
 * What is wrong, such as `items[0].city: must be a string`; empty when nothing is. Formats, and keywords that are not
 * known here, are taken as met.
 */
export function problemsOf(schema: JsonSchema, value: unknown): readonly string[] {
  const problems: string[] = [];
  check(schema, value, { root: schema, path: "", depth: 0, tell: (what) => problems.push(what) });
  return problems.slice(0, MOST);
}

interface Place {
  readonly root: JsonSchema;
  readonly path: string;
  readonly depth: number;
  tell(what: string): void;
}

type Fields = Readonly<Record<string, unknown>>;

function check(schema: unknown, value: unknown, at: Place): void {
  if (schema === true || at.depth > DEEPEST) return;
  const bad = (what: string): void => at.tell(at.path === "" ? what : `${at.path}: ${what}`);
  if (schema === false) return bad("is not allowed");
  if (!isRecord(schema)) return;
  const within = (part: unknown, inner: unknown, step = ""): void =>
    check(part, inner, { ...at, path: at.path + step, depth: step === "" ? at.depth + 1 : 0 });
  const fits = (part: unknown): boolean => {
    let met = true;
    check(part, value, { ...at, depth: at.depth + 1, tell: () => (met = false) });
    return met;
  };

  if (typeof schema["$ref"] === "string") within(resolve(at.root, schema["$ref"]), value);
  const types = list(schema["type"] === undefined ? [] : [schema["type"]].flat());
  if (types.length > 0 && !types.some((type) => isOfType(type, value))) return bad(`must be ${types.join(" or ")}`);
  if ("const" in schema && !jsonEqual(schema["const"], value)) bad(`must be ${JSON.stringify(schema["const"])}`);
  const choices = schema["enum"];
  if (Array.isArray(choices) && !choices.some((one) => jsonEqual(one, value)))
    bad(`must be one of ${JSON.stringify(choices)}`);
  for (const part of list(schema["allOf"])) within(part, value);
  const any = list(schema["anyOf"]);
  if (any.length > 0 && !any.some(fits)) bad("fits none of `anyOf`");
  const one = list(schema["oneOf"]);
  if (one.length > 0 && one.filter(fits).length !== 1) bad("must fit exactly one of `oneOf`");
  if (schema["not"] !== undefined && fits(schema["not"])) bad("must not fit `not`");

  if (typeof value === "number") checkNumber(schema, value, bad);
  else if (typeof value === "string") checkText(schema, value, bad);
  else if (Array.isArray(value)) checkItems(schema, value, bad, within);
  else if (isRecord(value)) checkFields(schema, value, at.path, bad, within);
}

type Bad = (what: string) => void;
type Within = (part: unknown, inner: unknown, step: string) => void;

function checkNumber(schema: Fields, value: number, bad: Bad): void {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema as Readonly<Record<string, number>>;
  if (minimum !== undefined && value < minimum) bad(`must be at least ${minimum}`);
  if (maximum !== undefined && value > maximum) bad(`must be at most ${maximum}`);
  if (exclusiveMinimum !== undefined && value <= exclusiveMinimum) bad(`must be above ${exclusiveMinimum}`);
  if (exclusiveMaximum !== undefined && value >= exclusiveMaximum) bad(`must be below ${exclusiveMaximum}`);
}

function checkText(schema: Fields, value: string, bad: Bad): void {
  const { minLength, maxLength } = schema as Readonly<Record<string, number>>;
  const length = Array.from(value).length;
  if (minLength !== undefined && length < minLength) bad(`must have at least ${minLength} characters`);
  if (maxLength !== undefined && length > maxLength) bad(`must have at most ${maxLength} characters`);
  const { pattern } = schema;
  if (typeof pattern === "string" && !matches(pattern, value)) bad(`must match ${pattern}`);
}

function matches(pattern: string, value: string): boolean {
  try {
    return new RegExp(pattern, "u").test(value);
  } catch {
    // Of another dialect.
    return true;
  }
}

function checkItems(schema: Fields, value: readonly unknown[], bad: Bad, within: Within): void {
  const { minItems, maxItems } = schema as Readonly<Record<string, number>>;
  if (minItems !== undefined && value.length < minItems) bad(`must have at least ${minItems} items`);
  if (maxItems !== undefined && value.length > maxItems) bad(`must have at most ${maxItems} items`);
  const first = list(schema["prefixItems"]);
  value.forEach((item, i) => within(i < first.length ? first[i] : (schema["items"] ?? true), item, `[${i}]`));
}

function checkFields(schema: Fields, value: Fields, path: string, bad: Bad, within: Within): void {
  const properties = isRecord(schema["properties"]) ? schema["properties"] : {};
  for (const name of list(schema["required"]))
    if (!Object.hasOwn(value, String(name))) bad(`lacks \`${String(name)}\``);
  for (const [name, inner] of Object.entries(value)) {
    const step = path === "" ? name : `.${name}`;
    if (Object.hasOwn(properties, name)) within(properties[name], inner, step);
    else within(schema["additionalProperties"] ?? true, inner, step);
  }
}

function isOfType(type: unknown, value: unknown): boolean {
  switch (type) {
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return isRecord(value);
    case "integer":
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Within the same document; what is elsewhere is taken as met. */
function resolve(root: unknown, ref: string): unknown {
  if (!ref.startsWith("#")) return true;
  let found = root;
  for (const step of ref.split("/").slice(1)) {
    const name = decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
    if (!isObject(found) || !Object.hasOwn(found, name)) return true;
    found = (found as Fields)[name];
  }
  return found;
}
