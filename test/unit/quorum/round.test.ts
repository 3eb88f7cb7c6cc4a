import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import type { Endpoint } from "../../../src/endpoints/endpoint.ts";
import { EndpointError, type Vote } from "../../../src/errors.ts";
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

const down = new EndpointError("e0", "network", "down");

describe("a round", () => {
  test("does not wait for an endpoint whose answer cannot change the result", async () => {
    const { round, answer, runtime } = rig(3);
    answer(2, "granted");
    answer(0, "granted");
    expect(await round.result).toBe("granted");
    expect(round.votes()).toEqual([
      { endpoint: "e0", outcome: "granted" },
      { endpoint: "e1", outcome: "pending" },
      { endpoint: "e2", outcome: "granted" },
    ]);
    let done = false;
    void round.done.then(() => {
      done = true;
    });
    await runtime.advance(0);
    expect(done).toBe(false);
    answer(1, "held");
    await round.done;
    expect(round.votes()[1]).toEqual({ endpoint: "e1", outcome: "held" });
    expect(runtime.pending).toBe(0);
  });

  test("an answer that has come, but was not read when the timeout fired, counts", async () => {
    const { runtime, round, answer } = rig(1);
    runtime.timer(100, () => answer(0, "granted"));
    await runtime.advance(100);
    expect(await round.result).toBe("granted");
  });

  test.each([
    [49, /: no answer within 49 ms: raise .* timeout \(in ms\)$/],
    [50, /: no answer within 50 ms$/],
  ])("says that a timeout of %i ms is short, where it is", async (timeout, message) => {
    const { runtime, round } = rig(1, { timeout });
    await runtime.advance(timeout);
    expect(round.votes()[0]!.cause!.message).toMatch(message);
  });

  test("receives the answers that arrive after it was cut short", async () => {
    const { round, answer, onFailure, runtime } = rig(4, { isHasty: true });
    answer(0, "granted");
    answer(1, "held");
    await runtime.advance(60);
    expect(await round.result).toBe("unavailable");
    await round.done;
    expect(round.votes().map(({ outcome }) => outcome)).toEqual(["granted", "held", "pending", "pending"]);
    expect(round.signal.aborted).toBe(false);
    answer(2, "granted");
    expect(await round.calls[2]!.ended).toEqual({ outcome: "granted" });
    expect(await round.result).toBe("unavailable");
    expect(onFailure).not.toHaveBeenCalled();
    await runtime.advance(40);
    expect(round.signal.aborted).toBe(true);
    // It did not answer in time, whether or not the round still waited for it.
    expect(onFailure.mock.calls.map(([error]) => error.endpoint)).toEqual(["e3"]);
    expect(runtime.pending).toBe(0);
  });

  test.each([
    ["an EndpointError", down, "network", "e0: down"],
    ["another error", new Error("odd reply"), "malformed", "e0: odd reply"],
  ])("%s becomes the vote's cause", async (_what, error, kind, message) => {
    const { round, fail, onFailure } = rig(1);
    fail(0, error);
    await round.done;
    const { cause } = round.votes()[0]!;
    expect(cause).toBeInstanceOf(EndpointError);
    expect(cause).toMatchObject({ kind, message, endpoint: "e0" });
    expect(cause === error || cause?.cause === error).toBe(true);
    expect(onFailure).toHaveBeenCalledExactlyOnceWith(cause);
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

describe("a hasty round", () => {
  /** ms until the result, with a grant and a refusal after so many ms and no other answers. */
  async function cutAfter(ms: number, timeout = 1_000): Promise<number> {
    const { round, answer, runtime } = rig(3, { isHasty: true, timeout });
    await runtime.advance(ms);
    answer(0, "granted");
    answer(1, "held");
    let at: number | undefined;
    void round.result.then(() => {
      at = round.elapsed();
    });
    await runtime.advance(2 * timeout);
    expect(await round.result).toBe("unavailable");
    return at!;
  }

  test.each([
    ["at least 50 ms more", 10, 60],
    ["as long again as the others took", 200, 400],
    ["no longer than the timeout", 900, 1_000],
  ])("that is split waits %s", async (_what, ms, end) => {
    expect(await cutAfter(ms)).toBeCloseTo(end, 5);
  });

  test.each(["granted", "held"] as const)("is not cut short while all answers are %s", async (outcome) => {
    const { round, answer, runtime } = rig(3, { isHasty: true });
    answer(0, outcome);
    await runtime.advance(99);
    answer(2, outcome);
    expect(await round.result).toBe(outcome === "granted" ? "granted" : "refused");
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

  test("is settled with its answer, whenever that is asked", async () => {
    const { round, answer } = rig(1);
    const [call] = round.calls;
    const early = call!.settled;
    answer(0, "held");
    await early;
    expect(call!.answer).toEqual({ outcome: "held" });
    await call!.settled;
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
