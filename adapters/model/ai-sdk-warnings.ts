/** What a provider could not do as it was asked, told once. */

const MOST = 100;

/** Tells each distinct warning once, at most a hundred in all. */
export function onceEach(tell: (message: string) => void): (message: string) => void {
  const told = new Set<string>();
  return (message) => {
    if (told.has(message) || told.size >= MOST) return;
    told.add(message);
    tell(message);
  };
}

/** One line of text for a warning of any version of the interface. */
export function warningText(warning: unknown): string {
  const { type, feature, setting, tool, details, message } = (warning ?? {}) as Readonly<Record<string, unknown>>;
  const { name } = (tool ?? {}) as { readonly name?: unknown };
  const parts = [type === "other" ? undefined : type, feature, setting, name, details, message];
  return parts
    .filter((part) => typeof part === "string" && part !== "")
    .join(": ")
    .slice(0, 300);
}
