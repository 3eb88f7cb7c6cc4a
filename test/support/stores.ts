import { memoryEndpoint } from "../../local/src/memory/index.ts";
import type { Endpoint } from "../../src/endpoints/endpoint.ts";
import { hashKey, type KeyKind } from "../../src/idempotency/digest.ts";
import { Idempotency, type IdempotencyOptions } from "../../src/idempotency/index.ts";
import { Redlock, type RedlockEvent, type RedlockOptions } from "../../src/index.ts";
import { keyOf } from "../../src/redis/keys.ts";
import { patient } from "./beyond-tests.ts";
import { type Link, link } from "./link.ts";
import { type EndpointSet, openLocal } from "./local-endpoints.ts";
import { isUsual, type Setting, setsOf } from "./sets.ts";
import { until } from "./until.ts";

// Sets of endpoints for contract tests: embedded engines in this process, and what openLocal() starts.

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
  return setsOf(counts, real, undefined, (count) => !isUsual(count)).map((set) =>
    storeOf({ ...set, via: set.engine === "embedded" ? "memory" : "fetch" }),
  );
}

/** @param set `memory`: embedded engines without HTTP */
export function storeOf(set: Setting & { readonly via: "memory" | EndpointSet["via"] }): Store {
  const { engine, count, dialect, via } = set;
  const open = () => (via === "memory" ? openMemory(set) : openServers({ ...set, via }));
  return { title: `${engine} engine, ${count} × ${dialect} by ${via}`, engine, count, dialect, open };
}

async function openMemory({ count, dialect }: Setting): Promise<OpenStore> {
  const endpoints = Array.from({ length: count }, (_, index) =>
    memoryEndpoint({ name: `endpoint-${index + 1}`, dialect }),
  );
  return {
    endpoints,
    execute: async (index, command) => endpoints[index]!.engine.execute(command),
    close: async () => undefined,
  };
}

async function openServers(set: EndpointSet): Promise<OpenStore> {
  const local = await openLocal(set);
  return {
    endpoints: local.connect(),
    execute: (index, command) => local.endpoints[index]!.execute(command),
    close: local.close,
  };
}

/** One client with its own links to all endpoints of a store. */
export interface Client {
  readonly redlock: Redlock;
  readonly idempotency: Idempotency;
  readonly links: readonly Link[];
  /** What it has reported, without its requests. */
  readonly events: readonly RedlockEvent[];
}

/** Creates a client, {@link patient} unless its options say otherwise. `options` are those of `Idempotency`. */
export function clientOf(
  store: OpenStore,
  options: IdempotencyOptions = {},
  redlockOptions: Omit<RedlockOptions, "endpoints"> = {},
): Client {
  const links = store.endpoints.map(link);
  const events: RedlockEvent[] = [];
  const redlock = new Redlock({
    ...patient,
    backoff: { min: 2, max: 20 },
    onEvent: (event) => event.type !== "request" && events.push(event),
    ...redlockOptions,
    endpoints: links,
  });
  return { redlock, idempotency: new Idempotency(redlock, options), links, events };
}

/** Sends one command about a key to every endpoint. */
export function onEach(store: OpenStore, ...command: [string, string, ...string[]]): Promise<unknown[]> {
  return Promise.all(store.endpoints.map((_, index) => store.execute(index, command)));
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
  return (await onEach(store, "GET", name)) as (string | null)[];
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
  return (await onEach(store, "PTTL", await recordName(key))) as number[];
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
