import type { RedlockErrorCode } from "../../../src/errors.ts";
import { LockHeldError, QuorumError } from "../../../src/index.ts";
import { type Actor, drawOptions } from "./actor.ts";
import { boundRenewals, giveBack, type Held, useHandle } from "./handles.ts";

/** What can be set for an acquire. */
export type Options = Omit<ReturnType<typeof drawOptions>, "fencing"> & {
  readonly autoExtend: boolean;
  readonly maxHold: number;
  readonly signal: AbortSignal | undefined;
};

/** Something that can be waited for, and asked for without waiting. */
export interface Wish<Handle> {
  /** For the trace. */
  readonly what: string;
  /** How many rounds and withdrawals may follow when the waiting is over. */
  readonly rounds: number;
  readonly codes: readonly RedlockErrorCode[];
  acquire(options: Options): Promise<Handle>;
  tryAcquire(options: Options): Promise<Handle | null>;
}

/** What came of a wish: a handle, or why there is none; null: it was refused. */
export type Fulfilment<Handle> = { readonly invoked: number; readonly options: Options } & (
  | { readonly handle: Handle; readonly error?: undefined }
  | { readonly handle?: undefined; readonly error: unknown }
);

/** Asks for something that others want as well, in one of many ways. */
export async function wishFor<Handle>(actor: Actor, wish: Wish<Handle>): Promise<Fulfilment<Handle>> {
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
  const outcome = await calls.make(
    process,
    `${once ? "try " : ""}${wish.what} ${JSON.stringify(drawn)}`,
    (once ? 0 : drawn.wait) + wish.rounds * Math.min(drawn.timeout, drawn.ttl),
    wish.codes,
    () => (once ? wish.tryAcquire(options) : wish.acquire(options)),
    (error) => abort?.signal.reason === error,
  );
  if ("value" in outcome) {
    const handle = outcome.value;
    return handle === null ? { invoked, options, error: null } : { invoked, options, handle };
  }
  const late = world.now - abortedAt;
  if (outcome.error === abort?.signal.reason && late > 0) {
    world.violate("calls end", `${process.name} went on for ${late.toFixed()} ms after it was aborted`);
  }
  return { invoked, options, error: outcome.error };
}

/** How a refusal is counted. */
export function refusalOf(error: unknown): "refused" | "unavailable" | "aborted" {
  if (error === null || error instanceof LockHeldError) return "refused";
  return error instanceof QuorumError ? "unavailable" : "aborted";
}

/** Uses what was granted, and gives it back, or not, or twice. */
export async function spend(actor: Actor, held: Held, { timeout, backoff }: Options): Promise<void> {
  const plan = actor.draw.fraction();
  const forgets = plan < 0.08;
  if (forgets) actor.kept.add(held.hold.nonce);
  const extensions = await useHandle(actor, held, timeout);
  if (!forgets) await giveBack(actor, held, timeout);
  if (plan > 0.95) await giveBack(actor, held, timeout);
  boundRenewals(actor, held.hold, extensions, backoff.min);
}
