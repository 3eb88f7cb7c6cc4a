import process from "node:process";
import type { Dialect } from "../../src/index.ts";
import { canRun } from "./redis-servers.ts";

/** What a contract test runs on. */
export interface Setting {
  readonly engine: "redis" | "embedded" | "durable";
  readonly count: number;
  readonly dialect: Dialect;
}

/**
 * Of what a test runs on, the part that this run is for: `short` in `npm test`, all others with `SETS=rest`
 * (`npm run test:long`), both with `SETS=all`.
 */
export function atLength<Value>(short: readonly Value[], rest: readonly Value[]): readonly Value[] {
  if (process.env.SETS === "rest") return rest;
  return process.env.SETS === "all" ? [...short, ...rest] : short;
}

/** Whether programs have so many endpoints. */
export function isUsual(count: number): boolean {
  return count === 1 || count === 3;
}

/**
 * The settings of a contract test with so many endpoints, as {@link atLength} divides them. In the short part each
 * engine and count occurs, but not each combination of them: counts that real servers have run on the embedded engine
 * only if they are the smallest one. The dialects take turns; where there are two settings, these are `upstash` and
 * `redis`, which share nothing. The rest has all other combinations, but of counts other than 1 and 3 no second dialect.
 *
 * @param real counts for real servers; left out where this machine has no redis-server
 * @param durable counts for lock servers, in the rest only. All of them share a workerd
 * @param onlyRest whether the short part leaves a count out
 */
export function setsOf(
  counts: readonly number[],
  real: readonly number[],
  durable: readonly number[] = [Math.min(...counts)],
  onlyRest: (count: number) => boolean = () => false,
): readonly Setting[] {
  const isShort = (count: number) => !onlyRest(count);
  const short = shortSets(counts.filter(isShort), real.filter(isShort));
  const isNew = ({ engine, count, dialect }: Setting) =>
    !short.some(
      (one) => one.engine === engine && one.count === count && (one.dialect === dialect || !isUsual(count)),
    );
  return atLength(short, allSets(counts, real, durable).filter(isNew)).filter(canRun);
}

const dialects = ["upstash", "redis", "redis-8.4"] as const;

function shortSets(counts: readonly number[], real: readonly number[]): Setting[] {
  const embedded = counts.filter((count, index) => index === 0 || !real.includes(count));
  const inTurn = (engine: Setting["engine"], first: number) => (count: number, index: number) => ({
    engine,
    count,
    dialect: dialects[(index + first) % 3]!,
  });
  return [...embedded.map(inTurn("embedded", 0)), ...real.map(inTurn("redis", 1))];
}

function allSets(counts: readonly number[], real: readonly number[], durable: readonly number[]): Setting[] {
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
