import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis-5";
import { createClient, createClientPool } from "redis";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import type { LocalEndpoint } from "../../local/src/index.ts";
import { type RedisProcess, startRedis } from "../../local/src/rest/redis/process.ts";
import type { Dialect, Endpoint } from "../../src/index.ts";
import { ioredisEndpoint, nodeRedisEndpoint } from "../../src/sockets/index.ts";
import { startProxy } from "./proxy.mjs";
import { redisServer } from "./redis-servers.ts";

/** How a test reaches a server by a socket. `exact`: with a client that never sends a command twice. */
export type SocketClient = "ioredis" | "ioredis 5, exact" | "node-redis" | "node-redis pool";

/** What a proxy may be told: see `proxy.mjs`. */
export type TcpProxy = Awaited<ReturnType<typeof startProxy>>;

/** Clients with sockets, each connection through a proxy in front of its server. */
export interface Sockets {
  /** Endpoints over new clients, which are connecting. */
  connect(dialect: Dialect): Endpoint[];
  /** Closes all clients. */
  reset(): void;
  close(): void;
}

/** Opens a proxy in front of each server. */
export async function openSockets(endpoints: readonly LocalEndpoint[], via: SocketClient): Promise<Sockets> {
  const proxies = await Promise.all(
    endpoints.map(({ redisUrl }) => startProxy(Number(new URL(redisUrl!).port))),
  );
  const opened: (() => void)[] = [];
  const reset = () => {
    for (const close of opened.splice(0)) close();
  };
  return {
    connect: (dialect) =>
      proxies.map(({ port }, index) => {
        const { endpoint, close } = socketEndpoint(via, port, { name: endpoints[index]!.name, dialect });
        opened.push(close);
        return endpoint;
      }),
    reset,
    close() {
      reset();
      for (const proxy of proxies) proxy.close();
    },
  };
}

/** An endpoint over a new client of a server on loopback. */
export function socketEndpoint(
  via: SocketClient,
  port: number,
  options: Parameters<typeof ioredisEndpoint>[1] = {},
): { readonly endpoint: Endpoint; readonly close: () => void } {
  // Without a listener clients print errors of the connection, or throw them.
  const ignore = () => undefined;
  if (via.startsWith("node-redis")) {
    const connection = { socket: { host: "127.0.0.1", port, reconnectStrategy: 20 } };
    const client = via === "node-redis" ? createClient(connection) : createClientPool(connection);
    client.on("error", ignore).connect().catch(ignore);
    return { endpoint: nodeRedisEndpoint(client, options), close: () => client.destroy() };
  }
  const retryStrategy = () => 20;
  const client =
    via === "ioredis"
      ? new Redis(port, "127.0.0.1", { retryStrategy })
      : new Redis5(port, "127.0.0.1", { retryStrategy, maxRetriesPerRequest: 0 });
  client.on("error", ignore);
  return { endpoint: ioredisEndpoint(client, options), close: () => client.disconnect() };
}

/** A server of the tests of a file, reached by a new proxy in each test. */
export interface ProxiedServer {
  readonly server: RedisProcess;
  readonly proxy: TcpProxy;
  /** A client that the proxy does not stand in front of. */
  readonly direct: Redis;
  /** Called when the test ends. */
  readonly opened: (() => void)[];
  /** An endpoint through the proxy, of a new client. */
  open(via: SocketClient): Endpoint;
}

/** Starts the server, and empties it before each test. */
export function proxiedServer(): ProxiedServer {
  const opened: (() => void)[] = [];
  const at = {} as { -readonly [Name in keyof ProxiedServer]: ProxiedServer[Name] };
  beforeAll(async () => {
    const server = await startRedis(redisServer!, await mkdtemp(join(tmpdir(), "redlock-edge-sockets-")));
    Object.assign(at, { server, direct: new Redis(server.port) });
  });
  beforeEach(async () => {
    at.proxy = await startProxy(at.server.port);
    for (const command of [["FLUSHALL"], ["SCRIPT", "FLUSH"], ["CONFIG", "RESETSTAT"]])
      await at.direct.call(...(command as [string]));
  });
  afterEach(() => {
    for (const close of opened.splice(0)) close();
    at.proxy.close();
  });
  afterAll(async () => {
    at.direct.disconnect();
    await at.server.kill();
  });
  return Object.assign(at, {
    opened,
    open(via: SocketClient) {
      const { endpoint, close } = socketEndpoint(via, at.proxy.port);
      opened.push(close);
      return endpoint;
    },
  });
}
