import { LeaseLostError } from "../../../src/idempotency/index.ts";
import { longestWord } from "../sim/link.ts";
import { recordKeyOf } from "../sim/run-histories.ts";
import { Run, type RunPlan } from "../sim/work-idempotency.ts";
import type { Actor } from "./actor.ts";
import { timeoutOf } from "./actor.ts";
import { oneTry } from "./programs.ts";

const options = { ...oneTry, lease: 400 };

/** What differs from {@link options}. */
export interface OwnRun extends Partial<RunPlan["options"]>, Pick<RunPlan, "lock" | "maxAttempts"> {
  readonly key?: string;
  /** The handler throws. */
  readonly fails?: boolean;
  /** The handler's result cannot be stored. */
  readonly result?: "without JSON" | "too large";
  /** Another run must have ended before `wait` is over. */
  readonly isServed?: boolean;
}

const resultsWithout = { "without JSON": 1n, "too large": ".".repeat(longestWord + 1) };

/** Runs a key. Its handler takes so many ms. */
export async function run(actor: Actor, length: number, own: OwnRun = {}): Promise<void> {
  const { key = "k", fails = false, result, isServed = false, lock, maxAttempts, ...rest } = own;
  const { client, stage, simulated } = actor;
  const given = { ...options, ...rest };
  client.timeout = timeoutOf({ ...given, ttl: given.lease });
  const codes = ["LEASE_LOST", "NO_QUORUM", "FINGERPRINT_MISMATCH", "RESULT_UNAVAILABLE"] as const;
  const outcome = await new Run(simulated, stage.runs, {
    key,
    options: given,
    length,
    throws: fails,
    codes: [
      ...codes,
      ...(isServed ? [] : (["IN_PROGRESS"] as const)),
      ...(lock ? (["LOCK_HELD"] as const) : []),
      ...(maxAttempts ? (["DEAD_KEY"] as const) : []),
    ],
    resultOf: (value) => ({ result: result ? resultsWithout[result] : value, maxResult: 1_000_000 }),
    updates: false,
    ...(lock && { lock }),
    ...(maxAttempts && { maxAttempts }),
  }).make();
  if (!("error" in outcome) || !(outcome.error instanceof LeaseLostError)) return;
  const record = recordKeyOf(key);
  const isLost = stage.watch.isContended(record, stage.shared.wire.lastRound(client, record));
  const what = () => `${client.name}: ${String(outcome.error)}, but there is no other run`;
  stage.world.check("refusals are true", isLost, what);
}
