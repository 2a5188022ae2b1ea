/** A host and the handles that are connected to it, over real message ports. */
import { createHarness, type AgentHandle, type HarnessOptions } from "turnloop";
import {
  connectAgent,
  messagePort,
  serveAgents,
  type AgentServer,
  type ConnectAgentOptions,
  type Connection,
  type Grant,
  type Limits,
} from "turnloop/transport";

export const ANN: Grant = { identity: "ann", rights: ["drive", "answer"] };

export interface Served {
  readonly harness: ReturnType<typeof createHarness>;
  readonly server: AgentServer;
  /** The connections of the clients, in the order in which they were made. */
  readonly connections: Connection[];
  /** A new connection for a client, accepted. */
  dial(session?: string, grant?: Grant): Connection;
  connect(options?: Partial<ConnectAgentOptions> & { readonly grant?: Grant }): Promise<AgentHandle>;
}

export function serve(options: HarnessOptions & { readonly limits?: Limits } = {}): Served {
  const { limits, ...harnessOptions } = options;
  const harness = createHarness({ onDiagnostic() {}, ...harnessOptions });
  const server = serveAgents(harness, limits ? { limits } : {});
  const connections: Connection[] = [];
  const served: Served = {
    harness,
    server,
    connections,
    dial(session = "s", grant = ANN) {
      const { port1, port2 } = new MessageChannel();
      server.accept(messagePort(port1), grant, session);
      const connection = messagePort(port2);
      connections.push(connection);
      return connection;
    },
    connect: ({ grant, session = "s", ...rest } = {}) =>
      connectAgent({ connect: () => served.dial(session, grant), session, ...rest }),
  };
  return served;
}

/** A client that speaks frames, as no well-behaved one would. */
export interface RawClient {
  readonly frames: readonly Frame[];
  say(frame: unknown): void;
  hello(more?: object): void;
  /** The first frame of the type, come already or still to come. */
  got(type: string, fits?: (frame: Frame) => boolean): Promise<Frame>;
  readonly closed: Promise<unknown>;
}

export interface Frame {
  readonly type: string;
  readonly [key: string]: any; // oxlint-disable-line typescript/no-explicit-any -- whatever the host says
}

export function rawClient(connection: Connection): RawClient {
  const frames: Frame[] = [];
  let lookers: (() => void)[] = [];
  connection.onMessage((text) => {
    frames.push(JSON.parse(text) as Frame);
    for (const look of lookers) look();
  });
  const say = (frame: unknown): void => connection.send(typeof frame === "string" ? frame : JSON.stringify(frame));
  return {
    frames,
    say,
    hello: (more = {}) => say({ type: "hello", version: 1, session: "s", client: "raw", ...more }),
    got: (type, fits = () => true) =>
      new Promise((resolve) => {
        const look = (): void => {
          const found = frames.find((frame) => frame.type === type && fits(frame));
          if (!found) return;
          lookers = lookers.filter((other) => other !== look);
          resolve(found);
        };
        lookers = [...lookers, look];
        look();
      }),
    closed: new Promise((resolve) => void connection.onClose(resolve)),
  };
}
