/** The one harness of the page: the demo's tools, and the models that it can use. */
import { createHarness, type Model } from "turnloop";
import { offlineModel } from "./offline-model.ts";
import { demoTools } from "./tools.ts";

/** The routes of the page's models. */
export type Route = "scripted" | "endpoint";

export const harness = createHarness({
  model: "scripted",
  models: { scripted: offlineModel() },
  system: "You are the assistant of a demo page. Use the tools where they help. Answer briefly, in Markdown.",
  tools: demoTools(),
});

let forget = (): void => {};

/** Makes `model` what the route `endpoint` leads to, from the next request on. */
export function setEndpointModel(model: Model): void {
  forget();
  forget = harness.models.register("endpoint", model);
}
