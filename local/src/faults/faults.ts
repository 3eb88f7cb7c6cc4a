import {
  checkNumber,
  checkOptions,
  checkText,
  integer,
  number,
  oneOf,
  type Schema,
  typed,
  wrongType,
} from "../../../src/check/check.ts";
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

/** What one request, stream or message has of each fault: the first rule, with the `ms` of all. */
export type FaultPlan = { readonly [Kind in FaultKind]?: FaultRule & { readonly ms: number } };

const kinds = {
  request: ["down", "drop-request", "drop-reply", "delay", "delay-reply", "reorder", "duplicate", "status"],
  stream: ["cut-stream", "silent-stream"],
  message: ["drop-message", "duplicate-message", "delay-message"],
} as const satisfies Readonly<Record<string, readonly FaultKind[]>>;

const schema: Schema<FaultRule> = {
  fault: oneOf(...Object.values(kinds).flat()),
  command: (name, command) => checkText(name, command),
  probability: number(0, 1),
  times: integer(1, Number.MAX_SAFE_INTEGER),
  ms: checkDuration,
  status: integer(300, 599),
  html: typed("boolean"),
  reset: typed("boolean"),
};

function checkDuration(name: string, ms: NonNullable<FaultRule["ms"]>): void {
  const ends = typeof ms === "object" ? ms : ([ms, ms] as const);
  for (const end of ends) checkNumber(name, end, 0, Number.MAX_SAFE_INTEGER);
  if (ends.length === 2 && ends[0] <= ends[1]) return;
  throw new RangeError(`${name} must be a number or [least, most], got ${JSON.stringify(ms)}`);
}

interface ActiveRule {
  readonly rule: FaultRule;
  remaining: number;
}

/**
 * The fault rules of one endpoint, which carries them out.
 *
 * @example
 * const faults = new Faults([{ fault: "drop-reply", command: "SET", times: 1 }]);
 * faults.list(); // what is left of the rules
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
    checkOptions("a fault", rule, schema, { required: ["fault"] });
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
   * Plans the faults of one request, or of a stream or a message that a command has opened. Each rule that applies uses up
   * one of its `times`. Delays add up; of several cuts of a stream, the first one ends it.
   *
   * @param command in any case
   * @internal
   */
  plan(command: string, of: keyof typeof kinds = "request"): FaultPlan {
    const among: readonly FaultKind[] = kinds[of];
    const hits = this.#active.filter(({ rule }) => among.includes(rule.fault) && this.#hits(rule, command));
    this.#active = this.#active.filter((active) => !hits.includes(active) || --active.remaining > 0);
    const plan: { -readonly [Kind in FaultKind]?: NonNullable<FaultPlan[Kind]> } = {};
    for (const { rule } of hits) {
      const before = plan[rule.fault];
      const own = { ...rule, ms: this.#duration(rule.ms) };
      if (!before) plan[rule.fault] = own;
      else if (rule.fault !== "cut-stream") plan[rule.fault] = { ...before, ms: before.ms + own.ms };
      else if (own.ms < before.ms) plan[rule.fault] = own;
    }
    return plan;
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
