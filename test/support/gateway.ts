import type { LocalEndpoint } from "../../local/src/index.ts";
import { type Dialect, type Endpoint, httpEndpoint } from "../../src/index.ts";
import { type RawReply, type RawRequest, type RawServer, startRawServer } from "./raw-server.ts";

/** An HTTP proxy in front of an endpoint, in which a test can hold back requests and replies. */
export interface Gateway extends RawServer {
  /** Awaited before a request is executed. It is executed even if the client has given up by then. */
  before: (command: readonly string[]) => Promise<unknown> | undefined;
  /** Awaited before a reply is sent. `"lost"`: it is not sent, and the connection breaks. */
  after: (command: readonly string[]) => Promise<unknown> | "lost" | undefined;
  /** The commands whose execution has ended, in order. */
  readonly executed: readonly (readonly string[])[];
  /** A new endpoint of the library whose requests go through this gateway. */
  endpoint(dialect: Dialect): Endpoint;
}

/** How a gateway differs from its endpoint. */
export interface GatewayOptions {
  /** The path below which it serves the endpoint. Default: none. */
  readonly basePath?: string;
  /** Its own answer to a request. Undefined: it forwards this one. */
  readonly answer?: (request: RawRequest) => RawReply | undefined;
}

/** Starts a gateway. It forwards everything at once until `before` or `after` is set. */
export async function startGateway(
  target: LocalEndpoint,
  { basePath = "", answer = () => undefined }: GatewayOptions = {},
): Promise<Gateway> {
  const executed: (readonly string[])[] = [];
  const server = await startRawServer(async (request): Promise<RawReply> => {
    const { path, headers, body, command } = request;
    await gateway.before(command);
    const own = answer(request);
    if (own) return own;
    if (!path.startsWith(basePath)) return { status: 404, body: "no such route" };
    const { authorization = "", "upstash-encoding": encoding = "" } = headers as Record<string, string>;
    const headersOnward = { authorization, "upstash-encoding": encoding };
    let reply: { status: number; body: string };
    try {
      const url = target.url + path.slice(basePath.length);
      const response = await fetch(url, { method: "POST", headers: headersOnward, body });
      reply = { status: response.status, body: await response.text() };
    } catch {
      // The target is down, so the gateway behaves as if it were down, too.
      return "reset";
    }
    executed.push(command);
    const returned = gateway.after(command);
    if (returned === "lost") return "reset";
    await returned;
    return reply;
  });
  const gateway: Gateway = Object.assign(server, {
    before: () => undefined,
    after: () => undefined,
    executed,
    endpoint: (dialect: Dialect) =>
      httpEndpoint({ url: server.url, token: target.token, name: target.name, dialect }),
  });
  return gateway;
}
