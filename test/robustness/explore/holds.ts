import type { Invariant } from "../sim/assumptions.ts";
import type { Client } from "./client.ts";
import type { Report } from "./trails.ts";

/** Something held for a time: a lock, a permit, or the key of an idempotent run. */
export interface Hold {
  /** What it excludes others from. */
  readonly resources: readonly string[];
  /** Violated where two holders have validity left. */
  readonly invariant: Invariant;
  /** Two handles of one owner are one holder. */
  readonly holder: string;
  /** Holders of one group do not exclude each other. Default: each is alone. */
  readonly group?: string | undefined;
  readonly nonce: string;
  /** The nonces of the handles from which the lock was handed over. */
  readonly earlier?: readonly string[];
  readonly client: Client;
  /** When it was granted, in ms. */
  readonly acquired: number;
  /** When it must be over, in ms: the deadline. Default: none. */
  readonly limit?: number | undefined;
  /** ms for which it may be relied on. */
  readonly remaining: () => number;
  /** Whether the holder has been told of the end; undefined: it does not listen. */
  readonly isLossReported?: (() => boolean) | undefined;
  readonly fence?: number | undefined;
  /** For permits: how many of this name may be held at once. */
  readonly permits?: { readonly name: string; readonly limit: number };
  /** The holder no longer relies on it. */
  isOver: boolean;
  /** When that, or the end of its validity, was seen first, in ms. */
  ended?: number;
}

// ms after the end of a validity by which the holder must be told: timers are exact here, and delays whole ms. Where a
// clock was set or stood still, the library checks once a second.
const tolerance = 2;
const toleranceAfterDisturbance = 1_010;

/** How many ms clients' clocks may differ where they agree, and a little more. */
const disagreement = 60;

/** All holds of a world. */
export class Holds {
  readonly all: Hold[] = [];
  readonly #report: Report;
  readonly #time: () => number;
  readonly #retention: number;
  readonly #freed: ReadonlySet<string>;

  /**
   * @param options `now`: the time in ms; `retention`: for how many ms fences are remembered; `freed`: the nonces of what
   *   an operator has freed
   */
  constructor(
    report: Report,
    options: {
      readonly now: () => number;
      readonly retention: number;
      readonly freed: ReadonlySet<string>;
    },
  ) {
    this.#report = report;
    this.#time = options.now;
    this.#retention = options.retention;
    this.#freed = options.freed;
  }

  /** A holder was just granted a hold. */
  add(hold: Hold): void {
    if (hold.remaining() <= 0 && !hold.client.frozen) {
      this.#report(
        "validity is honest",
        `${hold.client.name} got ${hold.resources.join()} with nothing left`,
      );
    }
    this.#checkFence(hold);
    this.all.push(hold);
    // At once: it may be released before the step ends.
    this.check();
  }

  /** Ends all holds of a holder. */
  endAllOf(holder: string): void {
    for (const hold of this.all) if (hold.holder === holder) hold.isOver = true;
  }

  /** Checks that those that may be relied on now do not exclude each other. Called after every step, and with every grant. */
  check(): void {
    for (const hold of this.all) {
      hold.isOver ||= this.#freed.has(hold.nonce);
      if (hold.ended === undefined && (hold.isOver || hold.remaining() <= 0)) hold.ended = this.#time();
    }
    const current = this.all.filter(({ isOver }) => !isOver);
    for (const hold of current) {
      this.#checkLossReported(hold);
      this.#checkLimit(hold);
    }
    const valid = current.length > 1 ? current.filter(({ remaining }) => remaining() > 0) : [];
    for (const [index, hold] of valid.entries()) {
      for (const other of valid.slice(0, index)) this.#compare(hold, other);
      const { permits } = hold;
      const taken = permits && valid.filter((other) => other.permits?.name === permits.name).length;
      if (permits && taken! > permits.limit) {
        this.#report("permits within the limit", `${taken} permits of ${permits.limit}`);
      }
    }
  }

  #compare(hold: Hold, other: Hold): void {
    if (hold.holder === other.holder || (hold.group !== undefined && hold.group === other.group)) return;
    const both = hold.resources.filter((resource) => other.resources.includes(resource));
    if (both.length === 0) return;
    this.#report(
      hold.invariant,
      `${hold.client.name} and ${other.client.name} hold ${both.join()}, for ${hold.remaining().toFixed(1)} and ${other.remaining().toFixed(1)} ms`,
    );
  }

  #checkLossReported({ client, resources, remaining, isLossReported }: Hold): void {
    if (!isLossReported || isLossReported() || client.frozen) return;
    const since = client.disturbed === undefined ? undefined : this.#time() - client.disturbed;
    const overdue = Math.min(-remaining(), since ?? Number.POSITIVE_INFINITY);
    if (overdue <= (since === undefined ? tolerance : toleranceAfterDisturbance)) return;
    this.#report("validity is honest", `${client.name} was not told that ${resources.join()} is over`);
  }

  /** A wall clock has whole ms. */
  #checkLimit({ client, resources, remaining, limit = Number.POSITIVE_INFINITY }: Hold): void {
    if (this.#time() <= limit + 1 || client.frozen || remaining() <= 0) return;
    this.#report("validity is honest", `${client.name} relies on ${resources.join()} after its deadline`);
  }

  /** Each grant is returned with validity left, so fences are drawn in the order in which grants are returned. */
  #checkFence(hold: Hold): void {
    const { fence, resources, client, holder } = hold;
    if (fence === undefined) return;
    const rememberedSince = this.#time() - 0.9 * this.#retention;
    for (const other of this.all) {
      if (other.fence === undefined || other.holder === holder) continue;
      if ((other.ended ?? this.#time()) < rememberedSince) continue;
      if (!other.resources.some((resource) => resources.includes(resource)) || fence > other.fence) continue;
      const detail = `${client.name} drew ${fence} after ${other.client.name} ${other.fence}`;
      this.#report("fences increase", detail);
      if (hold.acquired > other.acquired + disagreement) this.#report("fences outlive memory", detail);
    }
  }
}
