/** The endpoint that the page talks to instead of the scripted model, if any. */
import { useEffect, useState } from "react";
import { connect, storedEndpoint, storeEndpoint, type Endpoint } from "./endpoint.ts";
import { setEndpointModel } from "./harness.ts";

export interface EndpointState {
  /** In use. */
  readonly connected: Endpoint | undefined;
  /** What the settings begin with. */
  readonly remembered: Endpoint | undefined;
  /** Rejects when the provider's client cannot be loaded or made. */
  connect(endpoint: Endpoint): Promise<void>;
  disconnect(): void;
}

export function useEndpoint(): EndpointState {
  const [remembered, setRemembered] = useState(storedEndpoint);
  const [connected, setConnected] = useState<Endpoint>();

  const adopt = (endpoint: Endpoint): Promise<void> =>
    connect(endpoint).then((model) => {
      setEndpointModel(model);
      storeEndpoint(endpoint);
      setRemembered(endpoint);
      setConnected(endpoint);
    });

  useEffect(() => {
    const stored = storedEndpoint();
    // A failure shows when the visitor connects by hand; until then the script answers.
    if (stored) adopt(stored).catch(() => {});
  }, []);

  return {
    connected,
    remembered,
    connect: adopt,
    disconnect() {
      storeEndpoint(undefined);
      setRemembered(undefined);
      setConnected(undefined);
    },
  };
}
