import { expect } from "vitest";
import { type LockJSON, resume } from "../../src/handoff/index.ts";
import type { Lock, Redlock } from "../../src/index.ts";
import { forceRelease, inspect } from "../../src/inspect/index.ts";
import { quorumOf } from "../sim/field.ts";
import { expectTyped } from "./messages.ts";
import type { Exchange, Network } from "./network.ts";
import type { Outcome } from "./virtual-runtime.ts";

// Every operation of a lock, with the check of its outcome against what the endpoints answered.

/** One call, and the check of its outcome. */
export interface CheckedCall {
  readonly call: () => Promise<unknown>;
  /** @param said what the endpoints answered during the call */
  readonly check: (outcome: Outcome<unknown>, said: readonly Exchange[]) => void;
}

/** How many endpoints made a claim about requests with these fields. */
function count(said: readonly Exchange[], claim: Exchange["said"], about: Partial<Exchange>): number {
  const fits = said.filter(
    (exchange) =>
      exchange.said === claim &&
      Object.entries(about).every(([name, value]) => exchange[name as keyof Exchange] === value),
  );
  return new Set(fits.map(({ endpoint }) => endpoint)).size;
}

/** All operations on one resource, or several. */
export class LockOperations {
  readonly #redlock: Redlock;
  readonly #resources: string | readonly string[];
  readonly #first: string;
  readonly #quorum: number;
  /** Refusals that make a quorum impossible. */
  readonly #veto: number;

  constructor(network: Network, redlock: Redlock, resources: string | readonly string[]) {
    const total = network.endpoints.length;
    this.#redlock = redlock;
    this.#resources = resources;
    this.#first = typeof resources === "string" ? resources : resources[0]!;
    this.#quorum = quorumOf(total);
    this.#veto = total - this.#quorum + 1;
  }

  acquire(
    options: object,
    how: "acquire" | "tryAcquire",
  ): CheckedCall & { readonly acquired: () => Lock | undefined } {
    let lock: Lock | undefined;
    return {
      acquired: () => lock,
      call: async () => {
        lock = (await this.#redlock[how](this.#resources, options)) ?? undefined;
        return lock ?? null;
      },
      check: (outcome, said) => {
        if ("error" in outcome) expectTyped(outcome.error, "LOCK_HELD", "NO_QUORUM");
        const held = "error" in outcome ? (outcome.error as { code: string }).code === "LOCK_HELD" : !lock;
        if (lock) this.#expectGranted(lock, said);
        if (held) {
          const values = said.filter(({ op }) => op === "claim").map(({ value }) => value);
          const refused = values.some((value) => count(said, "no", { op: "claim", value }) >= this.#veto);
          expect(refused, "held, and nobody said so").toBe(true);
        }
      },
    };
  }

  using(options: object): CheckedCall {
    let ran: Lock | undefined;
    const done = Symbol("done");
    return {
      call: () =>
        this.#redlock.using(this.#resources, options, (lock) => {
          ran = lock;
          return done;
        }),
      check: (outcome, said) => {
        if ("error" in outcome) expectTyped(outcome.error, "LOCK_HELD", "NO_QUORUM");
        expect("value" in outcome && outcome.value).toBe(ran ? done : false);
        if (!ran) return;
        expect(count(said, "yes", { op: "claim", value: ran.token })).toBeGreaterThanOrEqual(this.#quorum);
      },
    };
  }

  extend(lock: Lock): CheckedCall {
    const before = lock.remaining();
    return {
      call: () => lock.extend(),
      check: (outcome, said) => {
        if ("value" in outcome) {
          expect(count(said, "yes", { op: "keep" })).toBeGreaterThanOrEqual(this.#quorum);
          expect(lock.remaining()).toBeGreaterThan(0);
          return;
        }
        expectTyped(outcome.error, "LOCK_LOST", "NO_QUORUM");
        const lost = (outcome.error as { code: string }).code === "LOCK_LOST";
        if (lost && before > 5_000) {
          expect(count(said, "no", { op: "keep" })).toBeGreaterThanOrEqual(this.#veto);
        }
        expect(lock.remaining()).toBeLessThanOrEqual(Math.max(0, before));
      },
    };
  }

  verify(lock: Lock): CheckedCall {
    const alive = lock.remaining() > 5_000;
    return {
      call: () => lock.verify(),
      check: (outcome, said) => {
        if ("error" in outcome) return expectTyped(outcome.error, "NO_QUORUM");
        if (outcome.value) expect(count(said, "yes", { op: "verify" })).toBeGreaterThanOrEqual(this.#quorum);
        else if (alive) expect(count(said, "no", { op: "verify" })).toBeGreaterThanOrEqual(this.#veto);
      },
    };
  }

  /** Resumes what was handed over. */
  resume(json: LockJSON): CheckedCall {
    return {
      call: () => resume(this.#redlock, json),
      check: (outcome, said) => {
        const about = { op: "keep", value: json.value } as const;
        if ("value" in outcome) {
          expect(count(said, "yes", about)).toBeGreaterThanOrEqual(this.#quorum);
          return;
        }
        expectTyped(outcome.error, "LOCK_LOST", "NO_QUORUM");
        if ((outcome.error as { code: string }).code === "NO_QUORUM") return;
        const refusals = count(said, "no", { op: "claim" }) + count(said, "no", about);
        expect(refusals).toBeGreaterThanOrEqual(this.#veto);
      },
    };
  }

  release(lock: Lock): CheckedCall {
    return {
      call: () => lock.release(),
      check: (outcome, said) => {
        expect(outcome).toHaveProperty("value");
        const { value } = outcome as { readonly value: boolean | undefined };
        if (value === undefined) return;
        const about = { op: "end", value: lock.token } as const;
        if (value) expect(count(said, "yes", about)).toBeGreaterThanOrEqual(this.#quorum);
        else expect(count(said, "no", about)).toBeGreaterThanOrEqual(this.#veto);
      },
    };
  }

  inspect(): CheckedCall {
    return {
      call: () => inspect(this.#redlock, this.#first),
      check: (outcome, said) => {
        if ("error" in outcome) return expectTyped(outcome.error, "NO_QUORUM");
        const { held, remaining, fence, votes } = outcome.value as Awaited<ReturnType<typeof inspect>>;
        // A rollback of an earlier call may be sent meanwhile.
        const looks = said.filter(({ op }) => op === "peek");
        const snapshots = looks.filter((exchange) => exchange.said === "yes" && exchange.other);
        const holders = snapshots.map(({ other }) => other);
        const most = Math.max(0, ...holders.map((holder) => holders.filter((one) => one === holder).length));
        expect(held).toBe(most >= this.#quorum);
        expect(Number.isSafeInteger(remaining) && remaining >= 0, `${remaining}`).toBe(true);
        const fences = looks.flatMap((exchange) => exchange.fence ?? []);
        expect(fence).toBe(fences.length > 0 ? Math.max(...fences) : undefined);
        for (const [index, { outcome: vote }] of votes.entries()) {
          const [claim] = looks.filter(({ endpoint }) => endpoint === index).slice(-1);
          expect(vote).toBe(claim?.said !== "yes" ? "error" : claim.other ? "held" : "free");
        }
      },
    };
  }

  forceRelease(): CheckedCall {
    return {
      call: () => forceRelease(this.#redlock, this.#first),
      check: (outcome, said) => {
        if ("error" in outcome) return expectTyped(outcome.error, "NO_QUORUM");
        const freed = count(said, "yes", { op: "free" });
        expect(freed + count(said, "no", { op: "free" })).toBeGreaterThanOrEqual(this.#quorum);
        expect(outcome.value).toBe(freed > 0);
      },
    };
  }

  /** A lock is returned only if a quorum granted it, and its fence only if a quorum has it or a larger one. */
  #expectGranted(lock: Lock, said: readonly Exchange[]): void {
    const about = { op: "claim", value: lock.token } as const;
    expect(count(said, "yes", about)).toBeGreaterThanOrEqual(this.#quorum);
    expect(lock.remaining()).toBeGreaterThan(0);
    if (lock.fence === undefined) return;
    const { fence } = lock;
    expect(Number.isSafeInteger(fence) && fence > 0, `${fence}`).toBe(true);
    const grants = said.filter((exchange) => exchange.op === "claim" && exchange.said === "yes");
    expect(grants.map((exchange) => exchange.fence)).toContain(fence);
    const raised = said.filter((exchange) => exchange.op === "raise" && exchange.said === "yes");
    const remembered = new Set([
      ...grants.filter((exchange) => exchange.fence === fence).map(({ endpoint }) => endpoint),
      ...raised.map(({ endpoint }) => endpoint),
    ]);
    expect(remembered.size).toBeGreaterThanOrEqual(this.#quorum);
  }
}
