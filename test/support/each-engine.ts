import { describe } from "vitest";
import { redisServer } from "./redis-servers.ts";

/** An engine, or what is to run on one. */
type Case = string | readonly [first: unknown, ...rest: unknown[]] | { readonly engine?: string };
type Describe = Pick<typeof describe, "each" | "skip">;

/** Whether it runs on real servers, which this machine does not have. */
function isMissing(each: Case): boolean {
  if (redisServer !== undefined) return false;
  if (typeof each === "string") return each === "redis";
  if (!Array.isArray(each)) return (each as { engine?: string }).engine === "redis";
  // The first is an engine, or the title of a set; another text may be a dialect.
  return each.some((part, index) => (part?.engine ?? (index === 0 && part)) === "redis");
}

/**
 * `describe.each`, which skips what runs on real servers where there is no redis-server.
 *
 * @param suites `describe`, or `describe.concurrent`
 */
export function eachEngine<Each extends Case>(cases: readonly Each[], suites: Describe = describe) {
  type Suite = (...args: Each extends readonly unknown[] ? [...Each] : [each: Each]) => void;
  return (title: string, suite: Suite): void => {
    suites.each(cases.filter((each) => !isMissing(each)))(title, suite as never);
    suites.skip.each(cases.filter(isMissing))(title, suite as never);
  };
}
