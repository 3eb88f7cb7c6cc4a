import { expect } from "vitest";
import { keyOf } from "../../evidence/sim/field.ts";
import { type MemoryEndpoint, memoryEndpoint } from "../../local/src/memory/index.ts";
import {
  type Command,
  type Dialect,
  type Endpoint,
  type LockOptions,
  Redlock,
  type RedlockEvent,
  type RedlockOptions,
} from "../../src/index.ts";
import { pubSub } from "../../src/wake-up/index.ts";
import { type Fate, type Link, link } from "./link.ts";
import { type SteppingRuntime, steppingRuntime } from "./stepping-runtime.ts";
import { trusted } from "./trusted.ts";

/** Endpoints in virtual time, and clients of them: nothing waits for a real clock. */
export interface VirtualWorld {
  readonly runtime: SteppingRuntime;
  readonly endpoints: readonly MemoryEndpoint[];
  /**
   * A client with links of its own. Its `timeout` is 100 ms, its pauses are 10 ms. `deaf`: its requests go on after their
   * timeout, as those of an SDK do, and their answers arrive.
   */
  client(
    options?: Omit<RedlockOptions, "endpoints" | "runtime">,
    how?: { readonly deaf?: boolean | undefined },
  ): VirtualClient;
  /** Sets the resource's key as another client would, at the endpoints of these indices. */
  put(resource: string, indices: readonly number[], value?: string, ttl?: number): void;
  /** The value of the resource's key by endpoint; null where it does not exist. */
  values(resource: string): (string | null)[];
  /** ms until the resource's key expires, by endpoint; −2 where it does not exist. */
  expiries(resource: string): number[];
  /** A fate: executed after `ms`. */
  late(ms: number): Fate;
  /** A fate: executed at once, and answered after `ms`. */
  slow(ms: number): Fate;
}

/** A client, its links, and what it has reported. */
export interface VirtualClient {
  readonly redlock: Redlock;
  readonly links: readonly Link[];
  /** Without those of requests. */
  readonly events: RedlockEvent[];
}

/** The endpoints as another process reaches them: it shares no stream. */
export function reached(
  { endpoints }: VirtualWorld,
  change: (endpoint: Endpoint, index: number) => Partial<Endpoint> = () => ({}),
) {
  return endpoints.map((endpoint, index): Endpoint => {
    const { name, dialect, exactReplies } = endpoint;
    return trusted({
      name,
      dialect,
      exactReplies: exactReplies === true,
      send: (command, signal) => endpoint.send(command, signal),
      subscribe: (to, signal) => endpoint.subscribe(to, signal),
      ...change(endpoint, index),
    });
  });
}

/** Three endpoints of dialect `redis`, unless told otherwise. */
export function virtualWorld({ count = 3, dialect = "redis" as Dialect } = {}): VirtualWorld {
  const runtime = steppingRuntime();
  const endpoints = Array.from({ length: count }, (_, index) =>
    memoryEndpoint({ name: `e${index + 1}`, dialect, runtime }),
  );
  const keyFor = (resource: string) => keyOf("lock", resource);
  return {
    runtime,
    endpoints,
    client(options = {}, { deaf = false } = {}) {
      const links = endpoints.map(link);
      const never = new AbortController().signal;
      const used = deaf
        ? links.map((each) => ({ ...each, send: (command: Command) => each.send(command, never) }))
        : links;
      used.forEach(trusted);
      const events: RedlockEvent[] = [];
      const onEvent = (event: RedlockEvent) => event.type !== "request" && events.push(event);
      const backoff = { min: 10, max: 10 };
      const redlock = new Redlock({ timeout: 100, backoff, onEvent, ...options, endpoints: used, runtime });
      return { redlock, links, events };
    },
    put(resource, indices, value = "somebody-else", ttl = 60_000) {
      for (const index of indices) {
        endpoints[index]!.engine.execute(["SET", keyFor(resource), value, "PX", ttl]);
      }
    },
    values: (resource) =>
      endpoints.map(({ engine }) => engine.execute(["GET", keyFor(resource)]) as string | null),
    expiries: (resource) =>
      endpoints.map(({ engine }) => engine.execute(["PTTL", keyFor(resource)]) as number),
    ...delays(runtime),
  };
}

/** A world, and a client in it. */
export function oneClient(
  options: Parameters<VirtualWorld["client"]>[0] = {},
  { deaf, ...world }: Parameters<typeof virtualWorld>[0] & Parameters<VirtualWorld["client"]>[1] = {},
): VirtualWorld & VirtualClient {
  const made = virtualWorld(world);
  return { ...made, ...made.client(options, { deaf }) };
}

/** A client in a process of its own, whose waiters are told by pub/sub. It waits for a minute. */
export function wokenClient(
  world: VirtualWorld,
  options: LockOptions = {},
  endpoints = reached(world),
): Redlock {
  const given = { wait: 60_000, timeout: 100, wakeUp: pubSub, ...options };
  return new Redlock({ ...given, endpoints, runtime: world.runtime });
}

/** The fates of a world that take a time. */
export function delays(runtime: SteppingRuntime): Pick<VirtualWorld, "late" | "slow"> {
  return {
    late: (ms) => ({ before: () => runtime.sleep(ms) }),
    slow: (ms) => ({ after: () => runtime.sleep(ms) }),
  };
}

/** What has become of a promise so far. */
export function watch<Value>(promise: Promise<Value>): { value?: Value; error?: unknown; settled: boolean } {
  const watched: { value?: Value; error?: unknown; settled: boolean } = { settled: false };
  promise.then(
    (value) => Object.assign(watched, { value, settled: true }),
    (error: unknown) => Object.assign(watched, { error, settled: true }),
  );
  return watched;
}

/** Lets `ms` pass. Fails unless what is watched settles in the last of them. */
export async function takes(runtime: SteppingRuntime, watched: { readonly settled: boolean }, ms: number) {
  await runtime.advance(ms - 1);
  expect(watched.settled).toBe(false);
  await runtime.advance(1);
  expect(watched.settled).toBe(true);
}
