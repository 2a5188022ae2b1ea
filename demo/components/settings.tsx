/** Points the demo at a model of the visitor's own, or back at the script. */
import { useEffect, useRef, useState, type FormEvent, type ReactElement } from "react";
import type { Endpoint } from "../endpoint.ts";
import type { Route } from "../place.ts";
import type { EndpointState } from "../use-endpoint.ts";
import { storedPrices, storePrice, type Price } from "../prices.ts";
import { problemOf } from "../text.ts";

interface Props {
  readonly endpoint: EndpointState;
  onClose(): void;
  onRoute(route: Route): void;
}

const NOTHING: Endpoint = { api: "chat", baseURL: "https://api.openai.com/v1", model: "", apiKey: "" };

const PRICED = [
  ["input", "Input"],
  ["cacheRead", "Cached input"],
  ["output", "Output"],
] as const;

type PriceFields = Readonly<Record<(typeof PRICED)[number][0], string>>;

function fieldsOf(model: string | undefined): PriceFields {
  const { input = "", cacheRead = "", output = "" } = (model !== undefined && storedPrices()[model]) || {};
  return { input: String(input), cacheRead: String(cacheRead), output: String(output) };
}

/** Undefined while nobody has said what both input and output cost. */
function priceOf({ input, cacheRead, output }: PriceFields): Price | undefined {
  if (input === "" || output === "") return undefined;
  return { input: Number(input), output: Number(output), ...(cacheRead !== "" && { cacheRead: Number(cacheRead) }) };
}

export function Settings({ endpoint, onClose, onRoute }: Props): ReactElement {
  const dialog = useRef<HTMLDialogElement>(null);
  const [values, setValues] = useState(endpoint.remembered ?? NOTHING);
  const [price, setPrice] = useState(() => fieldsOf(endpoint.model));
  const [isConnecting, setConnecting] = useState(false);
  const [problem, setProblem] = useState<string>();
  useEffect(() => dialog.current?.showModal(), []);

  const set = (patch: Partial<Endpoint>): void => setValues({ ...values, ...patch });

  async function connect(event: FormEvent): Promise<void> {
    event.preventDefault();
    setConnecting(true);
    try {
      const model = await endpoint.connect({
        ...values,
        baseURL: values.baseURL.trim().replace(/\/+$/, ""),
        model: values.model.trim(),
      });
      storePrice(model, priceOf(price));
      onRoute("endpoint");
      onClose();
    } catch (error) {
      setProblem(problemOf(error));
      setConnecting(false);
    }
  }

  function useScript(): void {
    onRoute("scripted");
    endpoint.disconnect();
    onClose();
  }

  return (
    <dialog ref={dialog} className="settings" aria-labelledby="settings-title" onClose={onClose}>
      <form onSubmit={(event) => void connect(event)}>
        <h2 id="settings-title">Connect a model</h2>
        <p className="hint">Any endpoint that speaks OpenAI&rsquo;s API and lets a page call it (CORS).</p>
        <fieldset>
          <legend>API</legend>
          {(["chat", "responses"] as const).map((api) => (
            <label key={api} className="choice">
              <input type="radio" name="api" checked={values.api === api} onChange={() => set({ api })} />
              {api === "chat" ? "Chat Completions" : "Responses"}
            </label>
          ))}
        </fieldset>
        <label>
          Base URL
          <input
            type="url"
            required
            value={values.baseURL}
            onChange={(event) => set({ baseURL: event.target.value })}
          />
        </label>
        <label>
          Model
          <input
            required
            value={values.model}
            autoComplete="off"
            spellCheck={false}
            placeholder="The provider's name for it"
            onChange={(event) => set({ model: event.target.value })}
          />
        </label>
        <label>
          API key
          <input
            type="password"
            value={values.apiKey}
            autoComplete="off"
            placeholder="Empty for a server without one"
            onChange={(event) => set({ apiKey: event.target.value })}
          />
        </label>
        <p className="hint">
          The key stays in this tab&rsquo;s session storage until the tab is closed, and goes to the base URL only. A
          page can read what it stores: use a key that you can revoke.
        </p>
        <fieldset className="prices">
          <legend>Price of a million tokens, if you want to see what a chat costs</legend>
          {PRICED.map(([kind, label]) => (
            <label key={kind}>
              {label}
              <input
                type="number"
                min="0"
                step="any"
                inputMode="decimal"
                placeholder="$"
                value={price[kind]}
                onChange={(event) => setPrice({ ...price, [kind]: event.target.value })}
              />
            </label>
          ))}
        </fieldset>
        {problem !== undefined && (
          <p className="problem-line" role="alert">
            {problem}
          </p>
        )}
        <div className="buttons">
          <button type="submit" className="primary" disabled={isConnecting}>
            {isConnecting ? "Loading the client" : "Connect"}
          </button>
          {endpoint.connected && (
            <button type="button" onClick={useScript}>
              Back to the scripted demo
            </button>
          )}
          <button type="button" className="quiet" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
        </div>
      </form>
    </dialog>
  );
}
