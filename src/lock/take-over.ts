import type { EndpointRequest } from "../endpoints/endpoint-request.ts";
import { rollback } from "../quorum/rollback.ts";
import type { Round } from "../quorum/round.ts";
import { mostlyDone } from "../quorum/settled.ts";
import { type Answer, quorumOf } from "../quorum/tally.ts";
import { type Cell, type CellAnswer, extend } from "../redis/cell.ts";
import { releaseFunctionOf } from "./hold-operations.ts";
import { guardedCell, heldCell, type LockRequest } from "./lock-request.ts";
import type { Settings } from "./options.ts";

/** An operation on one value at an endpoint. */
type Operation = (cell: Cell) => Promise<CellAnswer>;

/** What a resumed lock has at each endpoint: its own nonce, or until its first extension there that of an earlier handle. */
export class TakeOver {
  readonly #request: LockRequest;
  readonly #earlier: readonly string[];
  /** Names of the endpoints at which its own nonce has been stored. */
  readonly #done = new Set<string>();
  #round: Round<Answer> | undefined;
  #isOver = false;

  constructor(request: LockRequest & { readonly earlier: readonly string[] }) {
    this.#request = request;
    this.#earlier = request.earlier;
  }

  /** The nonces of earlier handles that the next one needs: of the first, whose tombstone it is, and what may be stored. */
  earlierFor({ endpoints }: Settings): readonly string[] {
    return endpoints.every(({ name }) => this.#done.has(name)) ? this.#earlier.slice(0, 1) : this.#earlier;
  }

  /** The extension that takes it over; its late requests are rolled back at the release. */
  get round(): Round<Answer> | undefined {
    return this.#round;
  }

  /** What the refusal of an extension means; undefined: the same as for any lock. */
  get refusal(): string | undefined {
    return this.#isOver ? undefined : "it was resumed before, or released, or has expired";
  }

  /** Notes an extension whose requests have been sent. The first that a quorum grants takes the lock over. */
  note(round: Round<Answer>): void {
    if (this.#isOver) return;
    this.#round = round;
    void round.result.then((result) => {
      this.#isOver = result === "granted";
    });
  }

  /** Performs an operation on the value that an endpoint has. */
  async perform(
    purpose: "verify" | "extend" | "release",
    { endpoint: { name } }: EndpointRequest,
    cell: Cell,
    operation: Operation,
  ): Promise<CellAnswer> {
    const nonces = this.#done.has(name) ? [] : this.#earlier;
    // The latest first: most probably the endpoint has that.
    const earlier = nonces.map((value) => ({ ...cell, value })).reverse();
    if (purpose === "release") return performOnAll([cell, ...earlier], operation);
    // With a tombstone it is done by script, which returns what is in the way: see isSplit().
    const { tombstone } = purpose === "extend" && !this.#isOver ? guardedCell(this.#request) : cell;
    const cells = [...earlier, cell].map((each) => ({ ...each, tombstone }));
    const answer = await performOnOne(cells, operation);
    if (purpose === "extend" && answer.outcome === "granted") this.#done.add(name);
    return answer;
  }

  /** Undoes the extension that was to take it over. What another has resumed meanwhile stays. */
  undo(settings: Settings, { ttl, putsBack }: Undoing): Promise<void> | undefined {
    const cell = heldCell(this.#request);
    const release = releaseFunctionOf(settings, this.#request.resources, undefined);
    const undoOne = (call: EndpointRequest) =>
      putsBack ? extend(call, cell, ttl, this.#earlier.at(-1)) : release(call, cell, 0);
    return this.#round && mostlyDone(settings, rollback(settings, this.#round, undoOne));
  }
}

/** How an extension is undone. */
interface Undoing {
  readonly ttl: number;
  /** Whether the nonce that was handed over is put back, so that the lock can be resumed again. */
  readonly putsBack: boolean;
}

/**
 * Whether those that resume a lock at once may have kept it from each other: some endpoints have another value in its place,
 * and neither has any other handle a quorum of them, nor is the lock gone from so many that nobody can have one.
 */
export function isSplit(answers: Round<CellAnswer | Answer>["answers"]): boolean {
  const quorum = quorumOf(answers.length);
  const lost = answers.filter((answer): answer is CellAnswer => answer?.outcome === "lost");
  const others = lost.flatMap(({ other }) => other || []);
  const gone = lost.length - others.length;
  const hasQuorum = (other: string) => others.filter((one) => one === other).length >= quorum;
  return others.length > 0 && !others.some(hasQuorum) && gone <= answers.length - quorum;
}

/** On one value after another, until one is there. */
async function performOnOne(cells: readonly Cell[], operation: Operation): Promise<CellAnswer> {
  const [cell, ...others] = cells;
  const answer = await operation(cell!);
  return answer.outcome === "granted" || !others.length ? answer : performOnOne(others, operation);
}

/** On all values that may be there, at once: granted, if it is granted for one of them. */
async function performOnAll(cells: readonly Cell[], operation: Operation): Promise<CellAnswer> {
  const answers = await Promise.allSettled(cells.map(operation));
  const isGranted = (answer: (typeof answers)[number]) =>
    answer.status === "fulfilled" && answer.value.outcome === "granted";
  const [first] = answers;
  const decisive = answers.find(isGranted) ?? answers.find(({ status }) => status === "rejected") ?? first!;
  if (decisive.status === "rejected") throw decisive.reason;
  return decisive.value;
}
