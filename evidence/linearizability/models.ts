import type { Model } from "./checker.ts";

/**
 * An operation on the permits of a semaphore, or on a lock. Every grant has a holder of its own.
 *
 * - `acquire` → true: granted, with a fence if the lock has fences. → false: refused, without effect.
 * - `extend` → true: the hold was there. → false: it was lost.
 * - `release` → true: it freed the hold. → false: the hold was gone already.
 * - `end`: what was granted may expire any time from now on. Its outcome is always unknown.
 */
export interface HoldInput {
  readonly kind: "acquire" | "extend" | "release" | "end";
  readonly holder: string;
  /** Of an `acquire`. It must be larger than all before. */
  readonly fence?: number | undefined;
}

/** Who holds, and the largest fence that was drawn. */
export interface Holding {
  readonly holders: readonly string[];
  readonly drawn: number;
}

/** At most `permits` holders at a time. */
export function semaphoreModel(permits: number): Model<Holding, HoldInput, boolean> {
  return {
    initial: { holders: [], drawn: 0 },
    step(state, { kind, holder, fence }, output) {
      const { holders, drawn } = state;
      const isHeld = holders.includes(holder);
      const without = { drawn, holders: holders.filter((other) => other !== holder) };
      switch (kind) {
        case "acquire": {
          if (output === false) return [state];
          const isFree = !isHeld && holders.length < permits && (fence === undefined || fence > drawn);
          return isFree ? [{ holders: [...holders, holder], drawn: fence ?? drawn }] : [];
        }
        case "end":
          return isHeld ? [without] : [];
        case "extend":
          return output === undefined || output === isHeld ? [state] : [];
        case "release":
          if (output === false) return isHeld ? [] : [state];
          return isHeld ? [without] : [];
      }
    },
    fingerprint: ({ holders, drawn }) => JSON.stringify([[...holders].sort(), drawn]),
  };
}

/** A lock is a semaphore with one permit. */
export const lockModel: Model<Holding, HoldInput, boolean> = semaphoreModel(1);

/** What a register may hold. */
export type Value = string | number | boolean | null;

/**
 * A register that fences guard.
 *
 * - `open`: from now on only this fence and larger ones are accepted; returns the value.
 * - `write`: the same, and stores a value.
 */
export type FencedInput =
  | { readonly kind: "open"; readonly fence: number }
  | { readonly kind: "write"; readonly fence: number; readonly value: Value };

/** Only accesses with a smaller fence than one that the register has seen are refused. */
export interface FencedOutput {
  readonly accepted: boolean;
  /** The value that `open` returned; absent: it is not compared. */
  readonly value?: Value;
}

/** The largest fence that the register has seen, and what it holds. */
export interface FencedState {
  readonly seen: number;
  readonly value: Value;
}

/** A register that refuses every fence but the largest that it has seen. */
export function fencedRegisterModel(value: Value): Model<FencedState, FencedInput, FencedOutput> {
  return {
    initial: { seen: 0, value },
    step(state, input, output) {
      const { fence } = input;
      const isGood = fence >= state.seen;
      if (output?.accepted === false) return isGood ? [] : [state];
      if (!isGood || (output?.value !== undefined && output.value !== state.value)) return [];
      return [{ seen: fence, value: input.kind === "write" ? input.value : state.value }];
    },
    fingerprint: ({ seen, value: held }) => JSON.stringify([seen, held]),
  };
}

/**
 * The result of an event that a handler is to produce once.
 *
 * - `begin`: a handler begins, which it must not once a result is stored.
 * - `store`: a quorum has a result.
 * - `read`: a caller gets a result; "": there is none.
 */
export interface ResultInput {
  readonly kind: "begin" | "store" | "read";
  readonly result: string;
}

/** One result, which stands once it is stored. */
export const resultModel: Model<string, ResultInput, true> = {
  initial: "",
  step(stored, { kind, result }) {
    if (kind === "read") return stored === result ? [stored] : [];
    if (stored !== "") return [];
    return kind === "begin" ? [stored] : [result];
  },
  fingerprint: String,
};
