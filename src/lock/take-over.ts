import type { Call } from "../endpoints/call.ts";
import type { Register, RegisterAnswer } from "../redis/register.ts";

/** An operation on one value at an endpoint. */
type Operation = (register: Register) => Promise<RegisterAnswer>;

/** What a resumed lock has at each endpoint: its own nonce, or until its first extension there that of an earlier handle. */
export class TakeOver {
  readonly #earlier: readonly string[];
  /** Names of the endpoints at which its own nonce has been stored. */
  readonly #done = new Set<string>();

  /** @param earlier the nonces of the earlier handles, the oldest first; none for a lock that was not handed over */
  constructor(earlier: readonly string[]) {
    this.#earlier = earlier;
  }

  /** The nonce that the endpoints had when it was handed over; undefined: it was not. */
  get latest(): string | undefined {
    return this.#earlier.at(-1);
  }

  /**
   * Performs an operation on the value that an endpoint has. The oldest is tried first: a late request can only have
   * replaced it by a newer one, which is tried next.
   */
  async perform(call: Call, register: Register, operation: Operation): Promise<RegisterAnswer> {
    for (const value of this.#earlierAt(call)) {
      const answer = await operation({ ...register, value });
      if (answer.outcome === "granted") return answer;
    }
    return operation(register);
  }

  /** Performs an operation on all values that an endpoint may have, at once: granted, if it is granted for one of them. */
  async performOnAll(call: Call, register: Register, operation: Operation): Promise<RegisterAnswer> {
    const registers = [register, ...this.#earlierAt(call).map((value) => ({ ...register, value }))];
    const answers = await Promise.allSettled(registers.map(operation));
    const isGranted = (answer: (typeof answers)[number]) =>
      answer.status === "fulfilled" && answer.value.outcome === "granted";
    const [first] = answers;
    const decisive = answers.find(isGranted) ?? answers.find(({ status }) => status === "rejected") ?? first!;
    if (decisive.status === "rejected") throw decisive.reason;
    return decisive.value;
  }

  /** Its own nonce is stored at an endpoint now, and no request that replaces it is under way. */
  finish(name: string): void {
    this.#done.add(name);
  }

  #earlierAt({ endpoint: { name } }: Call): readonly string[] {
    return this.#done.has(name) ? [] : this.#earlier;
  }
}
