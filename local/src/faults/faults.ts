import { checkNumber, wrongType } from "../../../lock-server/src/check.ts";
import { systemRuntime } from "../runtime.ts";

/** A failure between a client and one endpoint. */
export type FaultKind =
  /** The connection is refused; the request is not executed. */
  | "down"
  /** The request is lost: never executed, never answered. */
  | "drop-request"
  /** The request is executed and its reply is lost. A naive client leaves a lock behind that it does not know of. */
  | "drop-reply"
  /** The request waits before it is executed. */
  | "delay"
  /** The request is executed at once; its reply waits. */
  | "delay-reply"
  /** The request is executed after the next one of this endpoint, or after 1 s. */
  | "reorder"
  /** The request is executed twice; the second reply is sent. */
  | "duplicate"
  /** The request is not executed, but answered with an HTTP error, as by an overloaded gateway. */
  | "status"
  /** A stream of events ends after `ms`, counted from its confirmation. */
  | "cut-stream"
  /** A stream confirms its subscription, and then has no message, although it stays open. */
  | "silent-stream"
  /** A message of a stream is lost. */
  | "drop-message"
  /** A message of a stream arrives twice. */
  | "duplicate-message"
  /** A message of a stream is late by `ms`; later ones may overtake it. */
  | "delay-message";

/** A fault for some or all requests to one endpoint, or for its streams of events and their messages. Plain JSON. */
export interface FaultRule {
  readonly fault: FaultKind;
  /**
   * Only commands of this name, for example `"SET"`, in any case; for a stream and its messages the command that opened it:
   * `"SUBSCRIBE"` or `"PSUBSCRIBE"`. Default: every command.
   */
  readonly command?: string;
  /** Share of the matching requests, streams or messages that the rule applies to, from 0 to 1. Default 1. */
  readonly probability?: number;
  /**
   * Number of requests, streams or messages that the rule applies to before it is removed; an integer from 1. Default: no
   * limit.
   */
  readonly times?: number;
  /**
   * For `delay`, `delay-reply`, `delay-message` and `cut-stream`: ms, or `[least, most]` for a uniform distribution.
   * Default 1 000 (1 second).
   */
  readonly ms?: number | readonly [number, number];
  /** For `status`: the HTTP status, from 300 to 599. Default 500. */
  readonly status?: number;
  /** For `status`: whether the body is an HTML page instead of JSON, as of proxies. Default false. */
  readonly html?: boolean;
  /**
   * For `drop-request` and `drop-reply`: whether to break the connection instead of staying silent. For `cut-stream`:
   * whether to break the connection instead of ending the response. Default false.
   */
  readonly reset?: boolean;
}

/** The faults of one request: all matching rules together. */
export interface FaultPlan {
  readonly down: boolean;
  readonly dropRequest: boolean;
  readonly dropReply: boolean;
  readonly reset: boolean;
  /** ms before the request is executed. */
  readonly delay: number;
  /** ms between execution and reply. */
  readonly delayReply: number;
  readonly reorder: boolean;
  readonly duplicate: boolean;
  /** The HTTP status of an error; undefined: none. */
  readonly status: number | undefined;
  readonly html: boolean;
}

/** The faults of one stream of events. */
export interface StreamPlan {
  /** ms from its confirmation to its end; undefined: it is not cut. */
  readonly cutAfter: number | undefined;
  /** Whether the cut breaks the connection. */
  readonly reset: boolean;
  readonly silent: boolean;
}

/** The faults of one message of a stream. */
export interface MessagePlan {
  readonly drop: boolean;
  readonly duplicate: boolean;
  /** ms by which it is late. */
  readonly delay: number;
}

const requestKinds: readonly FaultKind[] = [
  "down",
  "drop-request",
  "drop-reply",
  "delay",
  "delay-reply",
  "reorder",
  "duplicate",
  "status",
];
const streamKinds: readonly FaultKind[] = ["cut-stream", "silent-stream"];
const messageKinds: readonly FaultKind[] = ["drop-message", "duplicate-message", "delay-message"];
const kinds: readonly FaultKind[] = [...requestKinds, ...streamKinds, ...messageKinds];

interface ActiveRule {
  readonly rule: FaultRule;
  remaining: number;
}

/**
 * The fault rules of one endpoint. It plans the faults of each request; the endpoint carries them out.
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
   * The faults of one endpoint, with these rules to begin with.
   *
   * @param random returns a number in [0, 1), for `probability` and for ranges of `ms`. Default: the platform's
   * @throws TypeError | RangeError for an invalid rule, with the offending value
   */
  constructor(rules: readonly FaultRule[] = [], random: () => number = systemRuntime.random) {
    this.#random = random;
    if (!Array.isArray(rules)) throw wrongType("rules", rules, "an array of rules");
    for (const rule of rules) this.add(rule);
  }

  /**
   * Adds a rule and returns a function that removes it.
   *
   * @throws TypeError | RangeError for an invalid rule, with the offending value
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

  /** The active rules, as plain JSON. Their `times` is the number of remaining requests. */
  list(): readonly FaultRule[] {
    return this.#active.map(({ rule, remaining }) =>
      rule.times === undefined ? rule : { ...rule, times: remaining },
    );
  }

  /**
   * Plans the faults of one request. Each rule that applies uses up one of its `times`. Delays add up; of several
   * statuses, the first rule's is used.
   *
   * @param command the command's name, in any case
   */
  plan(command: string): FaultPlan {
    const { hits, has, total } = this.#take(requestKinds, command);
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

  /**
   * Plans the faults of a stream of events that begins. Of several cuts, the first one ends it.
   *
   * @param command the command that opened it, in any case
   */
  planStream(command: string): StreamPlan {
    const { hits, has } = this.#take(streamKinds, command);
    const cuts = hits.flatMap(({ fault, ms, reset = false }) =>
      fault === "cut-stream" ? [{ after: this.#duration(ms), reset }] : [],
    );
    const [first] = cuts.sort((left, right) => left.after - right.after);
    return { cutAfter: first?.after, reset: first?.reset ?? false, silent: has("silent-stream") };
  }

  /**
   * Plans the faults of one message of a stream.
   *
   * @param command the command that opened the stream, in any case
   */
  planMessage(command: string): MessagePlan {
    const { has, total } = this.#take(messageKinds, command);
    return {
      drop: has("drop-message"),
      duplicate: has("duplicate-message"),
      delay: total("delay-message"),
    };
  }

  /** The rules of some kinds that apply to a command; each of them uses up one of its `times`. */
  #take(among: readonly FaultKind[], command: string) {
    const hits = this.#active
      .filter(({ rule }) => among.includes(rule.fault) && this.#hits(rule, command))
      .map((active) => {
        active.remaining--;
        return active.rule;
      });
    this.#active = this.#active.filter(({ remaining }) => remaining > 0);
    return {
      hits,
      has: (fault: FaultKind) => hits.some((rule) => rule.fault === fault),
      total: (fault: FaultKind) =>
        hits.reduce((sum, rule) => (rule.fault === fault ? sum + this.#duration(rule.ms) : sum), 0),
    };
  }

  #hits({ command, probability = 1 }: FaultRule, name: string): boolean {
    if (command !== undefined && command.toUpperCase() !== name.toUpperCase()) return false;
    // A certain rule draws no number: that would shift the later draws of a seeded run.
    return probability >= 1 || this.#random() < probability;
  }

  #duration(ms: FaultRule["ms"] = 1000): number {
    if (typeof ms === "number") return ms;
    const [least, most] = ms;
    return least + this.#random() * (most - least);
  }
}

const fields = ["fault", "command", "probability", "times", "ms", "status", "html", "reset"];

function checkRule(rule: FaultRule): void {
  if (typeof rule !== "object" || rule === null) {
    throw new TypeError(`a fault must be an object, got ${String(rule)}`);
  }
  const other = Object.keys(rule).find((field) => !fields.includes(field));
  if (other !== undefined) {
    throw new TypeError(`a fault has no field ${JSON.stringify(other)}; there are ${fields.join(", ")}`);
  }
  const { fault, command, probability, times, ms, status, html, reset } = rule;
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
  for (const end of ends) checkNumber("ms", end as number, 0, Number.MAX_SAFE_INTEGER);
  if ((least as number) > (most as number))
    throw new RangeError(`ms must be [least, most], got ${JSON.stringify(ms)}`);
}
