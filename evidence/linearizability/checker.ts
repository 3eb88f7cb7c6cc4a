/**
 * One call of one process, as seen from outside. Times are in any unit, on one clock for all processes.
 */
export interface Operation<Input, Output> {
  /** The caller; for reports only. */
  readonly process: string;
  readonly input: Input;
  /** undefined: unknown. The operation may have taken effect, once, or not at all. */
  readonly output: Output | undefined;
  readonly invoked: number;
  /** Infinity: it never returned, or its effect may come after its return. */
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

/** The result of a search. `explored` counts the configurations visited. */
export type Result<Input, Output> =
  | {
      readonly outcome: "yes";
      readonly explored: number;
      /** A sequential order that explains every outcome; operations that had no effect are absent. */
      readonly order: readonly Operation<Input, Output>[];
    }
  | {
      readonly outcome: "no";
      readonly explored: number;
      /** The longest explanation found, the state after it, and the operations none of which can come next. */
      readonly order: readonly Operation<Input, Output>[];
      readonly reached: string;
      readonly stuck: readonly Operation<Input, Output>[];
    }
  | { readonly outcome: "undecided"; readonly explored: number };

/** The limit of a search. */
export interface Bound {
  /** Configurations to visit at most, an integer; beyond it the outcome is "undecided". Default 500 000. */
  readonly limit?: number;
}

/** An operation in the search. */
interface Call<Input, Output> {
  readonly operation: Operation<Input, Output>;
  /** Its number, in order of time, among those that must be placed or among those that need not; as a bit. */
  readonly index: number;
  readonly bit: bigint;
  /** Equal for calls that ask for the same. */
  readonly request: string;
}

/** Optional calls that are placed one after another, and the state and used-up calls after them. */
interface Chain<State, Input, Output> {
  readonly calls: Call<Input, Output>[];
  readonly state: State;
  readonly usedUp: bigint;
}

/** Some optional calls, and the obligatory one that they make possible. */
interface Move<State, Input, Output> {
  readonly calls: readonly Call<Input, Output>[];
  readonly state: State;
  /** Whether the obligatory call took effect. */
  readonly happened: boolean;
}

/**
 * Checks that one order of the operations explains the history: it respects real time (an operation that returned
 * before another was invoked comes first; a tie is concurrent), and the model allows it.
 *
 * The search is Wing and Gong's ("Testing and verifying concurrent objects", 1993) with the cache of Lowe
 * ("Testing for linearizability", 2017).
 *
 * Optional operations (outcome unknown, no return) would make the search exponential in their number, because any set
 * of them may have happened. Two things prevent that. They are placed only to make an obligatory call possible, fewest
 * first. And the cache does not compare sets of them exactly: a configuration is given up when an earlier one had
 * placed the same obligatory calls, was in the same state, and had used up no other optional ones. Every continuation
 * of the later one was open to the earlier one, too.
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
  return new Search(model, operations, limit).run();
}

/** The optional calls used up on earlier visits, as bits, by the state they led to. */
type Visits = Map<string, readonly bigint[]>;

/** One step of the path that the search is on. */
interface Step<State, Input, Output> {
  readonly move: Move<State, Input, Output>;
  /** The other moves that are possible in its place. */
  readonly alternatives: Generator<Move<State, Input, Output>>;
  readonly before: Step<State, Input, Output> | undefined;
}

/** How far a search has come. */
interface Position<State, Input, Output> {
  readonly missing: number;
  readonly last: Step<State, Input, Output> | undefined;
  readonly state: State;
  /** The calls that may come next; none of them can if the search is stuck. */
  readonly stuck: readonly Call<Input, Output>[];
}

/** A depth-first search for an order that explains all obligatory calls. */
class Search<State, Input, Output> {
  readonly #model: Model<State, Input, Output>;
  readonly #limit: number;
  readonly #required: readonly Call<Input, Output>[];
  readonly #optional: readonly Call<Input, Output>[];
  /** By the index of an obligatory call: whether it is placed. All before the first that is not are. */
  readonly #isPlaced: boolean[] = [];
  #first = 0;
  /** How many obligatory calls are not placed yet. */
  #missing: number;
  /** The optional calls that are placed, as bits. */
  #used = 0n;
  /** By the obligatory calls that were placed. */
  readonly #visited = new Map<string, Visits>();
  #explored = 0;
  #exhausted = false;
  #last: Step<State, Input, Output> | undefined;

  constructor(
    model: Model<State, Input, Output>,
    operations: readonly Operation<Input, Output>[],
    limit: number,
  ) {
    this.#model = model;
    this.#limit = limit;
    this.#required = callsOf(operations.filter((operation) => !mayBeLeftOut(operation)));
    this.#optional = callsOf(operations.filter(mayBeLeftOut));
    this.#missing = this.#required.length;
  }

  run(): Result<Input, Output> {
    this.#visit(this.#visitsHere(), this.#state, this.#used);
    let moves = this.#movesFrom(this.#state);
    let best = this.#position();
    // A loop, not a recursion: a path is as long as the history.
    while (this.#missing > 0) {
      const { value: move } = moves.next();
      if (move && this.#tryMove(move, moves)) moves = this.#movesFrom(move.state);
      if (this.#exhausted) return { outcome: "undecided", explored: this.#explored };
      if (move) continue;
      if (this.#missing < best.missing) best = this.#position();
      if (!this.#last) return this.#notLinearizable(best);
      moves = this.#last.alternatives;
      this.#undo(this.#last.move);
      this.#last = this.#last.before;
    }
    return { outcome: "yes", explored: this.#explored, order: orderOf(this.#last) };
  }

  get #state(): State {
    return this.#last ? this.#last.move.state : this.#model.initial;
  }

  /** Where the search is. */
  #position(): Position<State, Input, Output> {
    const stuck = this.#candidates().calls;
    return { missing: this.#missing, last: this.#last, state: this.#state, stuck };
  }

  #notLinearizable(best: Position<State, Input, Output>): Result<Input, Output> {
    return {
      outcome: "no",
      explored: this.#explored,
      order: orderOf(best.last),
      reached: this.#model.fingerprint(best.state),
      stuck: best.stuck.map(({ operation }) => operation),
    };
  }

  /** Goes on with a move, unless an earlier visit could go on at least as well. */
  #tryMove(move: Move<State, Input, Output>, alternatives: Generator<Move<State, Input, Output>>): boolean {
    this.#place(move);
    if (!this.#visit(this.#visitsHere(), move.state, this.#used)) {
      this.#undo(move);
      return false;
    }
    this.#last = { move, alternatives, before: this.#last };
    return true;
  }

  #place({ calls }: Move<State, Input, Output>): void {
    for (const { operation, bit, index } of calls) {
      if (mayBeLeftOut(operation)) this.#used |= bit;
      else {
        this.#isPlaced[index] = true;
        this.#missing -= 1;
      }
    }
    while (this.#isPlaced[this.#first]) this.#first += 1;
  }

  #undo({ calls }: Move<State, Input, Output>): void {
    for (const { operation, bit, index } of calls) {
      if (mayBeLeftOut(operation)) this.#used &= ~bit;
      else {
        this.#isPlaced[index] = false;
        this.#missing += 1;
        this.#first = Math.min(this.#first, index);
      }
    }
  }

  /** The calls of which one has to come next: those invoked before the first of them returned; and when that was. */
  #candidates(): { readonly calls: Call<Input, Output>[]; readonly until: number } {
    const calls: Call<Input, Output>[] = [];
    let until = Infinity;
    for (let index = this.#first; index < this.#required.length; index += 1) {
      const call = this.#required[index]!;
      const { invoked, returned } = call.operation;
      // At a tie the two are concurrent.
      if (invoked > until) break;
      if (this.#isPlaced[index]) continue;
      calls.push(call);
      until = Math.min(until, returned);
    }
    return { calls, until };
  }

  #visitsHere(): Visits {
    // The calls that may come next determine which ones are placed: all others that were invoked before the first of
    // their returns, and none after it.
    const key = this.#candidates()
      .calls.map(({ index }) => index)
      .join();
    const visits = this.#visited.get(key) ?? new Map();
    this.#visited.set(key, visits);
    return visits;
  }

  /** Records a configuration. False: an earlier one had used up no other optional calls, or the limit is reached. */
  #visit(visits: Visits, state: State, usedUp: bigint): boolean {
    const fingerprint = this.#model.fingerprint(state);
    const earlier = visits.get(fingerprint) ?? [];
    if (earlier.some((less) => (less & usedUp) === less)) return false;
    this.#exhausted = this.#explored >= this.#limit;
    if (this.#exhausted) return false;
    this.#explored += 1;
    visits.set(fingerprint, [...earlier.filter((more) => (more & usedUp) !== usedUp), usedUp]);
    return true;
  }

  *#movesFrom(start: State): Generator<Move<State, Input, Output>> {
    const chains: Chain<State, Input, Output>[] = [{ calls: [], state: start, usedUp: this.#used }];
    let visits: Visits | undefined;
    const next = this.#candidates();
    // The list grows while it is iterated, so that shorter chains of optional calls come first.
    for (const chain of chains) {
      const { calls, state } = chain;
      for (const call of next.calls) {
        const { input, output } = call.operation;
        const extended = [...calls, call];
        for (const after of this.#model.step(state, input, output)) {
          yield { calls: extended, state: after, happened: true };
        }
        if (output === undefined) yield { calls: extended, state, happened: false };
      }
      // A call that was invoked after the first return has to wait until the returned call is placed.
      for (const longer of this.#withOptional(chain, next.until)) {
        visits ??= this.#visitsHere();
        if (this.#visit(visits, longer.state, longer.usedUp)) chains.push(longer);
      }
    }
  }

  /**
   * The chain with each one of the optional calls that were invoked by `latest`. Of several that ask for the same, the
   * first stands for all: from now on each of them may be placed wherever another one may.
   */
  *#withOptional(
    { calls, state, usedUp }: Chain<State, Input, Output>,
    latest: number,
  ): Generator<Chain<State, Input, Output>> {
    const requests = new Set<string>();
    for (const call of this.#optional) {
      if (call.operation.invoked > latest) break;
      const isUsed = (this.#used & call.bit) !== 0n || calls.includes(call);
      if (isUsed || requests.has(call.request)) continue;
      requests.add(call.request);
      for (const after of this.#model.step(state, call.operation.input, undefined)) {
        yield { calls: [...calls, call], state: after, usedUp: usedUp | call.bit };
      }
    }
  }
}

/** Whether an operation is optional: nothing ever depends on its having been placed. */
function mayBeLeftOut({ output, returned }: Operation<unknown, unknown>): boolean {
  return output === undefined && returned === Infinity;
}

function callsOf<Input, Output>(operations: readonly Operation<Input, Output>[]): Call<Input, Output>[] {
  return [...operations]
    .sort((a, b) => a.invoked - b.invoked)
    .map((operation, index) => {
      return { operation, index, bit: 1n << BigInt(index), request: JSON.stringify(operation.input) };
    });
}

function orderOf<State, Input, Output>(
  end: Step<State, Input, Output> | undefined,
): Operation<Input, Output>[] {
  const order: Operation<Input, Output>[] = [];
  for (let step = end; step; step = step.before) {
    const { calls, happened } = step.move;
    const operations = (happened ? calls : calls.slice(0, -1)).map(({ operation }) => operation);
    order.push(...operations.reverse());
  }
  return order.reverse();
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
 * (Herlihy and Wing, 1990). The outcome of all is "no" if one is, else "undecided" if one is. The bound holds
 * for each.
 */
export function linearizableEach<State, Input, Output>(
  model: Model<State, Input, Output>,
  histories: ReadonlyMap<string, readonly Operation<Input, Output>[]>,
  bound: Bound = {},
): {
  readonly outcome: Result<Input, Output>["outcome"];
  readonly results: ReadonlyMap<string, Result<Input, Output>>;
} {
  const results = new Map<string, Result<Input, Output>>();
  for (const [resource, history] of histories) results.set(resource, linearizable(model, history, bound));
  const outcomes = [...results.values()].map((result) => result.outcome);
  const outcome = (["no", "undecided"] as const).find((worst) => outcomes.includes(worst)) ?? "yes";
  return { outcome, results };
}

/** A result as a few lines of text, for a failure report. */
export function explain<Input, Output>(result: Result<Input, Output>): string {
  const { outcome, explored } = result;
  if (outcome === "undecided") return `undecided: gave up after ${explored} configurations`;
  if (outcome === "yes")
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
