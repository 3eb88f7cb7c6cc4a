import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import type { Endpoint } from "../../../src/endpoints/endpoint.ts";
import { EndpointError, type Vote } from "../../../src/errors/errors.ts";
import { type Call, runRound, untilUsable } from "../../../src/quorum/round.ts";
import { type Answer, tally } from "../../../src/quorum/tally.ts";
import { gate } from "../../support/link.ts";
import { steppingRuntime } from "../../support/stepping-runtime.ts";

const seed = Date.now() % 2 ** 31;
console.log(`round SEED=${seed}`);

/** Endpoints whose answers the test gives. */
function rig(count: number, { isHasty = false, timeout = 100 } = {}) {
  const runtime = steppingRuntime();
  const replies = Array.from({ length: count }, () => gate<Answer | Error>());
  const endpoints: Endpoint[] = replies.map((_, index) => ({
    name: `e${index}`,
    dialect: "redis",
    send: () => Promise.reject(new Error("not used")),
  }));
  const onFailure = vi.fn();
  const perform = async (call: Call): Promise<Answer> => {
    const { endpoint } = call;
    call.isSent = true;
    const index = endpoints.indexOf(endpoint);
    const reply = await replies[index]!.passed;
    if (reply instanceof Error) throw reply;
    return reply;
  };
  const context = { endpoints, runtime, timeout, onFailure };
  const round = runRound(context, perform, { isHasty });
  const answer = (index: number, outcome: Answer["outcome"]) => replies[index]!.open({ outcome });
  const fail = (index: number, error: Error) => replies[index]!.open(error);
  return { runtime, endpoints, round, onFailure, answer, fail };
}

describe("a round", () => {
  test("an answer that has come, but was not read when the timeout fired, counts", async () => {
    const { runtime, round, answer } = rig(1);
    runtime.timer(100, () => answer(0, "granted"));
    await runtime.advance(100);
    expect(await round.result).toBe("granted");
  });

  test("has the result of the tally, in any order of answers and timeouts", async () => {
    const behaviour = fc.record({
      kind: fc.constantFrom("granted", "held", "lost", "error", "silent"),
      at: fc.integer({ min: 0, max: 140 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(behaviour, { minLength: 1, maxLength: 7 }), async (behaviours) => {
        const { round, answer, fail, runtime, onFailure } = rig(behaviours.length);
        for (const [index, { kind, at }] of behaviours.entries()) {
          if (kind === "silent") continue;
          runtime.timer(at + 0.5, () => {
            if (kind === "error") fail(index, new EndpointError(`e${index}`, "http", "500"));
            else answer(index, kind as Answer["outcome"]);
          });
        }
        await runtime.advance(200);
        const counted = behaviours.map(({ kind, at }) => (at + 0.5 < 100 ? kind : "silent"));
        const of = (...kinds: string[]) => counted.filter((kind) => kinds.includes(kind)).length;
        await round.done;
        expect(await round.result).toBe(tally(round.calls));
        expect(onFailure).toHaveBeenCalledTimes(of("error", "silent"));
        expect(round.votes().map(({ outcome }) => outcome)).toEqual(
          counted.map((kind) => (kind === "silent" ? "error" : kind)),
        );
        expect(runtime.pending).toBe(0);
      }),
      { seed, numRuns: 100 },
    );
  });
});

describe("a call", () => {
  test("keeps its failure after the timeout, and ends with the late answer", async () => {
    const { round, answer, runtime } = rig(1);
    await runtime.advance(100);
    const [call] = round.calls;
    answer(0, "granted");
    expect(await call!.ended).toEqual({ outcome: "granted" });
    expect(call!.answer).toMatchObject({ outcome: "error", cause: { kind: "timeout" } });
  });
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
