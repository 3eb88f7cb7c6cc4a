import { memoryEndpoint } from "../../local/src/memory/index.ts";
import type { Dialect, Endpoint } from "../../src/endpoints/endpoint.ts";
import { httpEndpoint } from "../../src/endpoints/http.ts";
import { hashKey, type KeyKind } from "../../src/idempotency/digest.ts";
import { Idempotency, type IdempotencyOptions } from "../../src/idempotency/index.ts";
import { keyOf } from "../../src/redis/keys.ts";
import { Redlock, type RedlockOptions } from "../../src/redlock.ts";
import { patient } from "./beyond-tests.ts";
import { type Link, link } from "./link.ts";
import { openLockServers } from "./lock-servers.ts";
import { openRealEndpoints } from "./redis-servers.ts";
import { isUsual, type Setting, setsOf } from "./sets.ts";
import { until } from "./until.ts";

// Sets of endpoints for contract tests: embedded engines in this process, and real redis-servers over HTTP.

/** The open endpoints that the clients of one store share. */
export interface OpenStore {
  readonly endpoints: readonly Endpoint[];
  /** Executes a command on one endpoint, without network and log. */
  execute(index: number, command: readonly (string | number)[]): Promise<unknown>;
  close(): Promise<void>;
}

/** A set of `count` independent endpoints, which a test opens. */
export interface Store extends Setting {
  readonly title: string;
  open(): Promise<OpenStore>;
}

/**
 * Sets of `counts` endpoints, on every engine of this machine: in `npm test` only one endpoint and three, and not each
 * combination of engine, count and dialect, in `npm run test:long` the others; docs/internals/evidence.md tells why.
 *
 * @param real counts for real servers, if more would show nothing new. Default: `counts`
 */
export function storesOf(counts: readonly number[], real: readonly number[] = counts): Store[] {
  return setsOf(counts, real, undefined, (count) => !isUsual(count)).map(storeOf);
}

export function storeOf({ engine, count, dialect }: Setting): Store {
  return {
    title: `${engine} engine, ${count} × ${dialect}`,
    engine,
    count,
    dialect,
    open: () => (engine === "embedded" ? openMemory(count, dialect) : openServers(engine, count, dialect)),
  };
}

async function openMemory(count: number, dialect: Dialect): Promise<OpenStore> {
  const endpoints = Array.from({ length: count }, (_, index) =>
    memoryEndpoint({ name: `endpoint-${index + 1}`, dialect }),
  );
  return {
    endpoints,
    execute: async (index, command) => endpoints[index]!.engine.execute(command),
    close: async () => undefined,
  };
}

async function openServers(engine: "redis" | "durable", count: number, dialect: Dialect): Promise<OpenStore> {
  const local = await (engine === "redis" ? openRealEndpoints(count, dialect) : openLockServers(count));
  return {
    endpoints: local.endpoints.map(({ url, token, name }) => httpEndpoint({ url, token, name, dialect })),
    execute: (index, command) => local.endpoints[index]!.execute(command),
    close: local.close,
  };
}

/** One client with its own links to all endpoints of a store. */
export interface Client {
  readonly redlock: Redlock;
  readonly idempotency: Idempotency;
  readonly links: readonly Link[];
}

/** Creates a client, {@link patient} unless its options say otherwise. `options` are those of `Idempotency`. */
export function clientOf(
  store: OpenStore,
  options: IdempotencyOptions = {},
  redlockOptions: Omit<RedlockOptions, "endpoints"> = {},
): Client {
  const links = store.endpoints.map(link);
  const redlock = new Redlock({ ...patient, ...redlockOptions, endpoints: links });
  return { redlock, idempotency: new Idempotency(redlock, options), links };
}

/** The record of an idempotency key by endpoint; null where there is none. */
export async function recordsOf(
  store: OpenStore,
  key: string,
  scope: string | readonly string[] = [],
  kind: KeyKind = "run",
  ...handler: [name?: string]
): Promise<(string | null)[]> {
  const name = await recordName(key, scope, kind, ...handler);
  const values = await Promise.all(store.endpoints.map((_, index) => store.execute(index, ["GET", name])));
  return values as (string | null)[];
}

/**
 * Waits until all requests are answered. A handler starts as soon as a quorum has granted its claim, while requests to
 * the other endpoints may still be under way.
 */
export async function allArrived(links: readonly Link[]): Promise<void> {
  await until(() => links.every(({ pending }) => pending === 0));
}

/** The ttl of a record in ms, by endpoint; −2: it does not exist, −1: it does not expire. */
export async function ttlsOf(store: OpenStore, key: string): Promise<number[]> {
  const name = await recordName(key);
  const values = await Promise.all(store.endpoints.map((_, index) => store.execute(index, ["PTTL", name])));
  return values as number[];
}

/** The Redis key of an idempotency key's record. */
export async function recordName(
  key: string,
  scope: string | readonly string[] = [],
  kind: KeyKind = "run",
  ...handler: [name?: string]
): Promise<string> {
  return keyOf("redlock", "idem", await hashKey(scope, key, kind, ...handler));
}
