import { expect } from "vitest";
import type { Lock, Redlock } from "../../../src/index.ts";
import { forceRelease, inspect } from "../../../src/lock/inspect.ts";
import { quorumOf } from "../../../src/quorum/tally.ts";
import { expectTyped } from "./messages.ts";
import type { Exchange, Network } from "./network.ts";
import type { Outcome } from "./virtual-runtime.ts";

// Operations of a lock, each judged by what the endpoints said to it.

/** One call, and what must be true of its outcome. */
export interface Judged {
  readonly call: () => Promise<unknown>;
  readonly judge: (outcome: Outcome<unknown>, said: readonly Exchange[]) => void;
}

/** How many endpoints said so to a question. */
function count(said: readonly Exchange[], claim: Exchange["said"], about: Partial<Exchange>): number {
  const fits = said.filter(
    (exchange) =>
      exchange.said === claim &&
      Object.entries(about).every(([name, value]) => exchange[name as keyof Exchange] === value),
  );
  return new Set(fits.map(({ endpoint }) => endpoint)).size;
}

/** Judges of all operations on one resource, or several. */
export function operations(network: Network, redlock: Redlock, resources: string | readonly string[]) {
  const total = network.endpoints.length;
  const quorum = quorumOf(total);
  const veto = total - quorum + 1;
  const first = typeof resources === "string" ? resources : resources[0]!;

  /** A lock is there only if a quorum said so, and those that said so truly have it. */
  function expectGranted(lock: Lock, said: readonly Exchange[]): void {
    const about = { op: "acquire", value: lock.value } as const;
    expect(count(said, "yes", about)).toBeGreaterThanOrEqual(quorum);
    expect(lock.remaining()).toBeGreaterThan(0);
    if (lock.fence === undefined) return;
    const { fence } = lock;
    expect(Number.isSafeInteger(fence) && fence > 0, `${fence}`).toBe(true);
    const takes = said.filter((exchange) => exchange.op === "acquire" && exchange.said === "yes");
    expect(takes.map((exchange) => exchange.fence)).toContain(fence);
    const raised = said.filter((exchange) => exchange.op === "raise" && exchange.said === "yes");
    const settled = new Set([
      ...takes.filter((exchange) => exchange.fence === fence).map(({ endpoint }) => endpoint),
      ...raised.map(({ endpoint }) => endpoint),
    ]);
    expect(settled.size).toBeGreaterThanOrEqual(quorum);
  }

  const acquire = (
    options: object,
    how: "acquire" | "tryAcquire",
  ): Judged & { readonly taken: () => Lock | undefined } => {
    let lock: Lock | undefined;
    return {
      taken: () => lock,
      async call() {
        lock = (await redlock[how](resources, options)) ?? undefined;
        return lock ?? null;
      },
      judge(outcome, said) {
        if ("error" in outcome) expectTyped(outcome.error, "LOCK_HELD", "NO_QUORUM");
        const held = "error" in outcome ? (outcome.error as { code: string }).code === "LOCK_HELD" : !lock;
        if (lock) expectGranted(lock, said);
        if (held) {
          const values = said.filter(({ op }) => op === "acquire").map(({ value }) => value);
          const refused = values.some((value) => count(said, "no", { op: "acquire", value }) >= veto);
          expect(refused, "held, and nobody said so").toBe(true);
        }
      },
    };
  };

  const using = (options: object): Judged => {
    let ran: Lock | undefined;
    const done = Symbol("done");
    return {
      call: () =>
        redlock.using(resources, options, (lock) => {
          ran = lock;
          return done;
        }),
      judge(outcome, said) {
        if ("error" in outcome) expectTyped(outcome.error, "LOCK_HELD", "NO_QUORUM");
        expect("value" in outcome && outcome.value).toBe(ran ? done : false);
        if (!ran) return;
        expect(count(said, "yes", { op: "acquire", value: ran.value })).toBeGreaterThanOrEqual(quorum);
      },
    };
  };

  const extend = (lock: Lock): Judged => {
    const before = lock.remaining();
    return {
      call: () => lock.extend(),
      judge(outcome, said) {
        if ("value" in outcome) {
          expect(count(said, "yes", { op: "extend" })).toBeGreaterThanOrEqual(quorum);
          expect(lock.remaining()).toBeGreaterThan(0);
          return;
        }
        expectTyped(outcome.error, "LOCK_LOST", "NO_QUORUM");
        const lost = (outcome.error as { code: string }).code === "LOCK_LOST";
        if (lost && before > 5_000) {
          expect(count(said, "no", { op: "extend" })).toBeGreaterThanOrEqual(veto);
        }
        expect(lock.remaining()).toBeLessThanOrEqual(Math.max(0, before));
      },
    };
  };

  const verify = (lock: Lock): Judged => {
    const alive = lock.remaining() > 5_000;
    return {
      call: () => lock.verify(),
      judge(outcome, said) {
        if ("error" in outcome) return expectTyped(outcome.error, "NO_QUORUM");
        if (outcome.value) expect(count(said, "yes", { op: "verify" })).toBeGreaterThanOrEqual(quorum);
        else if (alive) expect(count(said, "no", { op: "verify" })).toBeGreaterThanOrEqual(veto);
      },
    };
  };

  const release = (lock: Lock): Judged => ({
    call: () => lock.release(),
    judge(outcome, said) {
      if ("error" in outcome) return expectTyped(outcome.error, "NO_QUORUM");
      const about = { op: "release", value: lock.value } as const;
      if (outcome.value) expect(count(said, "yes", about)).toBeGreaterThanOrEqual(quorum);
      else expect(count(said, "no", about)).toBeGreaterThanOrEqual(veto);
    },
  });

  const inspecting = (): Judged => ({
    call: () => inspect(redlock, first),
    judge(outcome, said) {
      if ("error" in outcome) return expectTyped(outcome.error, "NO_QUORUM");
      const { held, remaining, fence, votes } = outcome.value as Awaited<ReturnType<typeof inspect>>;
      const sights = said.filter((exchange) => exchange.said === "yes" && exchange.other);
      const holders = sights.map(({ other }) => other!.slice(33) || other);
      const most = Math.max(0, ...holders.map((holder) => holders.filter((one) => one === holder).length));
      expect(held).toBe(most >= quorum);
      expect(Number.isSafeInteger(remaining) && remaining >= 0, `${remaining}`).toBe(true);
      const fences = said.flatMap((exchange) => exchange.fence ?? []);
      expect(fence).toBe(fences.length > 0 ? Math.max(...fences) : undefined);
      for (const [index, { outcome: vote }] of votes.entries()) {
        const [claim] = said.filter(({ endpoint }) => endpoint === index).slice(-1);
        expect(vote).toBe(claim?.said !== "yes" ? "error" : claim.other ? "held" : "free");
      }
    },
  });

  const forcing = (): Judged => ({
    call: () => forceRelease(redlock, first),
    judge(outcome, said) {
      if ("error" in outcome) return expectTyped(outcome.error, "NO_QUORUM");
      const freed = count(said, "yes", { op: "free" });
      expect(freed + count(said, "no", { op: "free" })).toBeGreaterThanOrEqual(quorum);
      expect(outcome.value).toBe(freed > 0);
    },
  });

  return { acquire, using, extend, verify, release, inspect: inspecting, forceRelease: forcing };
}
