import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { forceRelease, inspect } from "../../../../src/inspect/index.ts";
import { type EndpointSet, type Local, openLocal } from "../../../support/local-endpoints.ts";
import { engines } from "../../../support/redis-servers.ts";

const sets: EndpointSet[] = [
  { engine: engines[0]!, count: 1, dialect: "redis-8.4", via: "fetch" },
  { engine: "embedded", count: 1, dialect: "upstash", via: "fetch" },
  { engine: "embedded", count: 1, dialect: "redis", via: "sdk" },
];

// Names that could be confused with another one once they are quoted, encoded, tagged or prefixed.
const alike = [
  ["a", "{a}", "{{a}}", "a}", "a%7D", "a%257D", "%7Ba%7D", "{a", "a{", "{}a", "a{}", "}a{"],
  ["a:fence", "fence:a", "a:void", "lock:a", "a:lock", ":a", "a:", "::a", "{a}:fence", "fence:{a}"],
  ["x{a}", "{x}{a}", "x{a}{b}", ":x{a}", "::x{a}", "{x{a}}", "x{a}}", "x{{a}"],
  ['"', '\\"', "'", "\\", "\\\\", "`", "\n", "\r\n", "\\n", "\t", "\u0000", " ", "  ", "\u2028"],
  ["é", "e\u0301", "É", "ß", "ss", "🔒", "\u{1f512}\ufe0f", "你", "\ufeff", "\ufeffa"],
  ["1", "1.0", "01", "1e0", "nil", "true", "OK", "[]", '["a"]'],
  ["A", "a ", " a", "a\u0000", "a/b", "a%2Fb", "a?b", "a&b", "a#b", "a+b", "a b", "a%20b", "*", "?", "[a]"],
];

describe.each(sets)("odd names: $engine, $dialect dialect, $via", (set) => {
  let local: Local;
  beforeAll(async () => {
    local = await openLocal(set);
  });
  beforeEach(() => local.reset());
  afterAll(() => local.close());

  test("names that look alike are different, and each is inspected and released as it was acquired", async () => {
    const names = alike.flat();
    const redlock = local.redlock({ wait: 0, fencing: true });
    const locks = await Promise.all(names.map((name) => redlock.acquire(name)));
    for (const name of names.slice(0, 9)) expect(await redlock.tryAcquire(name)).toBeNull();
    // A lock and a counter for each.
    expect(await local.endpoints[0]!.execute(["DBSIZE"])).toBe(2 * new Set(names).size);
    const seen = await Promise.all(names.map((name) => inspect(redlock, name)));
    expect(seen.map(({ fence }) => fence)).toEqual(locks.map(({ fence }) => fence));
    expect(locks.map(({ resources }) => resources)).toEqual(names.map((name) => [name]));
    const freed = await Promise.all(names.map((name) => forceRelease(redlock, name)));
    expect(freed).toEqual(names.map(() => true));
    expect(await local.endpoints[0]!.execute(["DBSIZE"])).toBe(new Set(names).size);
  });

  test("names of 1 and of 1 024 characters, 100 of them together", async () => {
    const redlock = local.redlock({ wait: 0 });
    const names = Array.from({ length: 100 }, (_, index) => String(index).padStart(1 + index * 10, "ü"));
    const lock = await redlock.acquire([...names, "🔒".repeat(512)].slice(1));
    expect(await redlock.tryAcquire(names[50]!)).toBeNull();
    expect(await lock.extend()).toBeGreaterThan(0);
    expect(await lock.release()).toBe(true);
    expect(await local.endpoints[0]!.execute(["DBSIZE"])).toBe(0);
  });
});
