import type { Round } from "../quorum/round.ts";
import type { Answer } from "../quorum/tally.ts";
import type { Fence } from "./fence.ts";
import type { HoldOperations } from "./hold-operations.ts";
import type { LockClaim } from "./lock-claim.ts";
import type { Settings } from "./options.ts";
import type { Validity } from "./validity.ts";

/** What a {@link Lock} begins with, beside its claim. */
export interface LockState {
  /** The number of its events. */
  readonly id: number;
  readonly ttl: number;
  readonly fence: Fence | undefined;
  /** Longest time to hold, in ms from the beginning of the round. */
  readonly limit: number;
  /** The round that acquired it, or took it over from another process. */
  readonly round: Round<Answer>;
  readonly operations?: HoldOperations | undefined;
}

/** What `handoff` and `resume` read of a {@link Lock}. */
export interface LockParts {
  /** The number of its events; undefined once the last one was reported. */
  readonly id: number | undefined;
  readonly settings: Settings;
  readonly claim: LockClaim;
  readonly validity: Validity;
}
