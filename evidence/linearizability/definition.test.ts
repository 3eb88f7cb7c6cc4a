import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { seeded } from "../../test/support/seeded.ts";
import { linearizable, type Model, type Operation } from "./checker.ts";
import {
  type FencedInput,
  type FencedOutput,
  fencedRegisterModel,
  type HoldInput,
  type ResultInput,
  resultModel,
  semaphoreModel,
} from "./models.ts";
import { looseCounterModel, type RegisterInput, registerModel } from "./operations.ts";

/** Inputs with a possible outcome; few values, so that about half of the histories are linearizable. */
type Outcome<Input, Output> = readonly [Input, Output | undefined];

/** Up to `most` operations in a short time, so that many are concurrent and many tie. */
function histories<Input, Output>(
  inputs: fc.Arbitrary<Outcome<Input, Output>>,
  most: number,
): fc.Arbitrary<Operation<Input, Output>[]> {
  const operation = fc
    .record({
      outcome: inputs,
      invoked: fc.integer({ min: 0, max: 12 }),
      lasts: fc.integer({ min: 0, max: 4 }),
      unknown: fc.integer({ min: 0, max: 3 }).map((drawn) => drawn === 0),
      open: fc.boolean(),
    })
    .map(({ outcome: [input, output], invoked, lasts, unknown, open }) => ({
      process: "p",
      input,
      output: unknown ? undefined : output,
      invoked,
      returned: unknown && open ? Infinity : invoked + lasts,
    }));
  return fc.array(operation, { minLength: 1, maxLength: most, size: "max" });
}

const bit = fc.integer({ min: 0, max: 1 });
const accesses: fc.Arbitrary<Outcome<RegisterInput, number | true>> = fc.oneof(
  bit.map((value) => [{ kind: "read" }, value] as const),
  bit.map((value) => [{ kind: "write", value }, true] as const),
);
const draws: fc.Arbitrary<Outcome<"draw" | "look", number | true>> = fc.oneof(
  fc.constant(["draw", true] as const),
  fc.integer({ min: 0, max: 4 }).map((count) => ["look", count] as const),
);
const fence = fc.integer({ min: 1, max: 3 });
type Held = Outcome<HoldInput, boolean>;
const holder = fc.constantFrom("a", "b", "c");
const holds: fc.Arbitrary<Held> = fc.oneof(
  holder.map((name): Held => [{ kind: "acquire", holder: name }, true]),
  fc.tuple(holder, fence).map(([name, of]): Held => [{ kind: "acquire", holder: name, fence: of }, true]),
  holder.map((name): Held => [{ kind: "end", holder: name }, undefined]),
  fc
    .tuple(fc.constantFrom("extend" as const, "release" as const), holder, fc.integer({ min: 0, max: 3 }))
    .map(([kind, name, drawn]): Held => [{ kind, holder: name }, drawn > 0]),
);
type Guarded = Outcome<FencedInput, FencedOutput>;
const guarded: fc.Arbitrary<Guarded> = fc.oneof(
  fc.tuple(fence, bit).map(
    (of): Guarded => [
      { kind: "open", fence: of[0] },
      { accepted: true, value: of[1] },
    ],
  ),
  fence.map((drawn): Guarded => [{ kind: "open", fence: drawn }, { accepted: false }]),
  fc
    .tuple(fence, bit, fc.boolean())
    .map(([drawn, value, accepted]): Guarded => [{ kind: "write", fence: drawn, value }, { accepted }]),
);

const results: fc.Arbitrary<Outcome<ResultInput, true>> = fc
  .record({
    kind: fc.constantFrom("begin" as const, "store" as const, "read" as const),
    result: fc.constantFrom("a", "b"),
  })
  .map((input) => [input, true]);

/** Compares the checker with the definition, and checks each explanation that it returns. */
function compare<State, Input, Output>(
  model: Model<State, Input, Output>,
  inputs: fc.Arbitrary<Outcome<Input, Output>>,
): void {
  const outcomes = { yes: 0, no: 0, undecided: 0 };
  const parameters = seeded(300);
  fc.assert(
    fc.property(histories(inputs, 6), (history) => {
      const result = linearizable(model, history);
      outcomes[result.outcome] += 1;
      expect(result.outcome).toBe(linearizableByDefinition(model, history) ? "yes" : "no");
      if (result.outcome === "undecided") return;
      expect(explains(model, result.order)).toBe(true);
      expect(new Set(result.order).size).toBe(result.order.length);
      const missing = history.filter((operation) => !result.order.includes(operation));
      if (result.outcome === "yes") {
        expect(missing.filter(({ output }) => output !== undefined)).toEqual([]);
        return;
      }
      // No stuck operation is in the order, and one with a known outcome is stuck.
      expect(missing).toEqual(expect.arrayContaining([...result.stuck]));
      expect(result.stuck.some(({ output }) => output !== undefined)).toBe(true);
    }),
    parameters,
  );
  expect(outcomes.yes, JSON.stringify(outcomes)).toBeGreaterThan(parameters.numRuns / 10);
  expect(outcomes.no, JSON.stringify(outcomes)).toBeGreaterThan(parameters.numRuns / 10);
}

describe("linearizable agrees with the definition", () => {
  it("for a register", () => compare(registerModel, accesses));
  it("for a counter whose steps nobody knows", () => compare(looseCounterModel, draws));
  it("for a lock", () => compare(semaphoreModel(1), holds));
  it("for a semaphore", () => compare(semaphoreModel(2), holds));
  it("for a register guarded by fences", () => compare(fencedRegisterModel(0), guarded));
  it("for the result of an event", () => compare(resultModel, results));
});

/**
 * Tests linearizability by its definition: tries every choice of which unknown operations happened, in every order. For
 * histories of a few operations.
 */
function linearizableByDefinition<State, Input, Output>(
  model: Model<State, Input, Output>,
  operations: readonly Operation<Input, Output>[],
): boolean {
  const known = operations.filter(({ output }) => output !== undefined);
  const unknown = operations.filter(({ output }) => output === undefined);
  return subsets(unknown).some((happened) =>
    permutations([...known, ...happened]).some((order) => explains(model, order)),
  );
}

/** Whether an order respects real time and the model. */
function explains<State, Input, Output>(
  model: Model<State, Input, Output>,
  order: readonly Operation<Input, Output>[],
): boolean {
  const inTime = order.every((earlier, index) =>
    order.slice(index + 1).every((later) => later.returned >= earlier.invoked),
  );
  if (!inTime) return false;
  let states: readonly State[] = [model.initial];
  for (const { input, output } of order) {
    states = states.flatMap((state) => model.step(state, input, output));
  }
  return states.length > 0;
}

function subsets<Item>(items: readonly Item[]): Item[][] {
  const [first, ...rest] = items;
  if (first === undefined) return [[]];
  return subsets(rest).flatMap((subset) => [subset, [first, ...subset]]);
}

function permutations<Item>(items: readonly Item[]): Item[][] {
  if (items.length === 0) return [[]];
  return items.flatMap((item, index) =>
    permutations(items.filter((_, other) => other !== index)).map((rest) => [item, ...rest]),
  );
}
