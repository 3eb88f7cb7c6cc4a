import { describe, expect, test } from "vitest";
import { seededRandom } from "../../../local/src/memory/seeded-random.ts";
import { requirements } from "../../../src/cli/doctor/questions.ts";
import { probeTtl } from "../../../src/cli/doctor/session.ts";
import { refusing } from "./conformance-bends.ts";
import { bentServer, lacksOf } from "./conformance-bent.ts";
import { faults, no, noEval, subscribed, wideFaults } from "./conformance-faults.ts";

// doctor --conformance in front of servers of which each has one fault: it must find this one, and nothing else. Over HTTP:
// golden.test.ts.

const needs = Object.keys(requirements);
/** What follows from a fault. */
const following: Readonly<Record<string, object>> = { eval: noEval, nx: no("nx", "native") };
const cases = Object.entries(faults).flatMap(([need, bends]) =>
  Object.entries(bends).map(([what, bend]) => [what, [bend, following[need] ?? no(need)]] as const),
);

test.each([...cases, ...Object.entries(wideFaults)])("a server of which %s", async (_, [bend, lacks]) => {
  expect(lacksOf(await bentServer(bend).judged())).toEqual(lacks);
});

test("a server that a stream breaks for everybody does not work", async () => {
  const { ok, advice } = await bentServer(subscribed()).judged();
  expect(ok).toBe(false);
  expect(advice.filter(({ level }) => level === "error")).toMatchObject([{ code: "SUBSCRIBE" }]);
});

describe("an honest server", () => {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
  const random = seededRandom(seed);
  const native: string[] = ["native", "flag"];
  const lacking = { upstash: [], "redis-8.4": native.slice(1), redis: native } as const;
  const networks: readonly (readonly [network: string, latency: () => number])[] = [
    ["near", () => 0],
    ["of which requests take 0 to 2.4 s", () => 2_400 * random()],
    ["that stalls now and then", () => (random() < 0.1 ? 2_300 : 1)],
  ];
  const cases = networks.flatMap(([network, latency]) =>
    (["upstash", "redis-8.4", "redis"] as const).map((dialect) => [network, dialect, latency] as const),
  );
  test.each(cases)(`%s, dialect %s, seed ${seed}`, async (_, dialect, latency) => {
    const { judged, engine } = bentServer({}, { dialect, latency });
    const result = await judged();
    expect(lacksOf(result)).toEqual(no(...lacking[dialect]));
    expect(result.ok).toBe(true);
    expect(engine.execute(["KEYS", "*"])).toEqual([]);
  });
});

test.each([null, 7, "OK", []])("believes no server that answers everything with %j", async (reply) => {
  const { judged } = bentServer({
    command: (words, execute) => (/^PING|:token /.test(words.join(" ")) ? execute(words) : reply),
  });
  const result = await judged();
  const lacks = lacksOf(result);
  expect([result.ok, needs.filter((need) => lacks[need] === undefined)]).toEqual([false, []]);
});

test("what it writes is below the prefix, and expires where it cannot be deleted", async () => {
  const { judged, engine } = bentServer(refusing(/^DEL /));
  expect(lacksOf(await judged())).toEqual({});
  for (const key of engine.execute(["KEYS", "*"]) as string[]) {
    expect(key).toMatch(/^p:doctor:\{id\}:/);
    expect(engine.execute(["PTTL", key])).toSatisfy((ms: number) => ms > 0 && ms <= probeTtl);
  }
});
