import { createRequire } from "node:module";
import { join } from "node:path";
import type { Dialect, Endpoint } from "../index.ts";
import { ioredisEndpoint, nodeRedisEndpoint } from "../sockets/index.ts";
import { UsageError } from "./environment.ts";
import type { Values } from "./options.ts";

// Endpoints of the Redis protocol, by the package that the user's project has. This package has no Redis client of its own.

/** An endpoint that is open, or says why it cannot be. */
export interface Socket {
  /** @throws Error if the URL or the token cannot be used */
  open(): Endpoint;
  /** Of a Cluster: every server that has keys of its own. */
  nodes?(): Promise<readonly Endpoint[]>;
  close?(): void;
}

/** Opens an endpoint with the client of a package. The client connects by itself. If it cannot connect, the commands fail. */
type Driver = (url: string, isCluster: boolean, dialect: Dialect | undefined) => Socket;

type Ioredis = typeof import("ioredis");
type NodeRedis = typeof import("redis");

const ignore = () => undefined;

function openIoredis({ Redis, Cluster }: Ioredis, ...[url, isCluster, dialect]: Parameters<Driver>): Socket {
  const { hasTls, ...credentials } = credentialsOf(url);
  const redisOptions = { ...credentials, ...(hasTls && { tls: {} }) };
  // A node of a managed Cluster has a certificate for its name, so names are not resolved before.
  const names = {
    dnsLookup: (address: string, found: (error: null, name: string) => void) => found(null, address),
  };
  const cluster = isCluster && new Cluster([url], { redisOptions, ...(hasTls && names) });
  const client = cluster || new Redis(url, { maxRetriesPerRequest: 0 });
  client.on("error", ignore);
  const endpoint = ioredisEndpoint(client, { dialect });
  const socket = { open: () => endpoint, close: () => client.disconnect() };
  if (!cluster) return socket;
  const nodes = async () => cluster.nodes("master").map((node) => ioredisEndpoint(node, { dialect }));
  return { ...socket, nodes };
}

function openNodeRedis(
  { createClient, createCluster }: NodeRedis,
  ...[url, isCluster, dialect]: Parameters<Driver>
): Socket {
  const { hasTls, ...credentials } = credentialsOf(url);
  const defaults = { ...credentials, ...(hasTls && { socket: { tls: true } as const }) };
  const cluster = isCluster && createCluster({ rootNodes: [{ url }], defaults });
  const client = cluster || createClient({ url });
  // A Cluster client does not know its nodes yet.
  const endpoint = nodeRedisEndpoint(client, { dialect, ...(cluster && { name: new URL(url).host }) });
  client.on("error", ignore);
  client.connect().catch(ignore);
  const socket = { open: () => endpoint, close: () => client.destroy() };
  if (!cluster) return socket;
  const nodes = async () => {
    const clients = await Promise.all(cluster.masters.map((node) => cluster.nodeClient(node)));
    return clients.map((each) => nodeRedisEndpoint(each, { dialect }));
  };
  return { ...socket, nodes };
}

/** The user and password of a URL, as the other nodes of a Cluster need them. */
function credentialsOf(url: string) {
  const { protocol, username, password } = new URL(url);
  const [user, pass] = [username, password].map(decodeURIComponent);
  return { hasTls: protocol === "rediss:", ...(user && { username: user }), ...(pass && { password: pass }) };
}

const drivers = { ioredis: openIoredis, redis: openNodeRedis };

/**
 * The Redis client of the user's project, or of the packages that `npx -p` installed beside this one.
 *
 * @throws UsageError if there is none
 */
export function driverIn(folder: string): Driver {
  for (const place of [join(folder, "package.json"), import.meta.url]) {
    for (const [name, open] of Object.entries(drivers)) {
      try {
        const module = createRequire(place)(name);
        return (...target) => open(module, ...target);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "MODULE_NOT_FOUND") throw error;
      }
    }
  }
  throw new UsageError(
    `REDIS_URL needs a Redis client in ${folder}: npm install ioredis, or npm install redis. Without a project: npx -p redlock-edge -p ioredis redlock-edge <command>`,
  );
}

/** Opens an endpoint. Asks the server whether it is a node of a Cluster: only a Cluster client finds all keys then. */
export async function openSocket(driver: Driver, url: string, { dialect, timeout }: Values): Promise<Socket> {
  const ask = (socket: Socket, ...words: string[]) => socket.open().send(words, AbortSignal.timeout(timeout));
  try {
    if (!/^rediss?:\/\//.test(url) || !URL.canParse(url)) {
      throw new TypeError("the URL must be redis://host:port, or rediss:// for TLS");
    }
    const single = driver(url, false, dialect);
    // It is down, or the user may not ask: the next command says so.
    const said = await ask(single, "INFO", "cluster").catch(() => "");
    if (!String(said).includes("cluster_enabled:1")) return single;
    single.close?.();
    const cluster = driver(url, true, dialect);
    // It knows its nodes once it is connected.
    return { ...cluster, nodes: () => ask(cluster, "PING").then(() => cluster.nodes!()) };
  } catch (error) {
    // Not before it is used, because doctor reports it.
    const open = () => {
      throw error;
    };
    return { open };
  }
}
