import type { FaultRule } from "../faults/faults.ts";

/** What is now: the page is sent it as JSON. No token and no stored value is in it. */
export interface PageState {
  /** ms since 1970, by the clock of the process that runs the endpoints. All times are by this clock. */
  readonly now: number;
  readonly engine: "redis" | "embedded";
  readonly quorum: number;
  readonly endpoints: readonly EndpointState[];
  /** What is held, the newest first. */
  readonly locks: readonly LockRow[];
  /** What is wrong first. */
  readonly records: readonly RecordRow[];
  /** The newest first. */
  readonly requests: readonly RequestRow[];
}

export interface EndpointState {
  readonly name: string;
  readonly url: string;
  /** `silent`: the Redis behind it does not answer. */
  readonly status: "up" | "stopped" | "silent";
  readonly requests: number;
  readonly billed: number;
  readonly faults: readonly FaultRule[];
  /** Whether it can be started without its data. */
  readonly canForget: boolean;
}

/** How one endpoint stands to a row: `same` as most, `other` value, `free`, or `unknown` because it is not up. */
export type Share = "same" | "other" | "free" | "unknown";

/** Something that is held at one endpoint at least. */
export interface LockRow {
  readonly kind: string;
  readonly resource: string;
  /** Whether a quorum has the same holder. */
  readonly held: boolean;
  /** The first 12 hex digits of the SHA-256 of the holder's token; or how many holders there are. */
  readonly holder: string;
  /** What the holder says of itself. */
  readonly note?: string;
  /** Whose request has stored it, as far as that is known. */
  readonly client?: string;
  /** ms since 1970: when fewer than a quorum have it, or, if none has, when the last one frees it. */
  readonly until: number;
  readonly fence?: number;
  /** In the order of the endpoints. */
  readonly shares: readonly Share[];
}

/** A key of idempotent runs. */
export interface RecordRow {
  /** `key`, or `flight` for one of `singleFlight()`, and the beginning of its hash. */
  readonly key: string;
  /** `unfinished`: runs began and neither completed nor failed, and none is under way. */
  readonly state: "pending" | "complete" | "corrupt" | "unfinished";
  /** How many runs began and neither completed nor failed; undefined: none is counted. */
  readonly attempts?: number;
  /** How many calls got the stored result, as far as the page has seen. */
  readonly replays: number;
  /** ms since 1970: when the run began or completed. */
  readonly since?: number;
  readonly until: number;
  readonly shares: readonly Share[];
}

/** One command, at all endpoints where it had this result. */
export interface RequestRow {
  readonly at: number;
  readonly client: string;
  readonly endpoints: readonly string[];
  readonly operation: string;
  readonly resource: string;
  readonly result: string;
  /** Whether the result is a failure. */
  readonly failed: boolean;
  /** From the request's arrival to its end, at the slowest endpoint. */
  readonly ms: number;
  readonly billed: number;
}
