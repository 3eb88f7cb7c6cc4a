import { checkText } from "../check.ts";
import { acquireWithRetry } from "../lock/acquire.ts";
import { Lock } from "../lock/lock.ts";
import { checkAcquire } from "../lock/options.ts";
import type { Redlock } from "../redlock.ts";
import { randomToken } from "../runtime.ts";
import {
  checkName,
  type Hold,
  holdOf,
  type SyncOptions,
  syncSettings,
  unlessHeld,
  type WaitOptions,
} from "./internal/hold.ts";
import { memberStrategy, membershipOf } from "./internal/members.ts";

/** Whose the holds are, and the defaults of every acquire. */
export interface ReentrantLockOptions extends SyncOptions {
  /**
   * Who holds it, 1 … 255 characters; no secret, but whoever knows it enters beside its holder. Default: a random one,
   * this object's own. Another process that is to be the same owner is given it.
   */
  readonly owner?: string | undefined;
}

/**
 * A lock that its owner may take again while he holds it. It is free for others when the last of his holds is given
 * back or has expired. Each hold has a ttl and a validity of its own: one that lasts does not prolong another.
 *
 * It excludes owners from each other, not what one owner does at the same time: all that acquire with one object, or
 * one `owner`, go in together. An owner who always enters again before he leaves keeps the others out for as long.
 *
 * @example
 * const account = new ReentrantLock(redlock, "account:7", { ttl: 20_000 });
 * await using hold = await account.acquire();
 * await transfer(account); // takes it again, and gives it back, without waiting for itself
 */
export class ReentrantLock {
  readonly name: string;
  readonly owner: string;
  readonly #redlock: Redlock;
  readonly #options: SyncOptions;

  /** @throws TypeError | RangeError when an argument is wrong */
  constructor(redlock: Redlock, name: string, { owner, ...options }: ReentrantLockOptions = {}) {
    this.name = checkName(name);
    this.#redlock = redlock;
    this.#options = options;
    const { runtime } = syncSettings(redlock, options);
    this.owner = owner === undefined ? randomToken(runtime) : checkText("owner", owner);
  }

  /**
   * Takes it once more for its owner, waiting while another owner holds it.
   *
   * @throws LockHeldError when another owner still held it after `wait`
   * @throws QuorumError when too few endpoints answered usably in the last round
   * @throws the signal's reason when it aborts; what it took, or may yet take, is withdrawn
   */
  async acquire(options: WaitOptions = {}): Promise<Hold> {
    const { name, owner } = this;
    const { signal, deadline } = checkAcquire(options);
    const settings = syncSettings(this.#redlock, this.#options, options);
    const strategy = memberStrategy(membershipOf(settings, "reentrant", name));
    const outcome = await acquireWithRetry(settings, [name], { signal, deadline, token: owner }, strategy);
    if (!(outcome instanceof Lock)) throw outcome;
    return holdOf(outcome);
  }

  /**
   * Takes it once more for its owner, without waiting.
   *
   * @returns null when another owner holds it, or owners that came at the same moment got a part each
   * @throws QuorumError as {@link ReentrantLock.acquire} does
   */
  tryAcquire(options: WaitOptions = {}): Promise<Hold | null> {
    return unlessHeld(this.acquire({ ...options, wait: 0 }));
  }
}
