import { expect, test } from "vitest";
import { EndpointError, type Vote } from "../../../src/errors/errors.ts";
import {
  type FailedAttempt,
  type Progress,
  type RetryCall,
  type RetrySettings,
  retry,
} from "../../../src/quorum/retry.ts";
import { type SteppingRuntime, steppingRuntime } from "../../support/stepping-runtime.ts";
import { watch } from "../../support/virtual-client.ts";

// The loop, with attempts that take a time and come to nothing. What calls make of it is in test/contract.

const refusing = (status: number, retryAfter?: number): Vote[] => {
  const cause = new EndpointError("e", "http", `HTTP ${status}`, { status, retryAfter });
  return [{ endpoint: "e", outcome: "error", cause }];
};

type Context = Partial<Omit<RetrySettings, "runtime">> & RetryCall & { readonly runtime?: SteppingRuntime };

/** Attempts that fail, the last of them again and again, and when they begin. */
function rig(
  { runtime = steppingRuntime(), ...context }: Context,
  attempts: readonly Partial<FailedAttempt<string> & { takes: number }>[],
) {
  const begun: number[] = [];
  const reported: (number | undefined)[] = [];
  let progress!: Progress;
  const call = watch(
    retry<string>({ runtime, backoff: () => 10, wait: 25, ...context }, context, async (given) => {
      progress = given;
      const { takes = 0, ...failed } = attempts[Math.min(begun.length, attempts.length - 1)]!;
      begun.push(runtime.elapsed);
      if (takes > 0) await new Promise<void>((resolve) => void runtime.timer(takes, resolve));
      return { next: "pause", end: () => "over", report: (ms) => reported.push(ms), ...failed };
    }),
  );
  return { runtime, begun, reported, call, progress: () => progress };
}

type Row = [what: string, Context, attempts: Parameters<typeof rig>[1], begun: number[], ends: number];

test.each<Row>([
  ["go on for as long as wait", {}, [{}], [0, 10, 20, 25], 25],
  ["are one where none may succeed any more", {}, [{ next: "end" }], [0], 0],
  ["are one without waiting", { wait: 0 }, [{}], [0], 0],
  ["end with the one under way then", {}, [{ takes: 20 }], [0, 25], 45],
  ["wait for what remains below a ms", { wait: 10.5 }, [{}], [0, 10, 11], 11],
  ["end at the deadline", { wait: Infinity, limit: 15 }, [{}], [0, 10, 15], 15],
  ["go on for another time where they say so", {}, [{ next: { within: 12 } }], [0, 10, 12], 12],
  ["but not beyond the deadline", { limit: 15 }, [{ next: { within: 100 } }], [0, 10, 15], 15],
  ["follow at once where they say so", {}, [{ next: "at-once" }, {}], [0, 0, 10, 20, 25], 25],
  ["follow at once even after the time", { wait: 0 }, [{ next: "at-once" }, {}], [0, 0], 0],
  ["pause as they say", {}, [{ next: { pause: 20 } }], [0, 20, 25], 25],
  ["pause no longer than until it is free", {}, [{ retryAfter: 4 }, {}], [0, 4, 14, 24, 25], 25],
  ["are one where the endpoints refuse for good", {}, [{ votes: refusing(401) }], [0], 0],
  ["are one even at once then", {}, [{ votes: refusing(401), next: "at-once" }], [0], 0],
  ["wait as long as the endpoints ask for", {}, [{ votes: refusing(429, 15) }, {}], [0, 15, 25], 25],
  ["wait so even at once", {}, [{ votes: refusing(429, 15), next: "at-once" }, {}], [0, 15, 25], 25],
  ["are one where the endpoints ask for more than wait", {}, [{ votes: refusing(429, 26) }], [0], 0],
  ["may not pause at all", { backoff: () => 0, wait: 1 }, [{ takes: 0.5 }], [0, 0.5], 1],
])("attempts %s", async (_, context, attempts, begun, ends) => {
  const { runtime, call, ...seen } = rig(context, attempts);
  await runtime.advance(Math.max(0, ends - 0.25));
  expect(call.settled).toBe(ends === 0);
  await runtime.advance(0.25);
  expect([call.value, seen.begun]).toEqual(["over", begun]);
  // The pause before the next one; undefined: there is none.
  expect(seen.reported).toHaveLength(begun.length);
  expect(seen.reported.at(-1)).toBe(undefined);
  expect(runtime.pending).toBe(0);
});

test("an abort does not undo what an attempt under way has come to", async () => {
  const runtime = steppingRuntime();
  const caller = new AbortController();
  const settings = { runtime, backoff: {}, wait: 0 };
  const value = await retry<string>(settings, { signal: caller.signal }, async () => {
    caller.abort();
    return { value: "acquired" };
  });
  expect(value).toBe("acquired");
});
