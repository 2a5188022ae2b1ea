/** The endpoint that the page talks to instead of the scripted model, if any. */
import { useEffect, useState } from "react";
import { connect, storedEndpoint, storeEndpoint, type Endpoint } from "./endpoint.ts";
import { place } from "./place.ts";

export interface EndpointState {
  /** In use. */
  readonly connected: Endpoint | undefined;
  /** What the settings begin with. */
  readonly remembered: Endpoint | undefined;
  /** `Model.id` of the model that was connected last. */
  readonly model: string | undefined;
  /** Answers with its `Model.id`. Rejects when the provider's client cannot be loaded or made. */
  connect(endpoint: Endpoint): Promise<string>;
  disconnect(): void;
}

export function useEndpoint(): EndpointState {
  const [remembered, setRemembered] = useState(storedEndpoint);
  const [connected, setConnected] = useState<Endpoint>();

  const [name, setName] = useState<string>();

  const adopt = (endpoint: Endpoint): Promise<string> =>
    connect(endpoint).then((model) => {
      place.setModel?.(model);
      storeEndpoint(endpoint);
      setRemembered(endpoint);
      setConnected(endpoint);
      setName(model.id);
      return model.id;
    });

  useEffect(() => {
    const stored = storedEndpoint();
    // A failure shows when the visitor connects by hand; until then the script answers.
    if (stored) adopt(stored).catch(() => {});
  }, []);

  return {
    connected,
    remembered,
    model: name,
    connect: adopt,
    disconnect() {
      storeEndpoint(undefined);
      setRemembered(undefined);
      setConnected(undefined);
    },
  };
}
