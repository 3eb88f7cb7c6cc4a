import { LockHeldError, QuorumError, type RedlockErrorCode } from "../../src/index.ts";
import { type Actor, drawOptions } from "./actor.ts";
import { checkExtensionRate, type HeldHandle, release, useHandle } from "./handles.ts";

/** The options that are drawn for an acquire. */
export type Options = Omit<ReturnType<typeof drawOptions>, "fencing"> & {
  readonly autoExtend: boolean;
  readonly maxHold: number;
  readonly signal: AbortSignal | undefined;
};

/** How a handle can be acquired: by waiting for it, or by trying once. */
export interface AcquirePlan<Handle> {
  /** For the trace. */
  readonly what: string;
  /** How many rounds and rollbacks may follow once the waiting is over. */
  readonly rounds: number;
  /** ms after which it asks whatever messages come. Default 30 000. */
  readonly longestPause?: number | undefined;
  /** By how much a pause may be longer than the backoff's. Default 1. */
  readonly pauses?: number;
  /** Codes of the errors that the acquire may reject with. */
  readonly codes: readonly RedlockErrorCode[];
  acquire(options: Options): Promise<Handle>;
  tryAcquire(options: Options): Promise<Handle | null>;
}

/** The outcome of a plan: a handle, or the error; a null error means that `tryAcquire` was refused. */
export type AcquireOutcome<Handle> = { readonly invoked: number; readonly options: Options } & (
  | { readonly handle: Handle; readonly error?: undefined }
  | { readonly handle?: undefined; readonly error: unknown }
);

/** Acquires with random options, sometimes without waiting, sometimes with an abort. */
export async function runAcquirePlan<Handle>(
  actor: Actor,
  plan: AcquirePlan<Handle>,
): Promise<AcquireOutcome<Handle>> {
  const { world, draw, process, calls } = actor;
  const { fencing: _, ...drawn } = drawOptions(actor);
  const abort = draw.chance(0.1) ? new AbortController() : undefined;
  let abortedAt = Number.POSITIVE_INFINITY;
  if (abort) {
    process.timer(draw.between(0, drawn.ttl), () => {
      abortedAt = world.now;
      abort.abort(new Error("given up"));
    });
  }
  const maxHold = draw.pick([drawn.ttl, 3 * drawn.ttl]);
  const options = { ...drawn, autoExtend: draw.chance(0.3), maxHold, signal: abort?.signal };
  const once = draw.chance(0.2);
  const invoked = world.now;
  const { rounds, pauses = 1 } = plan;
  const backoff = { ...options.backoff, max: pauses * options.backoff.max };
  // A waiter that has waited for long pauses for as long as its backoff allows.
  const longestPause = plan.longestPause && Math.max(plan.longestPause, backoff.max);
  const hasWaited = actor.wakeUps.begin(process, { ...options, backoff, rounds, longestPause });
  const outcome = await calls.make(process, {
    what: `${once ? "try " : ""}${plan.what} ${JSON.stringify(drawn)}`,
    bound: (once ? 0 : drawn.wait) + plan.rounds * Math.min(drawn.timeout, drawn.ttl),
    codes: plan.codes,
    run: () => (once ? plan.tryAcquire({ ...options, wait: 0 }) : plan.acquire(options)),
    isExpected: (error) => abort?.signal.reason === error,
  });
  hasWaited();
  if ("value" in outcome) {
    const handle = outcome.value;
    return handle === null ? { invoked, options, error: null } : { invoked, options, handle };
  }
  const late = world.now - abortedAt;
  const detail = () => `${process.name} went on for ${late.toFixed()} ms after it was aborted`;
  if (abort && outcome.error === abort.signal.reason) world.check("calls end", late <= 0, detail);
  return { invoked, options, error: outcome.error };
}

/** The name under which a failed acquire is counted. */
export function failureKind(error: unknown): "refused" | "unavailable" | "aborted" {
  if (error === null || error instanceof LockHeldError) return "refused";
  return error instanceof QuorumError ? "unavailable" : "aborted";
}

/** Uses a hold, then releases it once, twice or never. */
export async function useAndRelease(actor: Actor, held: HeldHandle, options: Options): Promise<void> {
  const { timeout } = options;
  const fate = actor.draw.fraction();
  const forgets = fate < 0.08;
  if (forgets) actor.kept.add(held.hold.nonce);
  const extensions = await useHandle(actor, held, timeout);
  if (!forgets) await release(actor, held, timeout);
  if (fate > 0.95) await release(actor, held, timeout);
  checkExtensionRate(actor, held.hold, extensions, options);
}
