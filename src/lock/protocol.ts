import type { RedlockError } from "../errors/errors.ts";
import type { Next } from "../quorum/retry.ts";
import type { Call, Round } from "../quorum/round.ts";
import type { Answer } from "../quorum/tally.ts";
import { type Cell, type CellAnswer, claim, end, keep } from "../redis/cell.ts";
import { keyOf } from "../redis/keys.ts";
import { holderText } from "./note.ts";
import type { Settings } from "./options.ts";
import type { Waiter } from "./wake-up.ts";

export type Decision = Pick<Round, "result" | "votes">;

/**
 * The requests to one endpoint that claim, extend and give back something: all that distinguishes a plain lock, a
 * fenced lock and a synchronizer. A protocol belongs to one call, so it may remember what its rounds have shown. An
 * error of `confirm` or `next` ends the call.
 */
export interface Protocol<A extends CellAnswer = CellAnswer> {
  /** The next round's claim. All its requests get this object, which can serve as a key. */
  cell(nonce: string): Cell;
  claim(call: Call, cell: Cell, ttl: number): Promise<A>;
  /**
   * For example, brings the fence to a quorum.
   *
   * @returns a further claim that must be granted. Undefined: the quorum agrees already
   */
  confirm?(granted: Round<A>, cell: Cell, ttl: number): Promise<Decision | undefined> | Decision | undefined;
  /** Never creates the cell. With ttl 0 it only checks that the cell stands. */
  extend(call: Call, cell: Cell, ttl: number): Promise<Answer>;
  /**
   * Gives back the keys that the claim has acquired at this endpoint, or may yet acquire, even if it was refused. May
   * be repeated.
   */
  release(call: Call, cell: Cell, claim: Call, isAnnounced: boolean): Promise<Answer>;
  /** Whether an endpoint that has lost the cell may be claimed again. */
  readonly isRestorable: boolean;
  /** Known once a round is granted. */
  readonly fence: number | undefined;
  /** Called before a round without a lock is undone, so that `release` knows the finding. Default: a pause. */
  next?(failed: Round<A>): Promise<Next> | Next;
  /** Default: held by someone else. */
  readonly heldText?: string | undefined;
  /** For an error. Default: to acquire. */
  readonly action?: string | undefined;
  /** Default: a LockLostError. */
  lostError?(why: string): RedlockError;
  /** Default: it polls. */
  readonly waiter?: Waiter | undefined;
}

export function lockKeys(prefix: string, resources: readonly string[]): readonly string[] {
  return resources.map((resource) => keyOf(prefix, "lock", resource));
}

/** Each nonce has its own, because contenders would overwrite a shared one. */
export function tombstoneOf(prefix: string, resources: readonly string[], nonce: string): string {
  return `${keyOf(prefix, "void", resources[0]!)}:${nonce}`;
}

export function withoutTombstone(cell: Cell): Cell {
  return cell.tombstone ? { ...cell, tombstone: undefined } : cell;
}

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
      const target = claim.isOver ? withoutTombstone(cell) : cell;
      const released: Promise<Answer> = claim.hasDoneNothing
        ? Promise.resolve({ outcome: "lost" })
        : end(call, target);
      // Even if it has nothing here, because waiters may listen outside of the holder's quorum.
      if (isAnnounced) announce(settings, call, "lock", resources);
      return released;
    },
    isRestorable: true,
    fence: undefined,
    waiter: { kind: "lock" },
  };
}

/** Without a request of its own. */
export function announce(
  { prefix, wakeUp }: Settings,
  call: Call,
  kind: string,
  resources: readonly string[],
): void {
  for (const command of wakeUp?.announce(prefix, kind, resources) ?? []) call.tell(command);
}
