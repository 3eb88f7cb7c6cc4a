import { describe, expect, test } from "vitest";
import type { Dialect } from "../../../local/src/engine/dialect.ts";
import { seededRandom } from "../../../local/src/memory/seeded-random.ts";
import {
  type ConformanceResult,
  conformanceLines,
  judge,
  type Row,
} from "../../../src/cli/doctor/conformance.ts";
import { requirements } from "../../../src/cli/doctor/requirements.ts";
import { probeTtl, type Seen, type SeenByNeed } from "../../../src/cli/doctor/session.ts";
import { instead, refusing } from "./conformance-bends.ts";
import { type Bend, bentServer, lacksOf } from "./conformance-bent.ts";
import { faults, no, noEval, subscribed, wideFaults } from "./conformance-faults.ts";

// doctor --conformance in front of servers of which each has one fault: it must find this one, and nothing else. Over HTTP:
// golden.test.ts.

const needs = Object.keys(requirements);
const cases = Object.entries(faults).flatMap(([need, bends]) =>
  Object.entries(bends).map(([what, bend]) => [what, [bend, need === "eval" ? noEval : no(need)]] as const),
);

test.each([...cases, ...Object.entries(wideFaults)])(
  "a server of which %s",
  async (_, [bend, lacks, found]) => {
    const { judged, engine } = bentServer(bend);
    const result = await judged();
    expect(lacksOf(result)).toEqual(lacks);
    if (found) expect(result.rows.find(({ answer }) => answer === "no")?.found).toMatch(found);
    if (result.isClean) expect(engine.execute(["KEYS", "*"])).toEqual([]);
  },
);

test("a server that a stream breaks for everybody does not work", async () => {
  const { ok, rows } = await bentServer(subscribed()).judged();
  expect(ok).toBe(false);
  expect(rows.find(({ level }) => level === "error")).toMatchObject({ need: "subscribe", answer: "no" });
});

describe("an honest server", () => {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
  const random = seededRandom(seed);
  const native: string[] = ["ifeq", "delex", "flag"];
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
  const believed: Record<string, string[]> = { "7": ["wait"] };
  const misled = needs.filter((need) => lacks[need] === undefined);
  expect([result.ok, misled]).toEqual([
    false,
    ["rest", "token", "replies", ...(believed[String(reply)] ?? [])],
  ]);
});

test.each<[what: string, bend: Bend, lacking: string, others: number]>([
  ["silence", { request: () => "silence" }, "rest", 1],
  ["an outage", { request: () => "unavailable" }, "rest", 1],
  ["a page that says something else", instead(/^PING/, () => "<h1>Log in</h1>"), "rest", 1],
  ["a read-only token", refusing(/:token /, "NOPERM no permissions to run 'set'"), "token", 2],
])("%s keeps it from asking", async (_, bend, lacking, others) => {
  const result = await bentServer(bend).judged();
  const unasked = Object.fromEntries(needs.slice(others).map((need) => [need, "unknown"]));
  expect(lacksOf(result)).toEqual({ ...unasked, [lacking]: "no" });
  expect([result.ok, result.isClean]).toEqual([false, true]);
});

describe("what it writes", () => {
  test("is below the prefix, expires, and is not called deleted where DEL deletes nothing", async () => {
    const { judged, engine } = bentServer(instead(/^DEL$/, (words) => words.length - 1));
    const result = await judged();
    expect([lacksOf(result), result.ok, result.isClean]).toEqual([{}, true, false]);
    for (const key of engine.execute(["KEYS", "*"]) as string[]) {
      expect(key).toMatch(/^p:doctor:\{id\}:/);
      expect(engine.execute(["PTTL", key])).toSatisfy((ms: number) => ms > 0 && ms <= probeTtl);
    }
    expect(conformanceLines({ conformance: true, ok: true, endpoints: [result] }, 120).at(-1)).toMatch(
      /expires within 2 minutes .*: 1$/,
    );
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

  test.each([undefined, "silence"] as const)("is deleted after Ctrl-C, request: %s", async (how) => {
    const stop = new AbortController();
    const stopping = (names: readonly string[]) => {
      if (names[0] !== "EVALSHA") return undefined;
      stop.abort();
      return how;
    };
    const { judged, engine } = bentServer({ request: stopping }, { stop: stop.signal });
    await expect(judged()).rejects.toThrow("stopped");
    expect(engine.execute(["KEYS", "*"])).toEqual([]);
  });
});

describe("judge", () => {
  const failure = (message: string): Seen => ({ failure: { kind: "redis", status: 400, message } });
  const all = Object.fromEntries(needs.map((need) => [need, { works: true }]));
  const judged = (seen: SeenByNeed, dialect: Dialect): ConformanceResult => {
    const place = { endpoint: "e", number: 1, url: "", dialect, requests: 9, isClean: true };
    return judge({ ...place, seen: { ...all, ...seen } });
  };

  test.each<[string, Dialect, Row["level"]]>([
    ["ifeq", "redis", "note"],
    ["ifeq", "redis-8.4", "error"],
    ["delex", "redis", "note"],
    ["delex", "upstash", "error"],
    ["flag", "redis-8.4", "note"],
    ["flag", "upstash", "error"],
  ])("without %s, the dialect %s has a consequence of level %s", (need, dialect, level) => {
    const { ok, rows } = judged({ [need]: failure("ERR syntax error") }, dialect);
    expect(rows.filter(({ answer }) => answer !== "yes")).toMatchObject([{ need, answer: "no", level }]);
    expect(ok).toBe(level !== "error");
  });
});
