import { describe, expect, test } from "vitest";
import type { Endpoint } from "../../../src/endpoints/endpoint.ts";
import { EndpointError, type Vote } from "../../../src/errors/errors.ts";
import { type Call, runRound, untilUsable } from "../../../src/quorum/round.ts";
import type { Answer } from "../../../src/quorum/tally.ts";
import { gate } from "../../support/link.ts";
import { steppingRuntime } from "../../support/stepping-runtime.ts";

/** A round of one endpoint, which answers the request by hand. As `fetch` does, it ends the request with its signal. */
function rig({ isDeaf = false } = {}) {
  const runtime = steppingRuntime();
  const { passed, open } = gate<Answer>();
  const send: Endpoint["send"] = (_command, signal) =>
    new Promise((resolve, reject) => {
      if (!isDeaf) signal.addEventListener("abort", () => reject(signal.reason));
      void passed.then(resolve);
    });
  const endpoints = [{ name: "e", dialect: "redis", send } as const];
  const perform = (call: Call) => call.send(["PING"]) as Promise<Answer>;
  const round = runRound({ endpoints, runtime, timeout: 100 }, perform);
  return { runtime, round, grant: () => open({ outcome: "granted" }) };
}

// In a busy process the timer fires before the answers are read that came meanwhile.
test("an answer that has come, but was not read when the timeout fired, counts", async () => {
  const { runtime, round, grant } = rig();
  runtime.timer(100, grant);
  await runtime.advance(100);
  expect(await round.result).toBe("granted");
});

test("a call keeps its failure after the timeout, and ends with the late answer", async () => {
  const { runtime, round, grant } = rig({ isDeaf: true });
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
