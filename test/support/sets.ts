import process from "node:process";
import type { Dialect } from "../../src/endpoints/endpoint.ts";

/** What a contract test runs on. */
export interface Setting {
  readonly engine: "redis" | "embedded" | "durable";
  readonly count: number;
  readonly dialect: Dialect;
}

/** The first list; with `SETS=all` (`npm run test:long`) the second, with `SETS=few` (`npm run mutation`) nothing. */
export function atLength<Value>(short: readonly Value[], long: readonly Value[]): readonly Value[] {
  if (process.env.SETS === "few") return [];
  return process.env.SETS === "all" ? long : short;
}

/** Whether programs have so many endpoints. */
export function isUsual(count: number): boolean {
  return count === 1 || count === 3;
}

/**
 * The settings of a contract test with so many endpoints. With `SETS=all` all combinations, but counts other than 1 and 3
 * have one dialect each on the embedded engine. Otherwise each engine and count occurs, but not each combination of
 * them: counts that real servers have run on the embedded engine only if they are the smallest one. The dialects take
 * turns; where there are two settings, these are `upstash` and `redis`, which share nothing. With `SETS=few` only one
 * endpoint, three, or the last count, embedded.
 *
 * @param real counts for real servers; without a redis-server on this machine `eachEngine` skips them
 * @param durable counts for lock servers, with `SETS=all` only. All of them share a workerd
 */
export function setsOf(
  counts: readonly number[],
  real: readonly number[],
  durable: readonly number[] = [Math.min(...counts)],
): Setting[] {
  const dialects = ["upstash", "redis", "redis-8.4"] as const;
  if (process.env.SETS === "few") {
    const few = counts.filter(isUsual);
    return (few.length > 0 ? few : counts.slice(-1)).map((count) => {
      return { engine: "embedded", count, dialect: count === 1 ? "upstash" : "redis" };
    });
  }
  if (process.env.SETS === "all") {
    return [
      ...dialects.flatMap((dialect) => [
        ...counts
          .filter((count) => isUsual(count) || dialects[count % 3] === dialect)
          .map((count) => ({ engine: "embedded", count, dialect }) as const),
        ...real.map((count) => ({ engine: "redis", count, dialect }) as const),
      ]),
      ...durable.map((count) => ({ engine: "durable", count, dialect: "redis-8.4" }) as const),
    ];
  }
  const embedded = counts.filter((count, index) => index === 0 || !real.includes(count));
  return [
    ...embedded.map(
      (count, index) => ({ engine: "embedded", count, dialect: dialects[index % 3]! }) as const,
    ),
    ...real.map((count, index) => ({ engine: "redis", count, dialect: dialects[(index + 1) % 3]! }) as const),
  ];
}
