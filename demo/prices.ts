/** What models cost, as the visitor says: the page knows no prices of its own. */
import type { SessionUsage, Usage } from "turnloop";

/** In the visitor's currency, for a million tokens. */
export interface Price {
  readonly input: number;
  readonly output: number;
  /** Default: the price of input. */
  readonly cacheRead?: number;
}

export type Prices = Readonly<Record<string, Price>>;

const KEY = "turnloop-demo-prices";

/** By `Model.id`. */
export function storedPrices(): Prices {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return Object.fromEntries(Object.entries(stored ?? {}).filter(([, price]) => isPrice(price))) as Prices;
  } catch {
    return {};
  }
}

/** Undefined forgets it. */
export function storePrice(model: string, price: Price | undefined): void {
  const others = Object.entries(storedPrices()).filter(([id]) => id !== model);
  try {
    localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(price ? [...others, [model, price]] : others)));
  } catch {
    // Storage is off: then there is no cost to see.
  }
}

/** Undefined when no model that was used has a price; `isPart` when one of them has none. */
export function costOf(
  { byModel }: SessionUsage,
  prices: Prices,
): { readonly amount: number; readonly isPart: boolean } | undefined {
  const used = Object.entries(byModel);
  const priced = used.filter(([model]) => Object.hasOwn(prices, model));
  if (priced.length === 0) return undefined;
  const amount = priced.reduce((sum, [model, usage]) => sum + priceFor(usage, prices[model]!), 0);
  return { amount, isPart: priced.length < used.length };
}

function priceFor(usage: Usage, { input, output, cacheRead = input }: Price): number {
  const { input: read = 0, cacheWrite = 0, cacheRead: cached = 0, output: written = 0, reasoning = 0 } = usage;
  return ((read + cacheWrite) * input + cached * cacheRead + (written + reasoning) * output) / 1_000_000;
}

function isPrice(value: unknown): value is Price {
  const { input, output } = (value ?? {}) as Partial<Price>;
  return Number.isFinite(input) && Number.isFinite(output);
}

export function tokensOf(usage: Usage): number {
  const { input = 0, cacheRead = 0, cacheWrite = 0, output = 0, reasoning = 0 } = usage;
  return input + cacheRead + cacheWrite + output + reasoning;
}
