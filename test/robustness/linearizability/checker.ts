/**
 * One call of one process, as seen from outside. Times are in any unit, on one clock for all processes.
 */
export interface Operation<Input, Output> {
  /** Who called; for reports only. */
  readonly process: string;
  readonly input: Input;
  /** undefined: the outcome is unknown. It may have taken effect, once, or not at all. */
  readonly output: Output | undefined;
  readonly invoked: number;
  /** Infinity when it never returned, or when its effect may come after its return. */
  readonly returned: number;
}

/** What an object does when nothing is concurrent. Outcomes need not be determined by state and input. */
export interface Model<State, Input, Output> {
  readonly initial: State;
  /**
   * The states that may follow; none when `output` is impossible here. With `output` undefined: every state that
   * an effect of the operation could lead to. That it had no effect needs no mention: the checker tries it anyway.
   */
  step(state: State, input: Input, output: Output | undefined): readonly State[];
  /** Equal for equal states, and different for different ones. */
  fingerprint(state: State): string;
}

/** What a search came to. `explored` counts the configurations visited. */
export type Result<Input, Output> =
  | {
      readonly verdict: "yes";
      readonly explored: number;
      /** A sequential order that explains every outcome; operations that had no effect are absent. */
      readonly order: readonly Operation<Input, Output>[];
    }
  | {
      readonly verdict: "no";
      readonly explored: number;
      /** The longest explanation found, the state after it, and the operations none of which can come next. */
      readonly order: readonly Operation<Input, Output>[];
      readonly reached: string;
      readonly stuck: readonly Operation<Input, Output>[];
    }
  | { readonly verdict: "undecided"; readonly explored: number };

/** How far to search. */
export interface Bound {
  /** Configurations to visit at most, an integer; beyond it the verdict is "undecided". Default 500 000. */
  readonly limit?: number;
}

/** An operation in the search. */
interface Call<Input, Output> {
  readonly operation: Operation<Input, Output>;
  /** Its number among the calls that must be placed, or its bit among those that need not. */
  readonly index: number;
  readonly bit: bigint;
  /** Where it stands in its ring: its invocation, and its return if it must be placed by then. */
  readonly marks: readonly Mark<Input, Output>[];
}

/** A link of a ring in order of time. The ring's own link belongs to no call. */
interface Mark<Input, Output> {
  readonly time: number;
  readonly kind: "invocation" | "return" | "ring";
  readonly call: Call<Input, Output> | undefined;
  previous: Mark<Input, Output>;
  next: Mark<Input, Output>;
}

/** Some optional calls, and the obligatory one that they make possible. */
interface Move<State, Input, Output> {
  readonly calls: readonly Call<Input, Output>[];
  readonly state: State;
  /** Whether the obligatory call took effect. */
  readonly happened: boolean;
}

/**
 * Whether the history can be explained by one order of its operations that respects real time (what returned
 * before another was invoked comes first; a tie is concurrent) and that the model allows.
 *
 * The search is Wing and Gong's ("Testing and verifying concurrent objects", 1993) with the cache of Lowe
 * ("Testing for linearizability", 2017), in the linked-list form of Horn and Kroening ("Faster linearizability
 * checking via P-compositionality", 2015).
 *
 * Operations that need never be placed (outcome unknown, no return) would make the search exponential in their
 * number, as any set of them may have happened. Two things prevent that. They are only placed for the sake of an
 * obligatory call, fewest first. And the cache does not compare sets of them exactly: a configuration is given up
 * when an earlier one had placed the same obligatory calls, was in the same state, and had used up no other
 * optional ones. Whatever the later one can go on with, the earlier one could.
 *
 * @throws RangeError when an operation returns before it is invoked, or a time is not a number
 */
export function linearizable<State, Input, Output>(
  model: Model<State, Input, Output>,
  operations: readonly Operation<Input, Output>[],
  { limit = 500_000 }: Bound = {},
): Result<Input, Output> {
  for (const operation of operations) {
    const { invoked, returned } = operation;
    if (!(invoked <= returned)) throw new RangeError(`no time span: ${describe(operation)}`);
  }
  const obligatory = operations.filter((operation) => !mayBeLeftOut(operation));
  const required = ring(obligatory);
  const optional = ring(operations.filter(mayBeLeftOut));

  let missing = obligatory.length;
  /** The optional calls that are placed. */
  let used = 0n;
  function place({ calls }: Move<State, Input, Output>): void {
    for (const { operation, bit, marks } of calls) {
      for (const mark of marks) unlink(mark);
      if (mayBeLeftOut(operation)) used |= bit;
      else missing -= 1;
    }
  }
  function takeBack({ calls }: Move<State, Input, Output>): void {
    // Last out, first in: each mark remembers the neighbours it had when it left.
    for (const { operation, bit, marks } of [...calls].reverse()) {
      for (const mark of [...marks].reverse()) relink(mark);
      if (mayBeLeftOut(operation)) used &= ~bit;
      else missing += 1;
    }
  }

  /** What was used up on earlier visits, by state; and that, by the obligatory calls that were placed. */
  type Visits = Map<string, readonly bigint[]>;
  const visited = new Map<string, Visits>();
  function visitsHere(): Visits {
    // The calls that may come next tell which ones are placed: before the first of their returns all others, after
    // it none.
    const key = candidates(required)
      .map(({ index }) => index)
      .join();
    const visits = visited.get(key) ?? new Map();
    visited.set(key, visits);
    return visits;
  }

  let explored = 0;
  let exhausted = false;
  function visit(visits: Visits, state: State, usedUp: bigint): boolean {
    const fingerprint = model.fingerprint(state);
    const earlier = visits.get(fingerprint) ?? [];
    if (earlier.some((less) => (less & usedUp) === less)) return false;
    exhausted = explored >= limit;
    if (exhausted) return false;
    explored += 1;
    visits.set(fingerprint, [...earlier.filter((more) => (more & usedUp) !== usedUp), usedUp]);
    return true;
  }

  function* movesFrom(start: State): Generator<Move<State, Input, Output>> {
    const chains: {
      readonly calls: Call<Input, Output>[];
      readonly state: State;
      readonly usedUp: bigint;
    }[] = [{ calls: [], state: start, usedUp: used }];
    let visits: Visits | undefined;
    // The list grows while it is gone through, so the shorter chains of optional calls come first.
    for (const { calls, state, usedUp } of chains) {
      let mark = required.next;
      for (; mark.kind === "invocation"; mark = mark.next) {
        const { input, output } = mark.call!.operation;
        const extended = [...calls, mark.call!];
        for (const after of model.step(state, input, output)) {
          yield { calls: extended, state: after, happened: true };
        }
        if (output === undefined) yield { calls: extended, state, happened: false };
      }
      // Whatever was invoked after this return has to wait until the returned call is placed.
      const latest = mark.time;
      for (mark = optional.next; mark.kind === "invocation" && mark.time <= latest; mark = mark.next) {
        const call = mark.call!;
        if (calls.includes(call)) continue;
        for (const after of model.step(state, call.operation.input, undefined)) {
          const chain = { calls: [...calls, call], state: after, usedUp: usedUp | call.bit };
          visits ??= visitsHere();
          if (visit(visits, chain.state, chain.usedUp)) chains.push(chain);
        }
      }
    }
  }

  type Step = {
    readonly move: Move<State, Input, Output>;
    /** What else may come instead of the move. */
    readonly rest: ReturnType<typeof movesFrom>;
    readonly before: Step | undefined;
  };
  let last: Step | undefined;
  let state = model.initial;
  visit(visitsHere(), state, used);
  let rest = movesFrom(state);
  let best = { missing: Infinity, last, state, stuck: candidates(required) };
  // A loop and not a recursion: a path is as long as the history.
  while (missing > 0) {
    const { value: move } = rest.next();
    if (move) {
      place(move);
      if (visit(visitsHere(), move.state, used)) {
        last = { move, rest, before: last };
        state = move.state;
        rest = movesFrom(state);
      } else {
        takeBack(move);
      }
    }
    if (exhausted) return { verdict: "undecided", explored };
    if (move) continue;

    if (missing < best.missing) best = { missing, last, state, stuck: candidates(required) };
    if (!last) {
      const stuck = best.stuck.map(({ operation }) => operation);
      const reached = model.fingerprint(best.state);
      return { verdict: "no", explored, order: orderOf(best.last), reached, stuck };
    }
    takeBack(last.move);
    rest = last.rest;
    last = last.before;
    state = last ? last.move.state : model.initial;
  }
  return { verdict: "yes", explored, order: orderOf(last) };

  function orderOf(end: Step | undefined): Operation<Input, Output>[] {
    const order: Operation<Input, Output>[] = [];
    for (let step = end; step; step = step.before) {
      const { calls, happened } = step.move;
      const operations = (happened ? calls : calls.slice(0, -1)).map(({ operation }) => operation);
      order.push(...operations.reverse());
    }
    return order.reverse();
  }
}

/** Parts of a history that may be checked on their own because they concern different objects. */
export function partition<Item>(items: readonly Item[], by: (item: Item) => string): Map<string, Item[]> {
  const parts = new Map<string, Item[]>();
  for (const item of items) {
    const part = parts.get(by(item));
    if (part) part.push(item);
    else parts.set(by(item), [item]);
  }
  return parts;
}

/**
 * Checks each resource's history on its own: a history is linearizable exactly when that of every object is
 * (Herlihy and Wing, 1990). The verdict of all is "no" if one is, else "undecided" if one is. The bound holds
 * for each.
 */
export function linearizableEach<State, Input, Output>(
  model: Model<State, Input, Output>,
  histories: ReadonlyMap<string, readonly Operation<Input, Output>[]>,
  bound: Bound = {},
): {
  readonly verdict: Result<Input, Output>["verdict"];
  readonly results: ReadonlyMap<string, Result<Input, Output>>;
} {
  const results = new Map<string, Result<Input, Output>>();
  for (const [resource, history] of histories) results.set(resource, linearizable(model, history, bound));
  const verdicts = [...results.values()].map((result) => result.verdict);
  const verdict = (["no", "undecided"] as const).find((worst) => verdicts.includes(worst)) ?? "yes";
  return { verdict, results };
}

/** A result as a few lines of text, for a failure report. */
export function explain<Input, Output>(result: Result<Input, Output>): string {
  const { verdict, explored } = result;
  if (verdict === "undecided") return `undecided: gave up after ${explored} configurations`;
  if (verdict === "yes")
    return `linearizable (${explored} configurations): ${result.order.length} operations`;
  const { order, reached, stuck } = result;
  const last = order.slice(-8);
  return [
    `not linearizable (${explored} configurations); the best order explains ${order.length} operations:`,
    ...(last.length < order.length ? [`  … ${order.length - last.length} before`] : []),
    ...last.map((operation) => `  ${describe(operation)}`),
    `then the state is ${reached}, and none of these can come next:`,
    ...stuck.map((operation) => `  ${describe(operation)}`),
  ].join("\n");
}

function describe({ process, input, output, invoked, returned }: Operation<unknown, unknown>): string {
  const outcome = output === undefined ? "unknown" : JSON.stringify(output);
  return `${process}: ${JSON.stringify(input)} → ${outcome}, ${invoked} … ${returned}`;
}

/** Whether nothing ever depends on its having been placed. */
function mayBeLeftOut({ output, returned }: Operation<unknown, unknown>): boolean {
  return output === undefined && returned === Infinity;
}

/** The invocations and, of calls that must be placed, the returns, in order of time, numbered by it. */
function ring<Input, Output>(operations: readonly Operation<Input, Output>[]): Mark<Input, Output> {
  const head = { time: Infinity, kind: "ring", call: undefined } as unknown as Mark<Input, Output>;
  head.previous = head;
  head.next = head;
  const marks = [...operations]
    .sort((a, b) => a.invoked - b.invoked)
    .flatMap((operation, index) => {
      const own: Mark<Input, Output>[] = [];
      const call = { operation, index, bit: 1n << BigInt(index), marks: own };
      own.push({ time: operation.invoked, kind: "invocation", call, previous: head, next: head });
      if (!mayBeLeftOut(operation)) {
        own.push({ time: operation.returned, kind: "return", call, previous: head, next: head });
      }
      return own;
    });
  // At a tie invocations come first, so that the two operations count as concurrent.
  marks.sort((a, b) =>
    a.time === b.time ? Number(a.kind === "return") - Number(b.kind === "return") : a.time - b.time,
  );
  for (const mark of marks) {
    mark.previous = head.previous;
    relink(mark);
  }
  return head;
}

function unlink(mark: Mark<unknown, unknown>): void {
  mark.previous.next = mark.next;
  mark.next.previous = mark.previous;
}

function relink(mark: Mark<unknown, unknown>): void {
  mark.previous.next = mark;
  mark.next.previous = mark;
}

/** The calls of which one has to be the next: those invoked before the first return. */
function candidates<Input, Output>(required: Mark<Input, Output>): Call<Input, Output>[] {
  const calls: Call<Input, Output>[] = [];
  for (let mark = required.next; mark.kind === "invocation"; mark = mark.next) calls.push(mark.call!);
  return calls;
}
