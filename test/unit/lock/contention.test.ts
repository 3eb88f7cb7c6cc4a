import { describe, expect, test } from "vitest";
import { EndpointError } from "../../../src/errors.ts";
import { holderHash as hashSeen } from "../../../src/lock/contention.ts";
import type { CellAnswer } from "../../../src/redis/cell.ts";

const by = (other?: string): CellAnswer => ({ outcome: "held", other });
const granted: CellAnswer = { outcome: "granted" };
const failed = { outcome: "error", cause: new EndpointError("e", "network", "down") } as const;

const holderHash = (answers: readonly (CellAnswer | typeof failed | undefined)[]) =>
  hashSeen(answers.map((answer) => ({ answer })));

describe("holderHash", () => {
  test.each([
    [[by("a")], [by("a")], "one endpoint"],
    [[by("a"), by("a"), by("b")], [by("b"), by("a"), by("a")], "what most endpoints show"],
    [[by("a"), by("a"), undefined], [failed, by("a"), by("a")], "where an answer is missing"],
    [[by("a"), by("a"), undefined, undefined], [granted, by("a"), by("a"), by("a")], "four endpoints"],
  ])("%j and %j: the same (%s)", (one, two) => {
    expect(holderHash(one)).toBeTypeOf("number");
    expect(holderHash(one)).toBe(holderHash(two));
  });

  test("another where another value is in the way, however alike", () => {
    const hashes = ["", "a", "b", "ab", "ba", "t0", "t00"].map((value) => holderHash([by(value)]));
    expect(new Set(hashes).size).toBe(hashes.length);
  });

  test.each([
    [[granted, failed, undefined]],
    [[by("a"), by("b"), granted]],
    [[by("a"), undefined, failed]],
    [[by("a"), by("a"), by("b"), by("b"), by("c")]],
    [[by(), by(), by()]],
    [[{ outcome: "lost", other: "a" }]],
  ] satisfies (CellAnswer | typeof failed | undefined)[][][])("%j: none", (answers) => {
    expect(holderHash(answers)).toBeUndefined();
  });

  test("does not contain the value", () => {
    expect(JSON.stringify(holderHash([by("t1234567890")]))).toMatch(/^-?\d{1,10}$/);
  });
});
