import { Redis, type RedisConfigNodejs } from "@upstash/redis";
import { afterAll, beforeAll, describe } from "vitest";
import { type DevEndpoint, startEndpoints } from "../../src/dev/index.ts";
import {
  type Dialect,
  type Endpoint,
  httpEndpoint,
  Redlock,
  type RedlockEvent,
  type RedlockOptions,
  upstashEndpoint,
} from "../../src/index.ts";
import { keyOf } from "../../src/redis/keys.ts";
import { registerScript } from "../../src/redis/register-script.ts";
import { upstashFlag } from "../../src/redis/script.ts";

/** What stands behind a test, and how the library talks to it. */
export interface EndpointSet {
  readonly engine: "redis" | "embedded";
  readonly count: number;
  readonly dialect: Dialect;
  /** The library's own transport, or a client of `@upstash/redis`. */
  readonly via: "fetch" | "sdk";
}

/** Local endpoints with what tests ask of them. */
export interface Local {
  readonly set: EndpointSet;
  readonly endpoints: readonly DevEndpoint[];
  /** ⌊n/2⌋ + 1. */
  readonly quorum: number;
  /** A client for these endpoints. */
  redlock(options?: Omit<RedlockOptions, "endpoints">): Redlock;
  /** A client that keeps its events. */
  observed(options?: Omit<RedlockOptions, "endpoints">): { redlock: Redlock; events: RedlockEvent[] };
  /** The endpoints as {@link local.redlock} uses them. */
  connect(): Endpoint[];
  /** What stands at the resource, by endpoint; null where nothing does. */
  values(resource: string): Promise<(string | null)[]>;
  /** On how many endpoints something stands at the resource. */
  holders(resource: string): Promise<number>;
  /** ms until the resource's key expires, by endpoint; −2 where there is none. */
  expiries(resource: string): Promise<number[]>;
  /** Puts `value` there on the endpoints of these indices, as somebody else would. */
  put(resource: string, indices: readonly number[], value?: string, ttl?: number): Promise<void>;
  /** Deletes the resource's key, as an operator would, on the endpoints of these indices. */
  remove(resource: string, indices?: readonly number[]): Promise<void>;
  /** HTTP requests that arrived since the last reset. */
  requests(): number;
  /** Names of the commands executed since the last reset. */
  commands(): string[];
  /** Empties the databases, ends all faults, counts from zero; the library's scripts are known. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

/**
 * A machine that is busy with other tests must not look like an endpoint that does not answer: tests that want
 * timeouts say so.
 */
export const patience = 5_000;

let names = 0;

/** A resource that no other test uses: what is late for one cannot disturb the next. */
export function newResource(name = "resource"): string {
  names += 1;
  return `${name}-${names}`;
}

/** Says what a set is, for titles of tests. */
export function describeSet({ engine, count, dialect, via }: EndpointSet): string {
  return `${count} × ${engine}, ${dialect} dialect, ${via === "sdk" ? "@upstash/redis" : "fetch"}`;
}

/**
 * Runs a contract for several sets at the same time; the tests of one set share its endpoints and take turns.
 * All are opened beforehand: the start of one must not take from another the time that its ttls count.
 */
export function inTurns(sets: readonly EndpointSet[], contract: (open: () => Promise<Local>) => void): void {
  const opened = new Map<EndpointSet, Local>();
  beforeAll(async () => {
    for (const set of sets) opened.set(set, await openLocal(set));
  });
  afterAll(() => Promise.all([...opened.values()].map((local) => local.close())));
  describe.concurrent.each(sets.map((set) => [describeSet(set), set] as const))("%s", (_, set) => {
    describe.sequential("in turn", () => contract(async () => opened.get(set)!));
  });
}

/** An `@upstash/redis` client of a local endpoint. */
export function sdkClient(
  { url, token }: Pick<DevEndpoint, "url" | "token">,
  options: Partial<RedisConfigNodejs> = {},
): Redis {
  return new Redis({ url, token, enableTelemetry: false, retry: { retries: 0 }, ...options });
}

/** Starts the endpoints of a set. */
export async function openLocal(given: Partial<EndpointSet> = {}): Promise<Local> {
  const set: EndpointSet = { engine: "embedded", count: 3, dialect: "redis", via: "fetch", ...given };
  const { engine, count, dialect, via } = set;
  const local = await startEndpoints({ engine, count });
  const { endpoints } = local;
  const each = <Value>(ask: (endpoint: DevEndpoint) => Promise<Value>) => Promise.all(endpoints.map(ask));
  const keyFor = (resource: string) => keyOf("redlock", "lock", resource);

  function connect(): Endpoint[] {
    return endpoints.map(({ url, token, name }) =>
      via === "sdk"
        ? upstashEndpoint(sdkClient({ url, token }), { name, dialect })
        : httpEndpoint({ url, token, name, dialect }),
    );
  }

  async function reset(): Promise<void> {
    await each(async ({ faults, log }) => {
      faults.clear();
      log.reset();
    });
    await each(async (endpoint) => {
      await endpoint.execute(["FLUSHALL"]);
      for (const flag of ["", upstashFlag]) {
        await endpoint.execute(["SCRIPT", "LOAD", flag + registerScript.source]);
      }
    });
  }

  const values = (resource: string) =>
    each(async (endpoint) => (await endpoint.execute(["GET", keyFor(resource)])) as string | null);

  await reset();
  return {
    set,
    endpoints,
    quorum: Math.floor(count / 2) + 1,
    connect,
    redlock: (options = {}) => new Redlock({ timeout: patience, ...options, endpoints: connect() }),
    observed(options = {}) {
      const events: RedlockEvent[] = [];
      const onEvent = (event: RedlockEvent) => events.push(event);
      return {
        events,
        redlock: new Redlock({ timeout: patience, ...options, endpoints: connect(), onEvent }),
      };
    },
    values,
    async holders(resource) {
      return (await values(resource)).filter((value) => value !== null).length;
    },
    expiries: (resource) =>
      each(async (endpoint) => (await endpoint.execute(["PTTL", keyFor(resource)])) as number),
    async put(resource, indices, value = "somebody-else", ttl = 60_000) {
      for (const index of indices) {
        await endpoints[index]!.execute(["SET", keyFor(resource), value, "PX", ttl]);
      }
    },
    async remove(resource, indices = [...endpoints.keys()]) {
      for (const index of indices) await endpoints[index]!.execute(["DEL", keyFor(resource)]);
    },
    requests: () => endpoints.reduce((sum, { log }) => sum + log.requests, 0),
    commands: () => endpoints.flatMap(({ log }) => log.entries.map(({ command }) => command[0]!)),
    reset,
    close: () => local.close(),
  };
}
