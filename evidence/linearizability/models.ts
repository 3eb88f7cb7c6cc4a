import type { Model } from "./checker.ts";

/**
 * An operation on the permits of a semaphore, or on a lock. Every grant has a holder of its own.
 *
 * - `acquire` → true: granted. → false: refused, without effect.
 * - `extend` → true: the hold was there. → false: it was lost.
 * - `release` → true: it freed the hold. → false: the hold was gone already.
 * - `end`: what was granted may expire any time from now on. Its outcome is always unknown.
 */
export interface HoldInput {
  readonly kind: "acquire" | "extend" | "release" | "end";
  readonly holder: string;
}

/** At most `permits` holders at a time. The state: who holds. */
export function semaphoreModel(permits: number): Model<readonly string[], HoldInput, boolean> {
  return {
    initial: [],
    step(holders, { kind, holder }, output) {
      const isHeld = holders.includes(holder);
      const others = holders.filter((other) => other !== holder);
      switch (kind) {
        case "acquire":
          if (output === false) return [holders];
          return isHeld || holders.length >= permits ? [] : [[...holders, holder]];
        case "end":
          return isHeld ? [others] : [];
        case "extend":
          return output === undefined || output === isHeld ? [holders] : [];
        case "release":
          if (output === false) return isHeld ? [] : [holders];
          return isHeld ? [others] : [];
      }
    },
    fingerprint: (holders) => JSON.stringify([...holders].sort()),
  };
}

/** A lock is a semaphore with one permit. */
export const lockModel: Model<readonly string[], HoldInput, boolean> = semaphoreModel(1);

/** What a register may hold. */
export type Value = string | number | boolean | null;

/**
 * Drawing fences, and a register that they guard.
 *
 * - `grant`: a fence was drawn. It must be larger than all before.
 * - `open`: from now on only this fence and larger ones are accepted; returns the value.
 * - `write`: the same, and stores a value.
 * - `read`: returns the value, without a fence.
 */
export type FencedInput =
  | { readonly kind: "grant" | "open"; readonly fence: number }
  | { readonly kind: "write"; readonly fence: number; readonly value: Value }
  | { readonly kind: "read" };

/** Only accesses with a smaller fence than one that the register has seen are refused. */
export interface FencedOutput {
  readonly accepted: boolean;
  /** The value that `open` or `read` returned; absent: it is not compared. */
  readonly value?: Value;
}

/** The largest fence drawn, the largest that the register has seen, and what it holds. */
export interface FencedState {
  readonly drawn: number;
  readonly seen: number;
  readonly value: Value;
}

/** Fences that strictly increase, and a register that refuses every fence but the largest that it has seen. */
export function fencedRegisterModel(value: Value): Model<FencedState, FencedInput, FencedOutput> {
  return {
    initial: { drawn: -Infinity, seen: -Infinity, value },
    step(state, input, output) {
      const agrees = output?.value === undefined || output.value === state.value;
      if (input.kind === "read") return agrees ? [state] : [];
      const { fence } = input;
      // The fence of a grant of unknown outcome is unknown; later ones are larger in any case.
      if (input.kind === "grant") return fence > state.drawn ? [{ ...state, drawn: fence }] : [];
      const acceptable = fence >= state.seen;
      if (output?.accepted === false) return acceptable ? [] : [state];
      if (!acceptable || !agrees) return [];
      return [{ ...state, seen: fence, value: input.kind === "write" ? input.value : state.value }];
    },
    fingerprint: ({ drawn, seen, value: held }) => JSON.stringify([`${drawn} ${seen}`, held]),
  };
}
