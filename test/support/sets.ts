import process from "node:process";
import type { Dialect } from "../../src/endpoints/endpoint.ts";
import { redisServer } from "./redis-servers.ts";

/** What a contract test runs on. */
export interface Setting {
  readonly engine: "redis" | "embedded";
  readonly count: number;
  readonly dialect: Dialect;
}

/** Whether contract tests run on all combinations: `SETS=all`, as in `npm run test:long`. */
export const allSets = process.env.SETS === "all";

/** The same list, or with `SETS=all` the longer one. */
export function atLength<Value>(short: readonly Value[], long: readonly Value[]): readonly Value[] {
  return allSets ? long : short;
}

/**
 * The settings of a contract test with so many endpoints. All combinations with `SETS=all`. Otherwise each engine,
 * count and dialect occurs, but not each combination of them: counts that real servers have run on the embedded engine
 * only if they are the smallest one, and the dialects take turns.
 *
 * @param real counts for real servers; without a redis-server on this machine they are left out
 */
export function setsOf(counts: readonly number[], real: readonly number[]): Setting[] {
  const dialects = ["upstash", "redis"] as const;
  const onServers = redisServer ? real : [];
  if (allSets) {
    return dialects.flatMap((dialect) => [
      ...counts.map((count) => ({ engine: "embedded", count, dialect }) as const),
      ...onServers.map((count) => ({ engine: "redis", count, dialect }) as const),
    ]);
  }
  const embedded = counts.filter((count, index) => index === 0 || !onServers.includes(count));
  return [
    ...embedded.map(
      (count, index) => ({ engine: "embedded", count, dialect: dialects[index % 2]! }) as const,
    ),
    ...onServers.map(
      (count, index) => ({ engine: "redis", count, dialect: dialects[(index + 1) % 2]! }) as const,
    ),
  ];
}
