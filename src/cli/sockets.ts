import { createRequire } from "node:module";
import { join } from "node:path";
import { type Dialect, type Endpoint, EndpointError } from "../index.ts";
import {
  type IoredisClient,
  ioredisEndpoint,
  type NodeRedisClient,
  nodeRedisEndpoint,
} from "../sockets/index.ts";
import { UsageError } from "./environment.ts";

// Endpoints of the Redis protocol, by the package that the user's project has. This package has no Redis client of its own.

/** An endpoint over a socket. */
export interface Socket {
  readonly endpoint: Endpoint;
  /** Every primary: one, except for a Cluster. Each has keys of its own. */
  nodes(): Promise<readonly Endpoint[]>;
  close(): void;
}

/** How a package makes clients. A client connects by itself, and says nothing of its errors: the commands fail. */
interface Driver {
  open(url: string, dialect: Dialect | undefined): Socket;
  openCluster(url: string, dialect: Dialect | undefined): Socket;
}

interface Client {
  on(event: "error", listener: () => void): unknown;
}

interface IoredisModule {
  readonly Redis: new (url: string, options: object) => IoredisClient & Client & { disconnect(): void };
  readonly Cluster: new (
    nodes: readonly string[],
    options: object,
  ) => IoredisClient & Client & { disconnect(): void; nodes(role: "master"): IoredisClient[] };
}

interface NodeRedisModule {
  createClient(options: object): NodeRedisClient & Client & { connect(): Promise<unknown>; destroy(): void };
  createCluster(options: object): NodeRedisClient &
    Client & {
      readonly masters: readonly object[];
      connect(): Promise<unknown>;
      destroy(): void;
      nodeClient(node: object): Promise<NodeRedisClient> | NodeRedisClient;
    };
}

const ignore = () => undefined;

/** The user and password of a URL, as the other nodes of a Cluster need them. */
function credentialsOf(url: string) {
  const { protocol, username, password } = new URL(url);
  const [user, pass] = [username, password].map(decodeURIComponent);
  return { hasTls: protocol === "rediss:", ...(user && { username: user }), ...(pass && { password: pass }) };
}

const drivers: Readonly<Record<string, (module: never) => Driver>> = {
  ioredis: ({ Redis, Cluster }: IoredisModule): Driver => ({
    open(url, dialect) {
      const client = new Redis(url, { maxRetriesPerRequest: 0 });
      client.on("error", ignore);
      const endpoint = ioredisEndpoint(client, { dialect });
      return { endpoint, nodes: async () => [endpoint], close: () => client.disconnect() };
    },
    openCluster(url, dialect) {
      const { hasTls, ...credentials } = credentialsOf(url);
      // A node of a managed Cluster has a certificate for its name, so names are not resolved before.
      const dnsLookup = (address: string, found: (error: null, address: string) => void) =>
        found(null, address);
      const redisOptions = { ...credentials, ...(hasTls && { tls: {} }) };
      const client = new Cluster([url], { redisOptions, ...(hasTls && { dnsLookup }) });
      client.on("error", ignore);
      const nodes = async () => client.nodes("master").map((node) => ioredisEndpoint(node, { dialect }));
      return { endpoint: ioredisEndpoint(client, { dialect }), nodes, close: () => client.disconnect() };
    },
  }),
  redis: ({ createClient, createCluster }: NodeRedisModule): Driver => ({
    open(url, dialect) {
      const client = createClient({ url });
      const endpoint = nodeRedisEndpoint(client, { dialect });
      client.on("error", ignore);
      client.connect().catch(ignore);
      return { endpoint, nodes: async () => [endpoint], close: () => client.destroy() };
    },
    openCluster(url, dialect) {
      const { hasTls, ...credentials } = credentialsOf(url);
      const defaults = { ...credentials, ...(hasTls && { socket: { tls: true } }) };
      const client = createCluster({ rootNodes: [{ url }], defaults });
      client.on("error", ignore);
      client.connect().catch(ignore);
      const nodes = async () => {
        const clients = await Promise.all(client.masters.map((node) => client.nodeClient(node)));
        return clients.map((each) => nodeRedisEndpoint(each, { dialect }));
      };
      return { endpoint: nodeRedisEndpoint(client, { dialect }), nodes, close: () => client.destroy() };
    },
  }),
};

/**
 * The Redis client of the user's project, or of the packages that `npx -p` installed beside this one.
 *
 * @throws UsageError if there is none
 */
export function driverIn(folder: string): Driver {
  for (const place of [join(folder, "package.json"), import.meta.url]) {
    for (const [name, driverOf] of Object.entries(drivers)) {
      try {
        return driverOf(createRequire(place)(name) as never);
      } catch (error) {
        const { code, message } = error as NodeJS.ErrnoException;
        // Of another module: the package is there, but is broken.
        if (code !== "MODULE_NOT_FOUND" || !message.includes(`'${name}'`)) throw error;
      }
    }
  }
  throw new UsageError(
    `REDIS_URL needs a Redis client in ${folder}: npm install ioredis, or npm install redis. Without a project: npx -p redlock-edge -p ioredis redlock-edge --help`,
  );
}

/** Opens an endpoint. Asks the server whether it is a node of a Cluster: its keys are then found by a Cluster client only. */
export async function openSocket(
  driver: Driver,
  url: string,
  { dialect, timeout }: { readonly dialect: Dialect | undefined; readonly timeout: number },
): Promise<Socket> {
  if (!/^rediss?:\/\//.test(url) || !URL.canParse(url)) {
    throw new TypeError("the URL must be redis://host:port, or rediss:// for TLS");
  }
  const socket = driver.open(url, dialect);
  const said = await socket.endpoint
    .send(["INFO", "cluster"], AbortSignal.timeout(timeout))
    .catch((error) => {
      // It is down, or the user may not ask: the next command says so.
      if (error instanceof EndpointError) return "";
      throw error;
    });
  if (!String(said).includes("cluster_enabled:1")) return socket;
  socket.close();
  const cluster = driver.openCluster(url, dialect);
  const nodes = async () => {
    // It knows its nodes once it is connected.
    await cluster.endpoint.send(["PING"], AbortSignal.timeout(timeout));
    return cluster.nodes();
  };
  return { ...cluster, nodes };
}
