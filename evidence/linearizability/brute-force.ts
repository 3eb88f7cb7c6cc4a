import type { Model, Operation } from "./checker.ts";

/**
 * Tests linearizability by its definition: tries every choice of which unknown operations happened, in every order. For
 * histories of a few operations.
 */
export function linearizableByDefinition<State, Input, Output>(
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
export function explains<State, Input, Output>(
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
