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
