import type { Ask } from "../endpoints/ask.ts";
import type { RedlockError } from "../errors.ts";
import { acquire } from "../lock/acquire.ts";
import type { Lock } from "../lock/lock.ts";
import { holderText, parseHolder } from "../lock/note.ts";
import type { AcquireOptions, Settings } from "../lock/options.ts";
import { announce, lockKeys, tombstoneOf } from "../lock/protocol.ts";
import type { Waiter } from "../lock/wake-up.ts";
import type { Next } from "../quorum/retry.ts";
import type { Call, Round } from "../quorum/round.ts";
import { type Cell, type CellAnswer, claim, end, keep, tombstoneRetention } from "../redis/cell.ts";
import type { HoldProtocol } from "../sync/internal/hold.ts";

// How synchronizers have said until now what they ask of an endpoint. Each is to become a protocol of its own.

/** How a synchronizer differs from a plain lock. What it leaves out is done as for a lock. */
export interface LockStrategy<Reply extends CellAnswer = CellAnswer> {
  /** How the error says that it is held; default: by someone else. */
  readonly heldText?: string;
  /** How one that waits for it is told of releases. Default: it polls. */
  readonly waiter?: Waiter;
  /** The keys that the next round claims. */
  keys?(): readonly string[];
  /** Claims them on one endpoint. */
  acquire?(call: Ask, cell: Cell, ttl: number): Promise<Reply>;
  /** Hears of a granted round, and says which of its keys were granted. Default, or undefined: all. */
  granted?(round: Round<Reply>): readonly string[] | undefined;
  /** Gives it a new ttl; never creates it. ttl 0 only checks. */
  extend?(call: Ask, cell: Cell, ttl: number): Promise<CellAnswer>;
  /**
   * Releases it.
   *
   * @param tombstoneTtl for how many ms late requests that would acquire it are refused. 0: none can follow
   * @param notify whether those that wait are told
   */
  release?(call: Ask, cell: Cell, tombstoneTtl: number, notify: boolean): Promise<CellAnswer>;
  /** What follows a failed round, or an error. `isHeld`: whether it has shown that others hold it. Default: a pause. */
  afterFailedRound?(round: Round<Reply>, isHeld: boolean): Next | RedlockError;
}

/** A {@link LockStrategy} that is told how its call ends. */
export interface HoldStrategy<Reply extends CellAnswer = CellAnswer>
  extends LockStrategy<Reply>,
    Pick<HoldProtocol, "acquired" | "cleanUp"> {}

/** Acquires one hold of a synchronizer; see {@link acquire}. */
export function acquireWithRetry(
  settings: Settings,
  resources: readonly string[],
  options: AcquireOptions,
  strategy: LockStrategy,
): Promise<Lock> {
  return acquire(settings, resources, options, protocolOf(settings, resources, options.note, strategy));
}

export function protocolOf(
  settings: Settings,
  resources: readonly string[],
  note: string | undefined,
  strategy: HoldStrategy,
): HoldProtocol {
  const { prefix, wakeUp } = settings;
  const own = lockKeys(prefix, resources);
  /** By the cell that was claimed: what of it was granted. */
  const granted = new WeakMap<Cell, Cell>();
  const { waiter } = strategy;
  const endOne = (call: Call, cell: Cell, _: number, notify: boolean) => {
    const ended = end(call, cell);
    if (notify && waiter) announce(settings, call, waiter.kind, resources);
    return ended;
  };
  return {
    cell: (nonce) => ({ keys: strategy.keys?.() ?? own, value: holderText({ nonce, note }) }),
    claim: (call, cell, ttl) => strategy.acquire?.(call, cell, ttl) ?? claim(call, cell, ttl),
    confirm(round, cell) {
      granted.set(cell, { ...cell, keys: strategy.granted?.(round) ?? cell.keys });
      return undefined;
    },
    extend: (call, cell, ttl) => (strategy.extend ?? keep)(call, granted.get(cell) ?? cell, ttl),
    release(call, claimed, { isOver, hasDoneNothing }, isAnnounced) {
      const isHolder = granted.has(claimed);
      const cell = granted.get(claimed) ?? claimed;
      // A holder is asked about everywhere, because a ticket may stand where it was refused.
      if (!isHolder && hasDoneNothing) return Promise.resolve({ outcome: "lost" });
      const tombstoneTtl = isHolder && isOver ? 0 : tombstoneRetention;
      const tombstone = tombstoneOf(prefix, resources, parseHolder(cell.value).nonce);
      const target = isHolder && !isOver ? { ...cell, tombstone } : cell;
      const { release = endOne } = strategy;
      return release(call, target, tombstoneTtl, isAnnounced && wakeUp !== undefined);
    },
    isRestorable: false,
    fence: undefined,
    async next(round) {
      const isHeld = (await round.result) === "refused";
      const next = strategy.afterFailedRound?.(round, isHeld) ?? "pause";
      if (next instanceof Error) throw next;
      return next;
    },
    heldText: strategy.heldText,
    waiter,
    acquired: () => strategy.acquired?.(),
    cleanUp: () => strategy.cleanUp?.(),
  };
}
