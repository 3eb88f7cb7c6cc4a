import { Redis, type RedisConfigNodejs } from "@upstash/redis";
import { keyOf } from "../../evidence/sim/field.ts";
import { type LocalEndpoint, start } from "../../local/src/index.ts";
import {
  type Endpoint,
  httpEndpoint,
  Redlock,
  type RedlockOptions,
  upstashEndpoint,
} from "../../src/index.ts";
import { patient } from "./beyond-tests.ts";
import { openLockServers } from "./lock-servers.ts";
import { openRealEndpoints } from "./redis-servers.ts";
import type { Setting } from "./sets.ts";
import { openSockets, type SocketClient, type Sockets } from "./sockets.ts";
import { until } from "./until.ts";

/** The endpoints of a test, and how the library reaches them. */
export interface EndpointSet extends Setting {
  /** The library's own transport, a client of `@upstash/redis`, or one with a socket, which needs the engine `redis`. */
  readonly via: "fetch" | "sdk" | SocketClient;
}

/** Local endpoints with helpers for tests. */
export interface Local {
  readonly set: EndpointSet;
  readonly endpoints: readonly LocalEndpoint[];
  /** ⌊n/2⌋ + 1. */
  readonly quorum: number;
  /** A client for these endpoints. */
  redlock(options?: Omit<RedlockOptions, "endpoints">): Redlock;
  /** The endpoints as {@link Local.redlock} uses them. */
  connect(): Endpoint[];
  /** The value of the resource's key by endpoint; null where it does not exist. */
  values(resource: string): Promise<(string | null)[]>;
  /** On how many endpoints the resource's key exists. */
  holders(resource: string): Promise<number>;
  /** Resolves when no endpoint has the resource: a release waits for a quorum, and for the others only for a while. */
  gone(resource: string): Promise<void>;
  /** ms until the resource's key expires, by endpoint; −2 where it does not exist. */
  expiries(resource: string): Promise<number[]>;
  /**
   * Deletes the resource's key on the endpoints of these indices, default all, as an operator would. It waits until the key
   * is there: an acquisition needs only a quorum, and a slower request would store it again.
   */
  remove(resource: string, indices?: readonly number[]): Promise<void>;
  /** HTTP requests that arrived since the last reset. */
  requests(): number;
  /** Empties the databases, removes all faults, closes the clients with sockets, and counts from zero. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

let names = 0;

/** A resource that no other test of this process uses, so that late requests of one test cannot disturb the next. */
export function newResource(name = "resource"): string {
  names += 1;
  return `${name}-${names}`;
}

/** An `@upstash/redis` client of a local endpoint. */
export function sdkClient(
  { url, token }: Pick<LocalEndpoint, "url" | "token">,
  options: Partial<RedisConfigNodejs> = {},
): Redis {
  return new Redis({ url, token, enableTelemetry: false, retry: { retries: 0 }, ...options });
}

/**
 * Starts the endpoints of a set, with empty databases; they refuse what only other dialects have. Default: three embedded
 * engines over HTTP, dialect `redis`.
 */
export async function openLocal(given: Partial<EndpointSet> = {}): Promise<Local> {
  const set: EndpointSet = { engine: "embedded", count: 3, dialect: "redis", via: "fetch", ...given };
  const { engine, count, dialect } = set;
  const local = await (engine === "redis"
    ? openRealEndpoints(count, dialect)
    : engine === "durable"
      ? openLockServers(count)
      : start({ engine, count, dialect }));
  const { endpoints } = local;
  const sockets =
    set.via === "fetch" || set.via === "sdk" ? undefined : await openSockets(endpoints, set.via);
  const reset = () => {
    sockets?.reset();
    return resetAll(endpoints);
  };
  await reset();
  return {
    set,
    endpoints,
    quorum: Math.floor(count / 2) + 1,
    ...clientsOf(endpoints, set, sockets),
    ...keysOf(endpoints),
    requests: () => endpoints.reduce((sum, { log }) => sum + log.requests, 0),
    reset,
    async close() {
      sockets?.close();
      await local.close();
    },
  };
}

async function resetAll(endpoints: readonly LocalEndpoint[]): Promise<void> {
  for (const { faults, log } of endpoints) {
    faults.clear();
    log.reset();
  }
  await Promise.all(endpoints.map((endpoint) => endpoint.execute(["FLUSHALL"])));
}

function clientsOf(
  endpoints: readonly LocalEndpoint[],
  { via, dialect }: EndpointSet,
  sockets: Sockets | undefined,
): Pick<Local, "connect" | "redlock"> {
  const connect = () =>
    sockets?.connect(dialect) ??
    endpoints.map(({ url, token, name }) =>
      via === "sdk"
        ? upstashEndpoint(sdkClient({ url, token }), { name, dialect })
        : httpEndpoint({ url, token, name, dialect }),
    );
  return {
    connect,
    redlock: (options = {}) => new Redlock({ ...patient, ...options, endpoints: connect() }),
  };
}

function keysOf(
  endpoints: readonly LocalEndpoint[],
): Pick<Local, "values" | "holders" | "gone" | "expiries" | "remove"> {
  const onEach = <Reply>(command: string, resource: string) =>
    Promise.all(
      endpoints.map((endpoint) => endpoint.execute([command, keyOf("lock", resource)]) as Promise<Reply>),
    );
  const values = (resource: string) => onEach<string | null>("GET", resource);
  return {
    values,
    async holders(resource) {
      return (await values(resource)).filter((value) => value !== null).length;
    },
    async gone(resource) {
      await until(async () => (await values(resource)).every((value) => value === null), "an end everywhere");
    },
    expiries: (resource) => onEach<number>("PTTL", resource),
    async remove(resource, indices = [...endpoints.keys()]) {
      for (const index of indices) {
        const command = ["DEL", keyOf("lock", resource)];
        await until(async () => (await endpoints[index]!.execute(command)) === 1, "the key");
      }
    },
  };
}
