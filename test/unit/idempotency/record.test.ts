import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hashKey } from "../../../src/idempotency/digest.ts";
import {
  classifyRecords,
  countOf,
  countText,
  isComplete,
  noFingerprint,
  parseRecord,
  recordText,
} from "../../../src/idempotency/record.ts";

/**
 * Any code point that is not a surrogate, as a unit of strings. The same as fast-check's `"binary"`, which makes a table of
 * them all: a second of CPU in each worker.
 */
const codePoint: fc.Arbitrary<string> = fc
  .nat(0x10ffff - 0x800)
  .map((nth) => String.fromCodePoint(nth < 0xd800 ? nth : nth + 0x800));

const seed = Date.now() % 2 ** 31;
console.log(`record SEED=${seed}`);

const token = fc.stringMatching(/^t[0-9a-f]{32}$/);
const time = fc.nat({ max: Number.MAX_SAFE_INTEGER });
const fingerprint = fc.oneof(fc.constant(noFingerprint), fc.stringMatching(/^[0-9a-f]{64}$/));
const run = { token: `t${"0".repeat(32)}`, fingerprint: noFingerprint };
const pending = (fields: object = {}) => recordText({ state: "pending", ...run, at: 1, ...fields });
const complete = (fields: object = {}) =>
  recordText({ state: "complete", ...run, at: 2, result: "{}", ...fields });

describe("records as text", () => {
  test("are parsed as they were written, with any result", () => {
    fc.assert(
      fc.property(token, time, fingerprint, fc.string({ unit: codePoint }), (token, at, print, result) => {
        const begun = { state: "pending", token, at, fingerprint: print } as const;
        expect(parseRecord(recordText(begun))).toEqual(begun);
        const done = { ...begun, state: "complete", result } as const;
        expect(parseRecord(recordText(done))).toEqual(done);
      }),
      { seed, numRuns: 200 },
    );
  });

  test.each(["unserializable", "too-large"] as const)(
    "have the reason where there is no result: %s",
    (unstored) => {
      const done = { state: "complete", token: run.token, at: 2, fingerprint: "ab", unstored } as const;
      expect(recordText(done)).toBe(`N1 ${run.token} 2 ab ${unstored}`);
      expect(parseRecord(recordText(done))).toEqual(done);
    },
  );

  test("have the format that other versions rely on", () => {
    expect(pending()).toBe(`P1 ${run.token} 1 -`);
    expect(complete({ fingerprint: "ab", result: "a\nb c" })).toBe(`C1 ${run.token} 2 ab a\nb c`);
    // No client in between may take one for JSON or a number.
    for (const text of [pending(), complete()]) expect(text).toMatch(/^[PC]1 /);
  });

  const broken =
    "|P1|C1|P|P1 t|P1 t 1|P1 t 1 |P1 t 1 - |P1 t 1 - x|P1 t x -|P1 t -1 -|P1 t 1.5 -|P1 t 1 XYZ|P1 t 1 xyz|P1 t t 1 -|" +
    "P1  1 -|C1 t 1 -|C1 t 1|p1 t 1 -|P2 t 1 -|C2 t 1 - {}|X1 t 1 - {}|N1 t 1 -|N1 t 1 - |N1 t 1 - other|" +
    'N1 t 1 - too-large |P1 t 1 - too-large| P1 t 1 -|P1 t 1 -\n|null|"P1 t 1 -"';
  test.each([undefined, null, 42, {}, ["P1 t 1 -"], ...broken.split("|")])("%j is none", (text) => {
    expect(parseRecord(text)).toBe(undefined);
  });
});

test("only a record with a result, or the reason why there is none, is complete", () => {
  const texts = [complete(), "N1 t 1 - too-large", pending(), "C1 t 1 -", "hello", ""];
  expect(texts.map(isComplete)).toEqual([true, true, false, false, false, false]);
});

describe("counts as text", () => {
  test("are parsed as they were written", () => {
    expect(countText({ token: run.token, count: 3 })).toBe(`A1 ${run.token} 3`);
    fc.assert(
      fc.property(token, fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), (token, count) => {
        expect(countOf(countText({ token, count }))).toBe(count);
      }),
      { seed },
    );
  });

  const broken =
    "|1|A1 t|A1 t 0|A1 t 01|A1 t -1|A1 t 1.5|A1 t 1e3|A1 t 9007199254740993|A1  1|A1 t 1 |A1 t 1\n|A2 t 1|a1 t 1| A1 t 1";
  test.each([...broken.split("|"), pending(), complete()])("%j is none", (text) => {
    expect(countOf(text)).toBe(undefined);
  });
});

describe("classifyRecords", () => {
  const [mine, other] = ["aa", "bb"];
  const p1 = pending({ token: "t1" });
  const p2 = pending({ token: "t2" });
  const pOther = pending({ token: "t1", fingerprint: other });
  const c1 = complete({ token: "t1", result: "1" });
  const c2 = complete({ token: "t2", result: "2" });
  const cMine = complete({ fingerprint: mine });
  const cOther = complete({ fingerprint: other });
  const busy = (text: string) => ({ kind: "busy", record: parseRecord(text) });
  const replay = (text: string, decided: boolean) => ({
    kind: "replay",
    record: parseRecord(text),
    text,
    decided,
  });
  const splitVote = { kind: "split-vote" };
  const corrupt = { kind: "corrupt" };
  const mismatch = (complete: boolean) => ({ kind: "mismatch", complete });

  test.each<[what: string, texts: string[], fingerprint: string, count: number, expected: object]>([
    ["nobody", [], noFingerprint, 1, splitVote],
    ["the only one is complete", [c1], noFingerprint, 1, replay(c1, true)],
    ["a quorum of three shows one run", [p2, p1, p1], noFingerprint, 3, busy(p1)],
    ["less than a quorum does", [p1], noFingerprint, 3, splitVote],
    ["each has a part", [p1, p2], noFingerprint, 3, splitVote],
    ["a quorum is complete", [p1, c1, c1], noFingerprint, 3, replay(c1, true)],
    ["one of three is complete, another run is pending on two", [p1, c1, p1], noFingerprint, 3, busy(p1)],
    ["one of two is complete: the other may have another", [c1], noFingerprint, 2, replay(c1, false)],
    ["one of four is complete", [c1], noFingerprint, 4, replay(c1, false)],
    ["three of four are complete", [c1, c1, c2, c1], noFingerprint, 4, replay(c1, true)],
    ["two are complete: the one that a quorum has", [c1, c2, c2], noFingerprint, 3, replay(c2, true)],
    ["two are complete, none on a quorum", [c2, c1], noFingerprint, 3, replay(c1, false)],
    ["the fingerprint fits a complete one", [cMine], mine, 1, replay(cMine, true)],
    ["mismatch before a split vote", [pOther], mine, 3, mismatch(false)],
    ["mismatch before a replay that fits", [cMine, pOther], mine, 3, mismatch(false)],
    ["mismatch that includes a complete one", [pOther, cOther], mine, 3, mismatch(true)],
    ["none was asked for then", [c1], mine, 1, replay(c1, true)],
    ["none is asked for now", [cMine], noFingerprint, 1, replay(cMine, true)],
    ["something else stands there", ["hello"], noFingerprint, 1, corrupt],
    ["a complete one beside something else", ["hello", c1], noFingerprint, 3, replay(c1, false)],
    ["a pending one beside something else", ["hello", p1], noFingerprint, 3, corrupt],
    ["a mismatch beside something else", ["hello", cOther], mine, 3, mismatch(true)],
  ])("%s", (_what, texts, print, count, expected) => {
    expect(classifyRecords(texts, print, count)).toEqual(expected);
  });
});

// printf '["http",null,["a","b"],"k"]' | sha256sum
test.each<[parts: Parameters<typeof hashKey>, of: string, hash: string]>([
  [[["a", "b"], "k"], '[["a","b"],"k"]', "eddd7fec98387e1e9b7abc89e5cf55cdb59de77b4d694711bcef7e05fc881698"],
  [
    [["a", "b"], "k", "run"],
    '[["a","b"],"k"]',
    "eddd7fec98387e1e9b7abc89e5cf55cdb59de77b4d694711bcef7e05fc881698",
  ],
  [
    [["a", "b"], "k", "http"],
    '["http",null,["a","b"],"k"]',
    "3f0fc07606c21b11304c37ea6d97d10c1fe0e2d470897505f07fdf1f5c3eb650",
  ],
  [
    [["a", "b"], "k", "http", "h"],
    '["http","h",["a","b"],"k"]',
    "97b5eec8708d35cbc4432830437e7b7ebe5d62c749d5c16d2d68ff1fed3244ba",
  ],
])("the hash of the key %j is that of %s", async (parts, _of, hash) => {
  expect(await hashKey(...parts)).toBe(hash);
});
