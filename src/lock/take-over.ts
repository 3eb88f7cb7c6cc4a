import type { Call } from "../endpoints/call.ts";
import { QuorumError } from "../errors.ts";
import { rollback } from "../quorum/rollback.ts";
import type { Round } from "../quorum/round.ts";
import type { Answer } from "../quorum/tally.ts";
import { extend, type Register, type RegisterAnswer } from "../redis/register.ts";
import { runInBackground } from "../runtime.ts";
import { releaseOf } from "./hold-operations.ts";
import { heldRegister, type LockRequest } from "./lock-request.ts";
import type { Settings } from "./options.ts";

/** An operation on one value at an endpoint. */
type Operation = (register: Register) => Promise<RegisterAnswer>;

/** What a resumed lock has at each endpoint: its own nonce, or until its first extension there that of an earlier handle. */
export class TakeOver {
  readonly #earlier: readonly string[];
  /** Names of the endpoints at which its own nonce has been stored. */
  readonly #done = new Set<string>();
  #round: Round<Answer> | undefined;
  #isOver = false;

  /** @param earlier the nonces of the earlier handles, the oldest first */
  constructor(earlier: readonly string[]) {
    this.#earlier = earlier;
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
    { endpoint: { name } }: Call,
    register: Register,
    operation: Operation,
  ): Promise<RegisterAnswer> {
    const earlier = this.#done.has(name) ? [] : this.#earlier.map((value) => ({ ...register, value }));
    if (purpose === "release") return performOnAll([register, ...earlier], operation);
    const answer = await performOnOne([...earlier, register], operation);
    if (purpose === "extend" && answer.outcome === "granted") this.#done.add(name);
    return answer;
  }

  /**
   * Undoes the extension that was to take it over. When too few endpoints answered, the nonce that was handed over is put
   * back, so that the lock can be resumed again; what another has resumed meanwhile stays.
   */
  async undo(settings: Settings, request: LockRequest, ttl: number, error: unknown): Promise<void> {
    const register = heldRegister(request);
    const release = releaseOf(settings, request.resources, undefined);
    const undoOne = (call: Call) =>
      error instanceof QuorumError
        ? extend(call, register, ttl, this.#earlier.at(-1))
        : release(call, register, 0);
    const done = this.#round && rollback(settings, this.#round, undoOne).done;
    if (done && !runInBackground(settings, done)) await done;
  }
}

/** The oldest value is tried first: a late request can only have replaced it by a newer one, which is tried next. */
async function performOnOne(registers: readonly Register[], operation: Operation): Promise<RegisterAnswer> {
  let answer: RegisterAnswer = { outcome: "lost" };
  for (const register of registers) {
    answer = await operation(register);
    if (answer.outcome === "granted") break;
  }
  return answer;
}

/** On all values that may be there, at once: granted, if it is granted for one of them. */
async function performOnAll(registers: readonly Register[], operation: Operation): Promise<RegisterAnswer> {
  const answers = await Promise.allSettled(registers.map(operation));
  const isGranted = (answer: (typeof answers)[number]) =>
    answer.status === "fulfilled" && answer.value.outcome === "granted";
  const [first] = answers;
  const decisive = answers.find(isGranted) ?? answers.find(({ status }) => status === "rejected") ?? first!;
  if (decisive.status === "rejected") throw decisive.reason;
  return decisive.value;
}
