import { describe, expect, test } from "vitest";
import { EndpointError, type Vote } from "../../../src/errors/errors.ts";
import { runRound, untilUsable } from "../../../src/quorum/round.ts";
import type { Answer } from "../../../src/quorum/tally.ts";
import { gate } from "../../support/link.ts";
import { steppingRuntime } from "../../support/stepping-runtime.ts";

/** A round of one endpoint, whose answer the test gives. */
function rig() {
  const runtime = steppingRuntime();
  const { passed, open } = gate<Answer>();
  const send = () => Promise.reject(new Error("not used"));
  const endpoints = [{ name: "e", dialect: "redis", send } as const];
  const round = runRound({ endpoints, runtime, timeout: 100 }, () => passed);
  return { runtime, round, grant: () => open({ outcome: "granted" }) };
}

test("an answer that has come, but was not read when the timeout fired, counts", async () => {
  const { runtime, round, grant } = rig();
  runtime.timer(100, grant);
  await runtime.advance(100);
  expect(await round.result).toBe("granted");
});

test("a call keeps its failure after the timeout, and ends with the late answer", async () => {
  const { runtime, round, grant } = rig();
  await runtime.advance(100);
  grant();
  expect(await round.calls[0]!.ended).toEqual({ outcome: "granted" });
  expect(round.calls[0]!.answer).toMatchObject({ outcome: "error", cause: { kind: "timeout" } });
});

describe("untilUsable", () => {
  const error = (status: number, retryAfter?: number): Vote => {
    const cause = new EndpointError("e", "http", `HTTP ${status}`, { status, retryAfter });
    return { endpoint: "e", outcome: "error", cause };
  };
  const [lasting, passing, later, soon] = [error(401), error(500), error(429, 70), error(429, 20)];
  const held: Vote = { endpoint: "e", outcome: "held" };

  test.each<[votes: readonly Vote[], expected: number]>([
    [[], 0],
    [[lasting], Infinity],
    [[later], 70],
    [[passing], 0],
    [[lasting, held], Infinity],
    [[lasting, held, passing], 0],
    [[lasting, passing, lasting], Infinity],
    [[lasting, later, held], 70],
    [[soon, later, held], 20],
    [[held, later, passing], 0],
    [[soon, later, soon], 20],
  ])("%#", (votes, expected) => {
    expect(untilUsable(votes)).toBe(expected);
  });
});
