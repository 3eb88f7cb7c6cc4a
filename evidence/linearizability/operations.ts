import type { Model, Operation } from "./checker.ts";

/** Distinguishes "not given" from an outcome that is given as undefined. */
interface Spec<Input, Output> {
  readonly input: Input;
  readonly output?: Output | undefined;
  readonly process?: string;
}

/** An operation from its span, for tables of histories. */
export function span<Input, Output>(
  invoked: number,
  returned: number,
  { input, output, process = "p" }: Spec<Input, Output>,
): Operation<Input, Output> {
  return { process, input, output, invoked, returned };
}

/** Reading and writing a number. */
export type RegisterInput = { readonly kind: "write"; readonly value: number } | { readonly kind: "read" };

/** A plain register with initial value 0. A read returns the value, a write true. */
export const registerModel: Model<number, RegisterInput, number | true> = {
  initial: 0,
  step(value, input, output) {
    if (input.kind === "write") return [input.value];
    return output === undefined || output === value ? [value] : [];
  },
  fingerprint: String,
};

/** A counter from which each draw takes 1 or 2, at random: outcomes that the state does not determine. */
export const looseCounterModel: Model<number, "draw" | "look", number | true> = {
  initial: 0,
  step(count, input, output) {
    if (input === "draw") return [count + 1, count + 2];
    return output === undefined || output === count ? [count] : [];
  },
  fingerprint: String,
};
