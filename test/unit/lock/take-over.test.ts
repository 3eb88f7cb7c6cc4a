import { beforeEach, describe, expect, test } from "vitest";
import type { Endpoint } from "../../../src/endpoints/endpoint.ts";
import type { Settings } from "../../../src/lock/options.ts";
import { isSplit, TakeOver } from "../../../src/lock/take-over.ts";
import type { Round } from "../../../src/quorum/round.ts";
import type { Answer } from "../../../src/quorum/tally.ts";
import type { Cell, CellAnswer } from "../../../src/redis/cell.ts";
import { rejection } from "../../support/outcomes.ts";

// The operations are done on a map in place of endpoints: what a take-over tries, and what it makes of the answers.

const granted: CellAnswer = { outcome: "granted" };
const own: Cell = { keys: ["p:lock:{r}"], value: "own" };
const earlier = ["first", "second"];
const request = { resources: ["r"], prefix: "p", nonce: "own", earlier, owner: "", fenceRetention: 0 };
const endpoints = ["a", "b"].map((name) => ({ name }) as Endpoint);
const settings = { endpoints } as unknown as Settings;
const roundOf = (result: string) => ({ result: Promise.resolve(result) }) as unknown as Round<Answer>;

describe("a take-over", () => {
  let stored: Map<string, string>;
  let tried: Cell[];
  let takeOver: TakeOver;

  beforeEach(() => {
    stored = new Map();
    tried = [];
    takeOver = new TakeOver(request);
  });

  /** Performs it at an endpoint; what is extended has the handle's own value afterwards. */
  function perform(purpose: "verify" | "extend" | "release", name = "a"): Promise<CellAnswer> {
    tried = [];
    const call = { endpoint: { name } } as Parameters<TakeOver["perform"]>[1];
    return takeOver.perform(purpose, call, own, async (cell) => {
      tried.push(cell);
      const other = stored.get(name) ?? "";
      if (other !== cell.value) return { outcome: "lost", other };
      if (purpose === "extend") stored.set(name, own.value);
      return granted;
    });
  }
  const values = () => tried.map(({ value }) => value);

  test("tries the latest nonce first, and its own last; where that was stored, its own only", async () => {
    stored.set("a", "first");
    expect(await perform("extend")).toEqual(granted);
    expect(values()).toEqual(["second", "first"]);
    expect(await perform("extend")).toEqual(granted);
    expect(values()).toEqual(["own"]);
  });

  test("returns what is in the way, and tries all again where it was refused", async () => {
    stored.set("a", "somebody-else");
    expect(await perform("extend")).toEqual({ outcome: "lost", other: "somebody-else" });
    stored.set("a", "second");
    expect(await perform("extend")).toEqual(granted);
  });

  test("is not done by a check", async () => {
    stored.set("a", "first");
    expect(await perform("verify")).toEqual(granted);
    expect(await perform("extend")).toEqual(granted);
  });

  test("leaves the next handle all nonces until each endpoint has its own, then the first", async () => {
    stored = new Map(endpoints.map(({ name }) => [name, "second"]));
    await perform("extend", "a");
    expect(takeOver.earlierFor(settings)).toEqual(earlier);
    await perform("extend", "b");
    expect(takeOver.earlierFor(settings)).toEqual(["first"]);
  });

  test("checks the tombstone of the first nonce in extensions, until it is over", async () => {
    const tombstones = async (purpose: "verify" | "extend") => {
      await perform(purpose);
      return new Set(tried.map(({ tombstone }) => tombstone));
    };
    expect(await tombstones("extend")).toEqual(new Set(["p:void:{r}:first"]));
    expect(await tombstones("verify")).toEqual(new Set([undefined]));
    takeOver.note(roundOf("unavailable"));
    await Promise.resolve();
    expect(await tombstones("extend")).toEqual(new Set(["p:void:{r}:first"]));
    takeOver.note(roundOf("granted"));
    await Promise.resolve();
    expect(await tombstones("extend")).toEqual(new Set([undefined]));
  });

  test("is over with the first extension that a quorum grants, whatever comes after it", async () => {
    expect(takeOver.refusal).toMatch(/resumed before/);
    const round = roundOf("granted");
    takeOver.note(round);
    await round.result;
    takeOver.note(roundOf("refused"));
    await Promise.resolve();
    expect([takeOver.round === round, takeOver.refusal]).toEqual([true, undefined]);
  });

  describe("released", () => {
    /** Releases where each value has this answer, or fails with it. */
    const release = (answers: Record<string, Answer["outcome"] | Error>) =>
      takeOver.perform("release", { endpoint: endpoints[0]! } as never, own, async ({ value }) => {
        const answer = answers[value] ?? "lost";
        if (answer instanceof Error) throw answer;
        return { outcome: answer };
      });
    const failure = new Error("no answer");

    test.each([...earlier, "own"])("frees an endpoint that has `%s`, whatever fails", async (value) => {
      expect(await release({ first: failure, own: failure, [value]: "granted" })).toEqual(granted);
    });

    test("does not know that it is gone while one request has no answer", async () => {
      expect(await rejection(release({ second: failure }))).toBe(failure);
      expect(await release({})).toEqual({ outcome: "lost" });
    });
  });
});

describe("isSplit", () => {
  const lost = (other = ""): CellAnswer => ({ outcome: "lost", other });
  const failed = { outcome: "error", cause: new Error() } as never;

  test.each<[string, boolean, Parameters<typeof isSplit>[0]]>([
    ["each of three has one", true, [granted, lost("x"), lost("y")]],
    ["another has a quorum", false, [granted, lost("x"), lost("x")]],
    ["another has a quorum, and one a part", false, [granted, lost("x"), lost("x"), lost("x"), lost("y")]],
    ["it has a quorum itself", false, [granted, granted, granted]],
    ["one has failed", true, [granted, lost("x"), failed]],
    ["one is not answered", true, [granted, lost("x"), undefined]],
    ["it is gone from one, and others have it", true, [lost("x"), lost("y"), lost()]],
    ["it is gone from so many that nobody has a quorum", false, [lost("x"), lost(), lost()]],
    ["it is gone, and nobody has it", false, [granted, { outcome: "lost" }, failed]],
    ["two of five have a part", true, [granted, lost("x"), lost("x"), lost("y"), lost()]],
  ])("where %s: %s", (_case, expected, answers) => {
    expect(isSplit(answers)).toBe(expected);
  });
});
