import { isRedlockError, Redlock, type RedlockEvent, type Runtime } from "../src/index.ts";
import { Link, type Sender, type Wire } from "./link.ts";
import type { Outcome, TimelineEvent } from "./picture/timeline.ts";

/** What a client relies on. */
export interface Validity {
  readonly fence?: number | undefined;
  readonly ttl: number;
  remaining(): number;
}

/** ms for which a hold is acquired, and for which one request is waited for. */
const [ttl, timeout] = [3_000, 500];

/** One process that uses the library: its clocks, and whether it runs. */
export class Client implements Sender {
  readonly name: string;
  readonly world: Wire;
  readonly runtime: Runtime;
  isFrozen = false;
  doing = "acquire";
  /** How many calls it has made. */
  calls = 0;
  #frozenAt = 0;
  #frozenFor = 0;
  /** What waits until the process runs again. */
  #held: (() => void)[] = [];

  constructor(world: Wire, name: string) {
    this.world = world;
    this.name = name;
    const { time } = world;
    this.runtime = {
      now: () => time.now(),
      // It stands still while the platform freezes the process, as in a Lambda.
      monotonic: () => (this.isFrozen ? this.#frozenAt : time.elapsed) - this.#frozenFor,
      timer: (ms, callback) => {
        let isCancelled = false;
        const cancel = time.at(time.elapsed + ms, () =>
          this.whenRunning(() => {
            if (!isCancelled) callback();
          }),
        );
        return () => {
          isCancelled = true;
          cancel();
        };
      },
      random: time.random,
      randomBytes: time.randomBytes,
    };
  }

  /** A client of the library in it. */
  redlock(onEvent?: (event: RedlockEvent) => void): Redlock {
    return new Redlock({
      endpoints: this.world.endpoints.map((endpoint) => new Link(this, endpoint)),
      runtime: this.runtime,
      ttl,
      timeout,
      wait: 60_000,
      backoff: { min: 300, max: 700 },
      onEvent,
    });
  }

  whenRunning(then: () => void): void {
    if (this.isFrozen) this.#held.push(then);
    else then();
  }

  freeze(): void {
    if (this.isFrozen) return;
    this.isFrozen = true;
    this.#frozenAt = this.world.time.elapsed;
    this.record({ phase: "fault", name: "frozen" });
  }

  thaw(): void {
    if (!this.isFrozen) return;
    this.isFrozen = false;
    this.#frozenFor += this.world.time.elapsed - this.#frozenAt;
    this.record({ phase: "healed", name: "frozen" });
    for (const then of this.#held.splice(0)) then();
  }

  record(event: Omit<TimelineEvent, "time" | "client">): void {
    this.world.record({ client: this.name, ...event });
  }

  /** It relies on something from now on. */
  holds(key: string, validity: Validity): void {
    const now = this.world.time.elapsed;
    const { fence, ttl } = validity;
    const safe = now + validity.remaining();
    this.record({
      phase: "valid",
      key,
      safe,
      until: safe + driftOf(ttl),
      ...(fence === undefined ? {} : { fence }),
    });
  }

  /** Records what the library reports. */
  note(event: RedlockEvent): void {
    if (!("resources" in event)) return;
    const key = event.resources.join(", ");
    const call = `${this.calls}`;
    if (event.type === "contended") {
      this.record({ phase: "returned", operation: "round", key, call, outcome: "held" });
    }
    if (event.type === "acquired") {
      const { fence } = event;
      const more = fence === undefined ? {} : { fence };
      this.record({ phase: "returned", operation: "acquire", key, call, outcome: "granted", ...more });
    }
    // A call that has given up was neither refused nor unanswered.
    if (event.type === "notAcquired" && isRedlockError(event.error)) {
      const { code, message: detail } = event.error;
      const outcome: Outcome = code === "LOCK_HELD" ? "held" : "error";
      this.record({ phase: "returned", operation: "acquire", key, call, outcome, detail });
    }
    if (event.type === "released" || event.type === "lost") {
      const detail = event.type === "lost" ? event.reason : "released";
      this.record({ phase: "ended", key, detail });
    }
  }
}

/** The part of a ttl that a holder does not rely on: 1 %, and 2 ms. */
function driftOf(ttl: number): number {
  return ttl * 0.01 + 2;
}
