// What a full redis-server does to held locks, their fence counters and stored results: for the table in docs/safety.md.

import { type LocalEndpoint, start } from "../../local/src/index.ts";
import { Idempotency } from "../../src/idempotency/index.ts";
import { type FencedLock, Redlock, systemRuntime } from "../../src/index.ts";

/** How many locks, and how many results, each trial has. */
const count = 20;

/** Bytes that a server may use beyond what it needs when it is empty. Others write twice as much. */
const room = 4_000_000;
const valueSize = 1_000;

const hour = 3_600_000;
const settings = { ttl: 60_000, wait: 0, fencing: true } as const;
const retention = 24 * hour;

/** A server, and what others write to it until it is full. */
export interface Case {
  readonly policy: string;
  /** ms that a value of the others lives; undefined: for ever. */
  readonly othersTtl?: number;
}

export const cases: readonly Case[] = [
  { policy: "noeviction" },
  { policy: "volatile-ttl", othersTtl: hour },
  { policy: "volatile-lru", othersTtl: hour },
  { policy: "volatile-random" },
  { policy: "allkeys-lru" },
];

/** Of {@link count} locks and {@link count} results each, once the server is full. */
export interface Seen {
  readonly locks: number;
  readonly counters: number;
  readonly results: number;
  /** Resources that a second client acquires while the first one relies on its lock. */
  readonly second: number;
  /** Locks that their holder extends, and those that it releases. */
  readonly extended: number;
  readonly released: number;
  /** Runs that run again, and those that are replayed; the others fail. */
  readonly again: number;
  readonly replayed: number;
  /** Locks that can be acquired next, and those whose fence is not larger then. */
  readonly next: number;
  readonly notLarger: number;
  /** The same where the clock of the first holder was an hour ahead. */
  readonly notLargerAfterEarly: number;
}

/** Fills a server, and looks what is left. */
export async function tryCase({ policy, othersTtl }: Case): Promise<Seen> {
  await using local = await start({ count: 1, engine: "redis", dialect: "redis" });
  const [server] = local.endpoints;
  const clientOf = (ahead = 0) =>
    new Redlock({ endpoints: [server], runtime: { ...systemRuntime, now: () => Date.now() + ahead } });
  const client = clientOf();
  const runs = new Idempotency(client, { retention });
  const acquire = (by: Redlock, name: string) => each((n) => by.acquire(`${name}:${n}`, settings));
  const run = () => each((n) => runs.run(`run:${n}`, { scope: "s" }, () => n));

  const held = succeeded(await acquire(client, "held"));
  const early = succeeded(await acquire(clientOf(hour), "early"));
  const ran = succeeded(await run());
  if (held.length + early.length + ran.length !== 3 * count) throw new Error("not all could be written");
  await fill(server, policy, othersTtl);

  const stored = async (pattern: string) => ((await server.execute(["KEYS", pattern])) as unknown[]).length;
  const left = {
    locks: await stored("redlock:lock:{held:*"),
    counters: await stored("redlock:fence:{held:*"),
    results: await stored("redlock:idem:*"),
  };
  const second = succeeded(await acquire(client, "held"));
  const extended = succeeded(await each((n) => held[n]!.extend()));
  const outcomes = succeeded(await run()).map(({ status }) => status);
  const released = succeeded(await each((n) => held[n]!.release())).filter((isReleased) => isReleased);
  await Promise.all([...second, ...early].map((lock) => lock.release().catch(() => false)));
  const next = await acquire(client, "held");
  return {
    ...left,
    second: second.length,
    extended: extended.length,
    released: released.length,
    again: outcomes.filter((status) => status === "executed").length,
    replayed: outcomes.filter((status) => status === "replayed").length,
    next: succeeded(next).length,
    notLarger: notLarger(next, held),
    notLargerAfterEarly: notLarger(await acquire(client, "early"), early),
  };
}

/** The cells of a row of the table. */
export function rowOf({ policy, othersTtl }: Case, seen: Seen): readonly string[] {
  const stay = (number: number) => (number === count ? "stay" : "vanish");
  const isUseless = seen.locks === count && seen.extended === 0;
  return [
    `\`${policy}\``,
    othersTtl ? `live ${othersTtl / hour} h` : "live for ever",
    `${stay(seen.locks)}${seen.second > 0 ? ": a second holder" : ""}${isUseless ? ", cannot be extended" : ""}`,
    stay(seen.counters),
    stay(seen.results),
    duplicateOf(seen),
    fenceOf(seen),
  ];
}

function duplicateOf({ again, replayed }: Seen): string {
  if (again > 0) return "acts again";
  return replayed === count ? "is replayed" : "fails";
}

function fenceOf({ next, notLarger, notLargerAfterEarly }: Seen): string {
  if (next === 0) return "none: acquire fails";
  if (notLarger > 0) return "not larger";
  return notLargerAfterEarly > 0 ? "larger, if clocks agree" : "larger";
}

const each = <Result>(act: (n: number) => Promise<Result>): Promise<PromiseSettledResult<Result>[]> =>
  Promise.allSettled(Array.from({ length: count }, (_, n) => act(n)));

function succeeded<Result>(outcomes: readonly PromiseSettledResult<Result>[]): Result[] {
  return outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
}

/** How many locks have no larger fence than the one before on the same resource. */
function notLarger(next: readonly PromiseSettledResult<FencedLock>[], before: readonly FencedLock[]): number {
  const fallen = next.filter(
    (outcome, n) => outcome.status === "fulfilled" && outcome.value.fence <= before[n]!.fence,
  );
  return fallen.length;
}

async function fill(server: LocalEndpoint, policy: string, ttl: number | undefined): Promise<void> {
  const memory = String(await server.execute(["INFO", "memory"]));
  const used = Number(/used_memory:(\d+)/.exec(memory)?.[1]);
  await server.execute(["CONFIG", "SET", "maxmemory", used + room]);
  await server.execute(["CONFIG", "SET", "maxmemory-policy", policy]);
  for (let n = 0; n < (2 * room) / valueSize; n += 1) {
    const living = ttl ? ["PX", ttl] : [];
    const refused = await server
      .execute(["SET", `others:${n}`, "v".repeat(valueSize), ...living])
      .then(() => false, isFull);
    if (refused) return;
  }
}

function isFull(error: Error): true {
  if (!error.message.startsWith("OOM")) throw error;
  return true;
}
