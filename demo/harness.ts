/** The one harness of the page: the demo's tools, and the models that it can use. */
import { createHarness, standard, type Model } from "turnloop";
import { indexedDBStorage } from "turnloop/indexeddb";
import { offlineModel } from "./offline-model.ts";
import { demoTools } from "./tools.ts";

/** The routes of the page's models. */
export type Route = "scripted" | "endpoint";

/** `?pace=5` in the address: the milliseconds that the script takes for a piece of text. */
const pace = Number(new URLSearchParams(location.search).get("pace") ?? Number.NaN);

/** In memory where the browser gives the page no database: then it is not `durable`. */
export const storage = indexedDBStorage({ name: "turnloop-demo" });

export const harness = createHarness({
  model: "scripted",
  models: { scripted: offlineModel(Number.isFinite(pace) ? pace : undefined) },
  system: "You are the assistant of a demo page. Use the tools where they help. Answer briefly, in Markdown.",
  tools: demoTools(),
  storage,
  plugins: [standard()],
});

let forget = (): void => {};

/** Makes `model` what the route `endpoint` leads to, from the next request on. */
export function setEndpointModel(model: Model): void {
  forget();
  forget = harness.models.register("endpoint", model);
}
