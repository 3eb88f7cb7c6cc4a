import { describe, expect, test } from "vitest";
import { seededRandom } from "../../../local/src/memory/seeded-random.ts";
import { type Need, probeTtl } from "../../../src/cli/conformance-session.ts";
import { needs } from "../../../src/cli/conformance-table.ts";
import { instead } from "./conformance-bends.ts";
import { bentServer, lacksOf } from "./conformance-bent.ts";
import { faults, no } from "./conformance-faults.ts";

// doctor --conformance in front of servers of which each has one fault: it must find this one, and nothing else.

describe("a server of which", () => {
  test.each(Object.entries(faults))("%s", async (_, [bend, lacks, found]) => {
    const { judged, engine } = bentServer(bend);
    const result = await judged();
    expect(lacksOf(result)).toEqual(lacks);
    if (found) expect(result.rows.find(({ answer }) => answer === "no")?.found).toMatch(found);
    if (result.isClean) expect(engine.execute(["KEYS", "*"])).toEqual([]);
  });
});

describe("an honest server", () => {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
  const random = seededRandom(seed);
  const native: Need[] = ["ifeq", "delex", "flag"];
  const lacking = { upstash: [], "redis-8.4": native.slice(2), redis: native } as const;
  const networks: readonly (readonly [network: string, latency: () => number])[] = [
    ["near", () => 0],
    ["far", () => 1_200],
    ["of which requests take 0 to 2.4 s", () => 2_400 * random()],
    ["that stalls now and then", () => (random() < 0.1 ? 2_300 : 1)],
  ];
  const cases = networks.flatMap(([network, latency]) =>
    (["upstash", "redis-8.4", "redis"] as const).map((dialect) => [network, dialect, latency] as const),
  );
  test.each(cases)(`%s, dialect %s, seed ${seed}`, async (_, dialect, latency) => {
    const { judged, engine, requests } = bentServer({}, { dialect, latency });
    const result = await judged();
    expect(lacksOf(result)).toEqual(no(...lacking[dialect]));
    expect(result).toMatchObject({ ok: true, isClean: true, requests: requests() });
    expect(engine.execute(["KEYS", "*"])).toEqual([]);
  });
});

test.each([null, 7, "OK", []])("believes no server that answers everything with %j", async (reply) => {
  const { judged } = bentServer({
    command: (words, execute) => (/^PING|:token /.test(words.join(" ")) ? execute(words) : reply),
  });
  const result = await judged();
  const lacks = lacksOf(result);
  // What a right server answers as well.
  const believed: Record<string, Need[]> = { "7": ["wait"] };
  const misled = needs.filter((need) => lacks[need] === undefined);
  expect([result.ok, misled]).toEqual([
    false,
    ["rest", "token", "replies", ...(believed[String(reply)] ?? [])],
  ]);
});

describe("what it writes", () => {
  test("is not called deleted where DEL deletes nothing", async () => {
    const { judged, engine } = bentServer(instead(/^DEL$/, (words) => words.length - 1));
    const result = await judged();
    expect([lacksOf(result), result.ok, result.isClean]).toEqual([{}, true, false]);
    for (const key of engine.execute(["KEYS", "*"]) as string[]) {
      expect(engine.execute(["PTTL", key])).toSatisfy((ms: number) => ms > 0 && ms <= probeTtl);
    }
  });

  test("is deleted after an outage and a timeout", async () => {
    const { judged, engine } = bentServer({
      request([name], earlier) {
        if (earlier < 20 || name === "DEL" || name === "EXISTS") return undefined;
        return earlier === 25 ? "silence" : "unavailable";
      },
    });
    const { ok, isClean, rows } = await judged();
    expect([ok, isClean, engine.execute(["KEYS", "*"])]).toEqual([false, true, []]);
    expect(rows.find(({ need }) => need === "reads")?.answer).toBe("unknown");
  });
});
