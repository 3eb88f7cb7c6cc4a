// The locks of this package and of others behind one interface, so that one program measures all of them.
//
// Each has its own defaults, except where it would give up: then it may try again as often as it needs.
import { Redlock } from "../../dist/index.js";
import { ioredisEndpoint, nodeRedisEndpoint } from "../../dist/sockets/index.js";
import { pubSub } from "../../dist/wake-up/index.js";
import { peers } from "./installed.mjs";

const ttl = 10_000;
const forEver = 1_000_000;

/**
 * A client of one of them, for one resource. `acquire` resolves with the function that releases.
 *
 * @typedef {{ acquire: () => Promise<() => Promise<unknown>>, ready: Promise<unknown>, close: () => void }} Client
 *
 * @typedef {{ url: string, token: string, redisUrl: string }} Server
 *
 * @typedef {object} Contender
 * @property {string} name
 * @property {string} of the package
 * @property {"http" | "sockets"} transport
 * @property {number[]} counts numbers of servers that it can use
 * @property {(servers: Server[], resource: string) => Client} open
 */

/** @type {Contender[]} */
export const locks = [
  {
    name: "redlock-edge",
    of: "redlock-edge",
    transport: "http",
    counts: [1, 3],
    open: (servers, resource) => openOurs(servers, resource, {}),
  },
  {
    name: "redlock-edge, wakeUp",
    of: "redlock-edge",
    transport: "http",
    counts: [1, 3],
    open: (servers, resource) => openOurs(servers, resource, { wakeUp: pubSub }),
  },
  {
    name: "redlock-edge, ioredis",
    of: "redlock-edge",
    transport: "sockets",
    counts: [1, 3],
    open: (servers, resource) => openOursOverIoredis(servers, resource, {}),
  },
  {
    name: "redlock-edge, ioredis, wakeUp",
    of: "redlock-edge",
    transport: "sockets",
    counts: [1, 3],
    open: (servers, resource) => openOursOverIoredis(servers, resource, { wakeUp: pubSub }),
  },
  {
    name: "redlock-edge, node-redis",
    of: "redlock-edge",
    transport: "sockets",
    counts: [1, 3],
    open(servers, resource) {
      const clients = servers.map(({ redisUrl }) => peers.createClient({ url: redisUrl }));
      return {
        ...ours(
          clients.map((client) => nodeRedisEndpoint(client)),
          resource,
          {},
        ),
        ready: Promise.all(clients.map((client) => client.on("error", console.error).connect())),
        close: () => clients.map((client) => client.destroy()),
      };
    },
  },
  {
    name: "@upstash/lock",
    of: "@upstash/lock",
    transport: "http",
    counts: [1],
    open([{ url, token }], resource) {
      const redis = new peers.UpstashRedis({ url, token, enableTelemetry: false });
      return {
        ready: Promise.resolve(),
        close: () => undefined,
        async acquire() {
          const lock = new peers.UpstashLock({ id: resource, redis, lease: ttl });
          const acquired = await lock.acquire({ lease: ttl, retry: { attempts: forEver, delay: 100 } });
          if (!acquired) throw new Error("not acquired");
          return () => lock.release();
        },
      };
    },
  },
  {
    name: "redlock",
    of: "redlock",
    transport: "sockets",
    counts: [1, 3],
    open: (servers, resource) =>
      overSockets(servers, (clients) => {
        const redlock = new peers.Redlock(clients, { retryCount: forEver });
        return async () => {
          const lock = await redlock.acquire([resource], ttl);
          return () => lock.release();
        };
      }),
  },
  {
    name: "redis-semaphore",
    of: "redis-semaphore",
    transport: "sockets",
    counts: [1, 3],
    open: (servers, resource) =>
      overSockets(servers, (clients) => async () => {
        const options = { lockTimeout: ttl, acquireTimeout: forEver };
        const mutex =
          clients.length === 1
            ? new peers.Mutex(clients[0], resource, options)
            : new peers.RedlockMutex(clients, resource, options);
        await mutex.acquire();
        return () => mutex.release();
      }),
  },
  {
    name: "redlock-universal",
    of: "redlock-universal",
    transport: "sockets",
    counts: [1, 3],
    open: (servers, resource) =>
      overSockets(servers, (clients) => {
        const adapters = clients.map((client) => new peers.IoredisAdapter(client));
        const options = { key: resource, ttl, retryAttempts: forEver };
        const lock =
          adapters.length === 1
            ? peers.createLock({ ...options, adapter: adapters[0] })
            : peers.createRedlock({ ...options, adapters });
        return async () => {
          const handle = await lock.acquire();
          return () => lock.release(handle);
        };
      }),
  },
];

function openOurs(servers, resource, options) {
  return ours(
    servers.map(({ url, token }) => ({ url, token, dialect: "upstash" })),
    resource,
    options,
  );
}

function openOursOverIoredis(servers, resource, options) {
  const make = (clients) =>
    ours(
      clients.map((client) => ioredisEndpoint(client)),
      resource,
      options,
    ).acquire;
  return overSockets(servers, make, { maxRetriesPerRequest: 0 });
}

/** @returns {Client} */
function ours(endpoints, resource, options) {
  const redlock = new Redlock({ endpoints, ttl, ...options });
  return {
    ready: Promise.resolve(),
    close: () => undefined,
    async acquire() {
      const lock = await redlock.acquire(resource, { wait: forEver });
      return () => lock.release();
    },
  };
}

/** A client with a connection of its own to each server. */
function overSockets(servers, make, options = {}) {
  const clients = servers.map(({ redisUrl }) => new peers.Redis(redisUrl, options));
  return {
    ready: Promise.all(clients.map((client) => client.ping())),
    close: () => clients.map((client) => client.disconnect()),
    acquire: make(clients),
  };
}
