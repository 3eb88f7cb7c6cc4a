import { permanentErrors } from "./server-errors.ts";

/** The kind of a {@link RedlockError}. */
export type RedlockErrorCode =
  | "LOCK_HELD"
  | "NO_QUORUM"
  | "LOCK_LOST"
  | "ENDPOINT_ERROR"
  | "IN_PROGRESS"
  | "FINGERPRINT_MISMATCH"
  | "LEASE_LOST"
  | "RECORD_CORRUPT"
  | "RESULT_UNAVAILABLE"
  | "DEAD_KEY"
  | "WEBHOOK_INVALID"
  | "STALE_FENCE"
  | "TRANSACTION_ENDED"
  | "LIMIT_MISMATCH"
  | "ARRIVALS_MISSING"
  | "MAILBOX_FULL"
  | "REFRESHED_NOT_WRITTEN";

// Found across realms and copies of this package.
const brand = Symbol.for("redlock-edge.error");

/**
 * Base of the errors of this package. A wrong argument is a `TypeError` or `RangeError` instead, and an aborted call
 * rejects with its signal's `reason`.
 */
export class RedlockError extends Error {
  /** Use it if `instanceof` may fail. */
  readonly code: RedlockErrorCode;

  constructor(code: RedlockErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.code = code;
    // Minifiers rename classes.
    Object.defineProperty(this, "name", { value: "RedlockError", configurable: true, writable: true });
    Object.defineProperty(this, brand, { value: true });
  }
}

/**
 * Whether `value` is an error of this package, even from another realm or a second copy of the package, where
 * `instanceof` fails.
 *
 * @example
 * if (isRedlockError(error) && error.code === "LOCK_HELD") return new Response("busy", { status: 409 });
 */
export function isRedlockError(value: unknown): value is RedlockError {
  return typeof value === "object" && value !== null && (value as Record<symbol, unknown>)[brand] === true;
}

/** Who holds a lock. */
export interface LockHolder {
  readonly note: string | undefined;
  /** ms until a quorum may be free again, if known. */
  readonly expiresIn: number | undefined;
}

/** Someone else holds the resource. */
export class LockHeldError extends RedlockError {
  readonly resources: readonly string[];
  /** How long `acquire` waited, in ms. */
  readonly waited: number;
  /** ms until a quorum may be free again. Known only with `fencing` or several resources. */
  readonly retryAfter: number | undefined;
  /**
   * The holder. Known only with `fencing`, several resources or a run's `lock`: use `inspect` for any other lock. The
   * message leaves it out, because messages may reach strangers.
   */
  readonly holder: LockHolder | undefined;

  /** @param details `how`: for the message */
  constructor(
    resources: readonly string[],
    waited: number,
    details: Partial<Pick<LockHeldError, "retryAfter" | "holder">> & {
      readonly how?: string | undefined;
    } = {},
  ) {
    const { retryAfter, holder, how = " is held by someone else" } = details;
    super("LOCK_HELD", `${list(resources)}${how} (waited ${Math.round(waited)} ms)`);
    this.name = "LockHeldError";
    this.resources = resources;
    this.waited = waited;
    this.retryAfter = retryAfter;
    this.holder = holder;
  }
}

/** One endpoint's answer. */
export interface Vote {
  readonly endpoint: string;
  /**
   * `granted`: it did the requested work. `held`: it has someone else's value. `lost`: it no longer has ours. `error`:
   * no usable answer, see `cause`. `pending`: no answer when the round was decided.
   */
  readonly outcome: "granted" | "held" | "lost" | "error" | "pending";
  /** Why an `error` vote does not count. */
  readonly cause?: EndpointError;
}

/** Too few endpoints answered, or too late. */
export class QuorumError extends RedlockError {
  /** Each endpoint's answer. */
  readonly votes: readonly Vote[];

  /** @param details `late`: they answered too late. `ttl`: of the call, in ms. `why`: instead of the votes */
  constructor(
    action: string,
    resources: readonly string[],
    votes: readonly Vote[],
    details: { readonly late?: boolean; readonly ttl?: number | undefined; readonly why?: string } = {},
  ) {
    const { late = false, ttl, why } = details;
    const answers = votes.map(({ endpoint, outcome, cause }) => cause?.message ?? `${endpoint}: ${outcome}`);
    const reason = late ? "the answers came too late for the ttl or the deadline" : answers.join("; ");
    const isTime = late || votes.some(({ cause }) => cause?.kind === "timeout");
    const hint = isTime ? secondsHint(ttl) : "";
    super("NO_QUORUM", `no quorum to ${action} ${list(resources)}: ${why ?? reason}${hint}`, {
      cause: votes.find((vote) => vote.cause)?.cause,
    });
    this.name = "QuorumError";
    this.votes = votes;
  }
}

/** The lock is lost: its validity ended, or a quorum no longer has its token. */
export class LockLostError extends RedlockError {
  readonly resources: readonly string[];

  constructor(resources: readonly string[], why: string) {
    super("LOCK_LOST", `the lock on ${list(resources)} is lost: ${why}`);
    this.name = "LockLostError";
    this.resources = resources;
  }
}

/**
 * Why an endpoint's answer does not count. `timeout`: no answer in time. `network`: `fetch` or the connection failed.
 * `http`: a status other than 200 and 400, redirects included. `redis`: Redis answered with an error. `malformed`: the
 * protocol does not allow this reply, or it is too large.
 */
export type EndpointErrorKind = "timeout" | "network" | "http" | "redis" | "malformed";

const permanent = new RegExp(`\\b(${permanentErrors.join("|")})\\b`);

/** One endpoint failed. Found in the votes of a {@link QuorumError} and in `endpointError` events. */
export class EndpointError extends RedlockError {
  readonly endpoint: string;
  readonly kind: EndpointErrorKind;
  readonly status: number | undefined;
  /**
   * Whether an equal request would fail again until somebody changes something, for example a wrong token.
   * docs/errors.md has the list.
   */
  readonly permanent: boolean;
  /** ms for which the endpoint wants no requests (HTTP 429 with `retry-after`). */
  readonly retryAfter: number | undefined;
  /**
   * Whether the command was never sent, so that nothing has to be undone. Your own endpoint may throw such an error.
   * Default false.
   */
  readonly unsent: boolean;

  constructor(
    endpoint: string,
    kind: EndpointErrorKind,
    message: string,
    options?: {
      readonly cause?: unknown;
      readonly status?: number;
      readonly retryAfter?: number | undefined;
      readonly unsent?: boolean;
    },
  ) {
    super("ENDPOINT_ERROR", `${endpoint}: ${message}`, options);
    this.name = "EndpointError";
    this.endpoint = endpoint;
    this.kind = kind;
    this.status = options?.status;
    this.retryAfter = options?.retryAfter;
    this.unsent = options?.unsent ?? false;
    // A Cluster client says so after too many redirections, which passes.
    this.permanent =
      [401, 403, 404].includes(this.status ?? 0) || (kind !== "network" && permanent.test(message));
  }
}

export function isEndpointError(error: unknown): error is EndpointError {
  return isRedlockError(error) && error.code === "ENDPOINT_ERROR";
}

/** The message of what was thrown, which may be any value. */
export function reasonOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** Usually seconds were meant. */
export function secondsHint(ms: number | undefined): string {
  return ms && ms < 1_000 ? `: ${ms} is ${ms} ms; did you mean ${ms}_000?` : "";
}

function list(resources: readonly string[]): string {
  return resources.map((resource) => JSON.stringify(resource)).join(", ");
}
