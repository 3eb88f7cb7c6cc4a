import type { Round } from "../quorum/round.ts";
import type { Answer } from "../quorum/tally.ts";
import type { HoldOperations } from "./hold-operations.ts";
import type { LockRequest } from "./lock-request.ts";
import type { OpenExtensions } from "./open-extensions.ts";
import type { Settings } from "./options.ts";
import type { TakeOver } from "./take-over.ts";
import type { Validity } from "./validity.ts";

/** What a handle is made of, beside its request. */
export interface LockState {
  /** The number of its events. */
  readonly id: number;
  readonly ttl: number;
  /** ms since before the request that granted it. */
  readonly elapsed: () => number;
  readonly fence: number | undefined;
  /** Longest time to hold, in ms. */
  readonly limit: number;
  /** At most so many ms of validity remain. Default: all of the ttl's. */
  readonly remaining?: number;
  /** The round that acquired it; undefined where another process did. */
  readonly round?: Round<Answer>;
  readonly operations?: HoldOperations | undefined;
  /** Endpoints at which a request that acquires it may still be executed, beside those that the round shows. */
  readonly pendingAcquires?: readonly string[];
  /** By endpoint: the lowest ttl of an extension that may still be executed there. Default: none. */
  readonly pendingExtensions?: Readonly<Record<string, number>>;
  /** Where it was handed over: in place of whose nonces this handle's comes. */
  readonly takeOver?: TakeOver | undefined;
}

/** What a handle is made of at this moment, as far as another process needs it to go on with the lock. */
export interface LockParts {
  readonly settings: Settings;
  readonly request: LockRequest;
  readonly validity: Validity;
  /** Settles when the last extension has ended. */
  readonly extension: Promise<unknown>;
  readonly pendingAcquires: readonly string[];
  readonly openExtensions: OpenExtensions;
  readonly takeOver: TakeOver | undefined;
}
