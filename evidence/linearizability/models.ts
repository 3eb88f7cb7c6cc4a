import type { Model } from "./checker.ts";

/**
 * An operation on the permits of a semaphore, or on a lock. Grants with the same `holder` are one hold: every grant has a
 * holder of its own, except that all grants to one owner's token share one.
 *
 * - `acquire` → true: granted; the holder may rely on it until `until`. → false: refused, without effect.
 * - `extend` → true: the hold was there. → false: it was lost.
 * - `release` → true: it freed the hold. → false: the hold was gone already.
 * - `end`: what was granted until `until`, or less, may expire any time from now on. Its outcome is always unknown.
 */
export type HoldInput =
  | { readonly kind: "acquire" | "end"; readonly holder: string; readonly until: number }
  | { readonly kind: "extend" | "release"; readonly holder: string };

/** A permit that is held: its holder, and the latest end of its grants. */
export interface Hold {
  readonly holder: string;
  readonly until: number;
}

/**
 * At most `permits` holders at a time. An owner that acquires again while it holds joins its own hold. The hold expires
 * with the last of its grants, and each of the owner's handles extends or releases it.
 *
 * Which grants a hold has does not matter, only the last of their ends: with each of them in the state, an owner's
 * history with dozens of grants had more states than a search can visit.
 */
export function semaphoreModel(permits: number): Model<readonly Hold[], HoldInput, boolean> {
  return {
    initial: [],
    step(holds, input, output) {
      const hold = holds.find(({ holder }) => holder === input.holder);
      const others = holds.filter((other) => other !== hold);
      switch (input.kind) {
        case "acquire": {
          if (output === false) return [holds];
          if (!hold && holds.length >= permits) return [];
          const { holder, until } = input;
          return [[...others, { holder, until: Math.max(until, hold?.until ?? until) }]];
        }
        case "end":
          return hold && hold.until <= input.until ? [others] : [];
        case "extend":
          return output === undefined || output === (hold !== undefined) ? [holds] : [];
        case "release":
          if (output === false) return hold ? [] : [holds];
          return hold ? [others] : [];
      }
    },
    fingerprint: (holds) =>
      JSON.stringify(holds.map(({ holder, until }) => [holder, `${until}`]).sort(byFirst)),
  };
}

/** A lock is a semaphore with one permit. */
export const lockModel: Model<readonly Hold[], HoldInput, boolean> = semaphoreModel(1);

/** What a register may hold. */
export type Value = string | number | boolean | null;

/**
 * Drawing fences, and a register that they guard.
 *
 * - `grant`: a fence was drawn. It must be larger than all before, except that the handles of one owner are one holder,
 *   and may draw the same fence one after another.
 * - `open`: from now on only this fence and larger ones are accepted; returns the value.
 * - `write`: the same, and stores a value.
 * - `read`: returns the value, without a fence.
 */
export type FencedInput =
  | { readonly kind: "grant"; readonly fence: number; readonly owner?: string | undefined }
  | { readonly kind: "open"; readonly fence: number }
  | { readonly kind: "write"; readonly fence: number; readonly value: Value }
  | { readonly kind: "read" };

/** Only accesses with a smaller fence than one that the register has seen are refused. */
export interface FencedOutput {
  readonly accepted: boolean;
  /** The value that `open` or `read` returned; absent: it is not compared. */
  readonly value?: Value;
}

/** The largest fence drawn, the owner that drew it, the largest that the register has seen, and what it holds. */
export interface FencedState {
  readonly drawn: number;
  readonly owner: string | undefined;
  readonly seen: number;
  readonly value: Value;
}

/** Fences that strictly increase, and a register that refuses every fence but the largest that it has seen. */
export function fencedRegisterModel(value: Value): Model<FencedState, FencedInput, FencedOutput> {
  return {
    initial: { drawn: -Infinity, owner: undefined, seen: -Infinity, value },
    step(state, input, output) {
      const agrees = output?.value === undefined || output.value === state.value;
      if (input.kind === "read") return agrees ? [state] : [];
      const { fence } = input;
      // The fence of a grant of unknown outcome is unknown; later ones are larger in any case.
      if (input.kind === "grant") {
        const { owner } = input;
        const isShared = fence === state.drawn && owner !== undefined && owner === state.owner;
        return fence > state.drawn || isShared ? [{ ...state, drawn: fence, owner }] : [];
      }
      const acceptable = fence >= state.seen;
      if (output?.accepted === false) return acceptable ? [] : [state];
      if (!acceptable || !agrees) return [];
      return [{ ...state, seen: fence, value: input.kind === "write" ? input.value : state.value }];
    },
    fingerprint: ({ drawn, owner, seen, value: held }) => JSON.stringify([`${drawn} ${seen}`, owner, held]),
  };
}

function byFirst(a: readonly string[], b: readonly string[]): number {
  return a[0]! < b[0]! ? -1 : 1;
}
