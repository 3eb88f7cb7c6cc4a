import {
  Idempotency,
  InProgressError,
  type Outcome,
  ResultUnavailableError,
  type RunContext,
  type RunOptions,
} from "../../../src/idempotency/index.ts";
import { LockHeldError } from "../../../src/index.ts";
import { quorumOf } from "../../../src/quorum/tally.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { lockIdOf } from "../sim/request.ts";
import { recordKeyOf } from "../sim/run-histories.ts";
import { type Actor, boundOf, timeoutOf } from "./actor.ts";
import type { Hold } from "./holds.ts";
import { oneTry } from "./programs.ts";
import { textAt } from "./store.ts";
import { longestWord } from "./world.ts";

// Calls of `run()`, and the checks of what they do.

const options = { ...oneTry, lease: 400 };

/** What differs from {@link options}. */
export interface OwnRun extends Omit<RunOptions<unknown>, "lock"> {
  readonly key?: string;
  readonly lock?: readonly string[];
  /** The handler throws. */
  readonly fails?: boolean;
  /** The handler's result cannot be stored. */
  readonly result?: "without JSON" | "too large";
  /** Another run must have ended before `wait` is over. */
  readonly isServed?: boolean;
}

/** A run's value in the histories when its result cannot be stored. */
const noResult = "no result";

const resultsWithout = { "without JSON": 1n, "too large": ".".repeat(longestWord + 1) };

/** Runs a key. Its handler takes so many ms. */
export function run(actor: Actor, length: number, own: OwnRun = {}): Promise<void> {
  return new Run(actor, length, own).make();
}

/** One call, and what is known of it. */
class Run {
  readonly #actor: Actor;
  readonly #length: number;
  readonly #key: string;
  readonly #own: OwnRun;
  /** What the handler returns, and what is recorded of it. */
  readonly #value: unknown;
  readonly #recorded: string;
  readonly #invoked: number;
  readonly #failure = new Error("the handler failed");
  /** The handler's; undefined: it has not begun. */
  #token: string | undefined;
  #isStored = false;

  constructor(actor: Actor, length: number, own: OwnRun) {
    const { runs, world } = actor.stage;
    this.#actor = actor;
    this.#length = length;
    this.#own = own;
    this.#key = own.key ?? "k";
    const { value } = runs.nextValue();
    this.#recorded = own.result ? noResult : value;
    this.#value = own.result ? resultsWithout[own.result] : value;
    this.#invoked = world.time;
  }

  async make(): Promise<void> {
    const { key: _, fails, result, isServed, ...own } = this.#own;
    const given = { ...options, scope: "sim", ...own };
    const { client, redlock } = this.#actor;
    client.timeout = timeoutOf(given);
    const outcome = await this.#actor.call({
      what: `run the key ${this.#key}`,
      // Counting an attempt takes two more rounds, and the fence of a lock one.
      bound: boundOf(given) + this.#length + (own.maxAttempts || own.lock ? 3 * client.timeout : 0),
      codes: [
        ...(["IN_PROGRESS", "LEASE_LOST", "NO_QUORUM", "FINGERPRINT_MISMATCH"] as const),
        ...(own.lock ? (["LOCK_HELD"] as const) : []),
        ...(own.maxAttempts ? (["DEAD_KEY"] as const) : []),
        "RESULT_UNAVAILABLE",
      ],
      isExpected: (error) => error === this.#failure,
      checkError: (error) => this.#checkError(error),
      run: () =>
        new Idempotency(redlock, {
          retention: 10_000_000,
          onEvent: ({ type, reason }) => this.#observe(type, reason),
        }).run<unknown>(this.#key, given, (context) => this.#handle(context, fails === true)),
    });
    if (outcome) this.#checkOutcome(outcome);
  }

  #observe(type: string, reason: string | undefined): void {
    const { runs, world } = this.#actor.stage;
    world.note(`${this.#actor.client.name} ${type} ${reason}`);
    if (type !== "executed" && (type !== "unstored" || reason === "no-quorum")) return;
    this.#isStored = true;
    runs.stored(this.#key, this.#recorded, this.#invoked);
  }

  async #handle(context: RunContext, fails: boolean): Promise<unknown> {
    const { client, stage } = this.#actor;
    const { runs, world, holds } = stage;
    const { maxAttempts, lock = [] } = this.#own;
    const { token, fence } = context;
    this.#token = token;
    world.note(`${client.name} runs ${this.#recorded}`);
    world.trace(() => `${client.name} runs its handler: ${this.#recorded}, fence ${fence}`);
    runs.begins(this.#key, client.name);
    if (maxAttempts) runs.counts(this.#key, client.name, maxAttempts);
    this.#checkVotes(token);
    this.#checkLease();
    // Not the token alone: an operator may free the locks, and not the key.
    const own = [this.#hold(context, { resources: [this.#key], nonce: `run ${token}` })];
    if (lock.length > 0) own.push(this.#hold(context, { resources: lock, nonce: token, fence }));
    for (const hold of own) holds.add(hold);
    await this.#actor.sleep(this.#length);
    for (const hold of own) hold.isOver = true;
    if (fails) {
      runs.failed(this.#key);
      throw this.#failure;
    }
    runs.returned(this.#key, this.#recorded);
    return this.#value;
  }

  #hold(
    { token, remaining, signal }: RunContext,
    of: Pick<Hold, "resources" | "nonce"> & { readonly fence?: number | undefined },
  ): Hold {
    const { client, stage } = this.#actor;
    return {
      ...of,
      invariant: of.nonce === token ? "mutual exclusion" : "one handler at a time",
      holder: token,
      client,
      acquired: stage.world.time,
      remaining,
      isLossReported: () => signal.aborted,
      isOver: false,
    };
  }

  /** A handler begins only where a quorum has granted its claim, all of it. */
  #checkVotes(token: string): void {
    const { world, trails, report } = this.#actor.stage;
    const { lock = [] } = this.#own;
    for (const id of lock.length > 0 ? [token, lockIdOf(token)] : [token]) {
      const { granted } = trails.acquireVotes(id);
      if (granted >= quorumOf(world.servers.length)) continue;
      report("a quorum decides", `${this.#actor.client.name} runs with ${granted} endpoints for ${id}`);
    }
  }

  /** No claim reaches further beyond the deadline than the time to store the result. */
  #checkLease(): void {
    const { client, stage } = this.#actor;
    const { world, report } = stage;
    const { deadline } = this.#own;
    if (deadline === undefined) return;
    const most = deadline - client.now() + client.timeout + 1;
    const longest = Math.max(
      ...world.servers.map((server) => {
        const record = world.contentsOf(server).entries.get(recordKeyOf(this.#key));
        return (record?.deadline ?? 0) - world.serverTime();
      }),
    );
    if (longest <= most) return;
    report("nothing is abandoned", `${client.name} claims ${this.#key} for ${longest} ms, and needs ${most}`);
  }

  #checkOutcome({ status, value, unstored }: Outcome<unknown>): void {
    const { stage, client } = this.#actor;
    const { runs, report, kept } = stage;
    if (status === "replayed") runs.replayed(this.#key, String(value), this.#invoked);
    else if (value !== this.#value) report("the routine's outcome wins", String(value));
    // Without a quorum the claim stands until its lease ends, and keeps other runs away.
    if (unstored === "no-quorum") kept.add(lockIdOf(this.#token!));
    if (!this.#isStored) return;
    const { world } = stage;
    for (const resource of this.#own.lock ?? []) {
      const key = keyOf("redlock", "lock", resource);
      const stands = world.servers.filter(
        (server) => textAt(world.contentsOf(server), key) === this.#token,
      ).length;
      if (2 * stands <= world.servers.length) continue;
      report(
        "a run frees its lock",
        `${client.name} has stored its result, and ${stands} endpoints keep ${resource}`,
      );
    }
  }

  /** The key is in progress only if an endpoint said so; the lock is held only if no quorum was left. */
  #checkError(error: unknown): void {
    const { trails, world, report, runs } = this.#actor.stage;
    const { name } = this.#actor.client;
    if (error instanceof ResultUnavailableError) runs.replayed(this.#key, noResult, this.#invoked);
    if (error instanceof InProgressError && this.#own.isServed) {
      report("waiters are served", `${name}: ${this.#key} is in progress for longer than its lease`);
    }
    const nonce = trails.lastRound(name);
    if (nonce === undefined) return;
    const { refused, byLock } = trails.acquireVotes(nonce);
    const { length: count } = world.servers;
    if (error instanceof InProgressError && refused === 0) {
      report("refusals are true", `${name}: the key is in progress, and no endpoint said so`);
    }
    if (error instanceof LockHeldError && byLock <= count - quorumOf(count)) {
      report("refusals are true", `${name}: the lock is held, and ${byLock} endpoints of ${count} said so`);
    }
  }
}
