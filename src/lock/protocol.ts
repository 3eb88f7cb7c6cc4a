import type { RedlockError } from "../errors/errors.ts";
import type { Next } from "../quorum/retry.ts";
import type { Call, Round } from "../quorum/round.ts";
import type { Answer } from "../quorum/tally.ts";
import { type Cell, type CellAnswer, claim, end, keep } from "../redis/cell.ts";
import { keyOf } from "../redis/keys.ts";
import { holderText } from "./note.ts";
import type { Settings } from "./options.ts";
import type { Waiter } from "./wake-up.ts";

/** What decides whether a claim stands: as a rule, a round. */
export type Decision = Pick<Round, "result" | "votes">;

/**
 * The requests to one endpoint that claim, extend and give back something. A plain lock, a fenced lock and a synchronizer
 * differ in this alone: rounds, waiting, validity and undoing are common to all.
 *
 * A protocol belongs to one call, so it may remember what its rounds have shown. An error that `confirm` or `next` throws ends
 * the call, once the round is undone.
 */
export interface Protocol<A extends CellAnswer = CellAnswer> {
  /**
   * The keys and the value of the next round's claim. Each round asks for it once, with a fresh nonce. All other requests of
   * the round get this very object, so a protocol can use it to look up its notes on a round.
   */
  cell(nonce: string): Cell;
  /** Claims the cell at one endpoint. */
  claim(call: Call, cell: Cell, ttl: number): Promise<A>;
  /**
   * The values that a quorum must agree on before the holder is told, for example the fence. Default: nothing.
   *
   * @returns a further claim that must be granted, as a rule a second round. Undefined: they agree already
   */
  confirm?(granted: Round<A>, cell: Cell, ttl: number): Promise<Decision | undefined> | Decision | undefined;
  /** Gives the cell a new ttl. Never creates it. With ttl 0 it only checks that the cell stands. */
  extend(call: Call, cell: Cell, ttl: number): Promise<Answer>;
  /**
   * Gives back exactly the keys that the claim has acquired there, or may yet acquire. Asked at every endpoint, at the end of a
   * hold and after a failed round, because a claim that was refused may have left something there. May be repeated.
   *
   * @param claim the request that claimed it there: it knows whether it has done nothing, or may still be executed
   * @param isAnnounced whether those that wait are told
   */
  release(call: Call, cell: Cell, claim: Call, isAnnounced: boolean): Promise<Answer>;
  /** Whether an endpoint that has lost the cell may be claimed again while a quorum has it. */
  readonly isRestorable: boolean;
  /** The fence, once a round is granted. Undefined: it has none. */
  readonly fence: number | undefined;
  /**
   * The step after a round that has brought no lock: it was not granted, or granted too late, or `confirm` has not granted it.
   * It is called before the round is undone, so that `release` knows its finding. Default: a pause.
   */
  next?(failed: Round<A>): Promise<Next> | Next;
  /** How the error says that it is held. Default: by someone else. */
  readonly heldText?: string | undefined;
  /** The purpose of the quorum, in the words of an error. Default: to acquire. */
  readonly action?: string | undefined;
  /** The error of a hold that is lost. Default: a LockLostError. */
  lostError?(why: string): RedlockError;
  /** How one that waits is told of releases. Default: it polls. */
  readonly waiter?: Waiter | undefined;
}

/** The keys of the plain locks of these resources. */
export function lockKeys(prefix: string, resources: readonly string[]): readonly string[] {
  return resources.map((resource) => keyOf(prefix, "lock", resource));
}

/**
 * The key that refuses late requests of a claim. Each nonce has one of its own, because the keys of two contenders would
 * overwrite each other.
 */
export function tombstoneOf(prefix: string, resources: readonly string[], nonce: string): string {
  return `${keyOf(prefix, "void", resources[0]!)}:${nonce}`;
}

/** The cell for a request that checks no tombstone and leaves none. */
export function withoutTombstone(cell: Cell): Cell {
  return cell.tombstone ? { ...cell, tombstone: undefined } : cell;
}

/** A plain lock. Several resources are claimed by a script, which checks a tombstone, but `SET … NX` checks none. */
export function plain(settings: Settings, resources: readonly string[], note?: string): Protocol {
  const { prefix } = settings;
  const keys = lockKeys(prefix, resources);
  return {
    cell(nonce) {
      const cell = { keys, value: holderText({ nonce, note }) };
      return keys.length === 1 ? cell : { ...cell, tombstone: tombstoneOf(prefix, resources, nonce) };
    },
    claim,
    extend: (call, cell, ttl) => keep(call, withoutTombstone(cell), ttl),
    release(call, cell, claim, isAnnounced) {
      // If a request may still be executed that claims it, its tombstone stays behind.
      const target = claim.isOver ? withoutTombstone(cell) : cell;
      const released: Promise<Answer> = claim.hasDoneNothing
        ? Promise.resolve({ outcome: "lost" })
        : end(call, target);
      // Even if it has nothing here: a holder has a quorum, and perhaps not the endpoint at which all listen.
      if (isAnnounced) announce(settings, call, "lock", resources);
      return released;
    },
    isRestorable: true,
    fence: undefined,
    waiter: { kind: "lock" },
  };
}

/** Tells those that wait, in the request of the release that was sent before it. */
export function announce(
  { prefix, wakeUp }: Settings,
  call: Call,
  kind: string,
  resources: readonly string[],
): void {
  for (const command of wakeUp?.announce(prefix, kind, resources) ?? []) call.tell(command);
}
