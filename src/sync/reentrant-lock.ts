import { checkText } from "../check/check.ts";
import { type LockClient, settingsOf } from "../lock/client.ts";
import { randomToken } from "../runtime/runtime.ts";
import { type Hold, Holds, type SyncOptions, type WaitOptions } from "./internal/hold.ts";
import { memberOf } from "./internal/members.ts";

/** Options of a {@link ReentrantLock}. */
export interface ReentrantLockOptions extends SyncOptions {
  /**
   * Name of the owner, 1 … 255 characters, for the owner's other processes, too. Everybody who knows it can acquire the
   * lock beside its holder. Default: a random name of this object's own.
   */
  readonly owner?: string | undefined;
}

/**
 * A lock that its owner can acquire again while holding it. It is free for others when the owner's last hold was
 * released or has expired. It does not exclude the concurrent work of one owner: everything that acquires with one
 * object, or with one `owner`, enters together. An owner that always enters again before it leaves starves the others.
 *
 * @example
 * const account = new ReentrantLock(redlock, "account:7", { ttl: 20_000 });
 * await using hold = await account.acquire();
 * await transfer(account); // acquires it again without waiting for itself
 */
export class ReentrantLock {
  readonly name: string;
  readonly #owner: string;
  readonly #holds: Holds;

  constructor(redlock: LockClient, name: string, given: ReentrantLockOptions = {}) {
    this.#holds = new Holds(redlock, name, given, {
      what: "a reentrant lock",
      call: "new ReentrantLock(redlock, name)",
      own: { owner: checkText },
    });
    this.name = name;
    this.#owner = given.owner ?? randomToken(settingsOf(redlock).runtime);
  }

  /** Neither console.log nor JSON shows it, because everybody who knows it can acquire the lock beside its holder. */
  get owner(): string {
    return this.#owner;
  }

  /**
   * Acquires the lock once more for its owner, waiting while another owner holds it.
   *
   * @throws LockHeldError when another owner still held it after `wait`
   * @throws QuorumError when too few endpoints answered usably in the last round
   * @throws the signal's reason. Acquired locks are rolled back
   */
  acquire(options: WaitOptions = {}): Promise<Hold> {
    return this.#holds.acquire(options, (settings) =>
      // A message does not tell the waiters' owners.
      memberOf(settings, this.name, { group: () => this.owner, waiter: { kind: "reentrant" } }),
    );
  }

  /**
   * Acquires the lock once more for its owner, without waiting.
   *
   * @returns null when another owner holds it, or owners that came at once got a part each
   * @throws QuorumError as {@link ReentrantLock.acquire} does
   */
  tryAcquire(options: WaitOptions = {}): Promise<Hold | null> {
    return this.#holds.unlessHeld(options, (given) => this.acquire(given));
  }
}
