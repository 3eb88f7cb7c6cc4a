import { systemRuntime } from "../runtime.ts";

/** What can go wrong between a client and one endpoint. */
export type FaultKind =
  /** Nobody listens: the connection is refused, nothing is executed. */
  | "down"
  /** The request is lost on its way: never executed, never answered. */
  | "drop-request"
  /** The request is executed and the reply is lost: the case that makes naive clients hold phantom locks. */
  | "drop-reply"
  /** The request waits before it is executed. */
  | "delay"
  /** The request is executed at once, its reply waits. */
  | "delay-reply"
  /** The request is executed only after the next one of this endpoint has been (or after 1 s). */
  | "reorder"
  /** The request is executed twice; the second reply is the one that arrives. */
  | "duplicate"
  /** Not executed; answered with an HTTP error, as a gateway in trouble does. */
  | "status";

/** One thing that goes wrong, for some or all of the requests to one endpoint. Plain JSON. */
export interface FaultRule {
  readonly fault: FaultKind;
  /** Only commands of this name, e.g. `"SET"`; case does not matter. Default: every command. */
  readonly command?: string;
  /** Share of the matching requests that is hit, 0 … 1. Default 1. */
  readonly probability?: number;
  /** How many requests are hit before the rule ends by itself. Default: no end. */
  readonly times?: number;
  /** For `delay` and `delay-reply`: ms, or `[least, most]` for a uniform distribution. Default 1 000. */
  readonly ms?: number | readonly [number, number];
  /** For `status`: the HTTP status. Default 500. */
  readonly status?: number;
  /** For `status`: answer with an HTML page instead of JSON, as proxies do. Default false. */
  readonly html?: boolean;
  /** For `drop-request` and `drop-reply`: break the connection instead of staying silent. Default false. */
  readonly reset?: boolean;
}

/** What happens to one request, all matching rules taken together. */
export interface FaultPlan {
  readonly down: boolean;
  readonly dropRequest: boolean;
  readonly dropReply: boolean;
  readonly reset: boolean;
  readonly delay: number;
  readonly delayReply: number;
  readonly reorder: boolean;
  readonly duplicate: boolean;
  readonly status: number | undefined;
  readonly html: boolean;
}

const kinds: readonly FaultKind[] = [
  "down",
  "drop-request",
  "drop-reply",
  "delay",
  "delay-reply",
  "reorder",
  "duplicate",
  "status",
];

interface ActiveRule {
  readonly rule: FaultRule;
  remaining: number;
}

/**
 * The faults of one endpoint. Only decides what happens to a request; the endpoint makes it happen.
 *
 * @example
 * const faults = new Faults([{ fault: "drop-reply", command: "SET", times: 1 }]);
 * faults.plan("set").dropReply; // true
 * faults.plan("set").dropReply; // false: the rule has ended
 */
export class Faults {
  readonly #random: () => number;
  #active: ActiveRule[] = [];

  /**
   * @param random a number in [0, 1), for `probability` and for ranges of `ms`. Default: the platform's.
   * @throws TypeError | RangeError for a rule that cannot be, with the offending value
   */
  constructor(rules: readonly FaultRule[] = [], random: () => number = systemRuntime.random) {
    this.#random = random;
    for (const rule of rules) this.add(rule);
  }

  /**
   * Adds a rule; the returned function removes it.
   *
   * @throws TypeError | RangeError for a rule that cannot be, with the offending value
   */
  add(rule: FaultRule): () => void {
    checkRule(rule);
    const added: ActiveRule = { rule: { ...rule }, remaining: rule.times ?? Number.POSITIVE_INFINITY };
    this.#active.push(added);
    return () => {
      this.#active = this.#active.filter((active) => active !== added);
    };
  }

  /** Removes all rules. */
  clear(): void {
    this.#active = [];
  }

  /** The rules that are still active, as plain JSON; `times` is what is left of it. */
  list(): readonly FaultRule[] {
    return this.#active.map(({ rule, remaining }) =>
      rule.times === undefined ? rule : { ...rule, times: remaining },
    );
  }

  /**
   * Decides what happens to one request. Every rule that hits it uses up one of its `times`. Delays add up;
   * of several statuses the first counts.
   *
   * @param command the command's name, in any case
   */
  plan(command: string): FaultPlan {
    const hits = this.#active
      .filter(({ rule }) => this.#hits(rule, command))
      .map((active) => {
        active.remaining--;
        return active.rule;
      });
    this.#active = this.#active.filter(({ remaining }) => remaining > 0);
    const has = (fault: FaultKind) => hits.some((rule) => rule.fault === fault);
    const total = (fault: FaultKind) =>
      hits.reduce((sum, rule) => (rule.fault === fault ? sum + this.#duration(rule.ms) : sum), 0);
    const answered = hits.find((rule) => rule.fault === "status");
    return {
      down: has("down"),
      dropRequest: has("drop-request"),
      dropReply: has("drop-reply"),
      reset: hits.some((rule) => rule.fault.startsWith("drop-") && rule.reset === true),
      delay: total("delay"),
      delayReply: total("delay-reply"),
      reorder: has("reorder"),
      duplicate: has("duplicate"),
      status: answered && (answered.status ?? 500),
      html: answered?.html ?? false,
    };
  }

  #hits({ command, probability = 1 }: FaultRule, name: string): boolean {
    if (command !== undefined && command.toUpperCase() !== name.toUpperCase()) return false;
    // Certain rules draw no number: they must not shift what a seeded run draws later.
    return probability >= 1 || this.#random() < probability;
  }

  #duration(ms: FaultRule["ms"] = 1000): number {
    if (typeof ms === "number") return ms;
    const [least, most] = ms;
    return least + this.#random() * (most - least);
  }
}

function checkRule(rule: FaultRule): void {
  if (typeof rule !== "object" || rule === null) {
    throw new TypeError(`a fault must be an object, got ${String(rule)}`);
  }
  const { fault, command, probability, times, ms, status, html, reset, ...others } = rule;
  const [other] = Object.keys(others);
  if (other !== undefined) throw new TypeError(`a fault has no field ${JSON.stringify(other)}`);
  if (!kinds.includes(fault)) {
    throw new TypeError(`fault must be one of ${kinds.join(", ")}, got ${JSON.stringify(fault)}`);
  }
  if (command !== undefined && (typeof command !== "string" || command === "")) {
    throw new TypeError(`command must be the name of a command, got ${JSON.stringify(command)}`);
  }
  if (probability !== undefined) checkNumber("probability", probability, 0, 1);
  if (times !== undefined) {
    checkNumber("times", times, 1, Number.MAX_SAFE_INTEGER);
    if (!Number.isInteger(times)) throw new RangeError(`times must be an integer, got ${times}`);
  }
  if (ms !== undefined) checkDuration(ms);
  if (status !== undefined) {
    checkNumber("status", status, 300, 599);
    if (!Number.isInteger(status)) throw new RangeError(`status must be an integer, got ${status}`);
  }
  for (const [field, value] of Object.entries({ html, reset })) {
    if (value !== undefined && typeof value !== "boolean") {
      throw new TypeError(`${field} must be true or false, got ${JSON.stringify(value)}`);
    }
  }
}

function checkDuration(ms: NonNullable<FaultRule["ms"]>): void {
  const ends: readonly unknown[] = Array.isArray(ms) ? ms : [ms, ms];
  if (ends.length !== 2) {
    throw new TypeError(`ms must be a number or [least, most], got ${JSON.stringify(ms)}`);
  }
  const [least, most] = ends;
  for (const end of ends) checkNumber("ms", end, 0, Number.MAX_SAFE_INTEGER);
  if ((least as number) > (most as number))
    throw new RangeError(`ms must be [least, most], got ${JSON.stringify(ms)}`);
}

function checkNumber(field: string, value: unknown, least: number, most: number): void {
  if (typeof value !== "number" || Number.isNaN(value)) {
    throw new TypeError(`${field} must be a number, got ${JSON.stringify(value)}`);
  }
  if (value < least || value > most) {
    throw new RangeError(`${field} must be from ${least} to ${most}, got ${value}`);
  }
}
