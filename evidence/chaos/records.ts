import process from "node:process";

/**
 * How the ledger guards an account. `none`: it accepts every write. `greater`: it accepts a write whose fence is
 * greater than that of the last write. `opened`: a holder opens the account with its fence and reads it in the same
 * step; from then on the ledger refuses smaller fences, and accepts writes under exactly that fence.
 */
export type Guard = "none" | "greater" | "opened";

/** One account of the ledger; its name is the locked resource. */
export interface Account {
  readonly name: string;
  readonly guard: Guard;
}

/** The accounts that all clients work on. */
export const accounts: readonly Account[] = [
  { name: "plain-1", guard: "none" },
  { name: "plain-2", guard: "none" },
  { name: "naive-1", guard: "greater" },
  { name: "fenced-1", guard: "opened" },
  { name: "fenced-2", guard: "opened" },
];

/** ms on the monotonic clock that all processes of a machine share. Its zero is arbitrary. */
export function machineTime(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/**
 * One line of a client's log. Each is written before the client goes on, because it may be killed at any moment.
 * `at` is machine time. `until`: up to then the hold is certainly valid by the client's own `remaining()`; a time
 * not after `at` means that it is not valid. `extended`: it may have been extended since the last record. A run of an
 * idempotent event counts as a hold of that event.
 */
export type ClientRecord = { readonly at: number } & (
  | { readonly type: "acquiring"; readonly hold: string; readonly resource: string; readonly ttl: number }
  | { readonly type: "refused"; readonly hold: string; readonly code: string }
  | { readonly type: "granted"; readonly hold: string; readonly until: number; readonly fence?: number }
  | { readonly type: "valid"; readonly hold: string; readonly until: number; readonly extended: boolean }
  | { readonly type: "releasing"; readonly hold: string }
  | { readonly type: "released"; readonly hold: string; readonly outcome: "freed" | "gone" | "unknown" }
  | { readonly type: "contended"; readonly resource: string }
  /** A request to the ledger on behalf of a hold, and its answer. */
  | { readonly type: "opening" | "writing"; readonly hold: string; readonly balance?: number }
  | { readonly type: "opened" | "written"; readonly hold: string; readonly balance: number | null }
  /** The outcome of a run; `executed`: a quorum has stored its result. */
  | { readonly type: "ran"; readonly hold: string; readonly how: string }
  /** The answer to a delivery. */
  | {
      readonly type: "answered";
      readonly hold: string;
      readonly resource: string;
      readonly status: "executed" | "replayed";
      readonly value: string;
    }
);

/** A request to the ledger. */
export type LedgerRequest =
  | { readonly kind: "read"; readonly account: string }
  | { readonly kind: "open"; readonly account: string; readonly fence: number }
  | { readonly kind: "write"; readonly account: string; readonly balance: number; readonly fence: number }
  | { readonly kind: "effect"; readonly event: string; readonly run: string };

/** The last phase that a client has completed. */
export type Phase = "started" | "drained" | "probed";

/** Messages from clients. */
export type FromClient =
  | { readonly type: "request"; readonly id: number; readonly request: LedgerRequest }
  /** It has just checked that its hold is valid, and is about to write: the worst moment to be stopped. */
  | { readonly type: "about-to-write"; readonly ttl: number }
  | { readonly type: "delivered"; readonly delivery: number }
  | { readonly type: "phase"; readonly phase: Phase };

/** Messages to clients. */
export type ToClient =
  /** The balance read or written; null: the ledger refused. */
  | { readonly type: "answer"; readonly id: number; readonly balance: number | null }
  | { readonly type: "deliver"; readonly delivery: number; readonly event: string }
  | { readonly type: "drain" }
  | { readonly type: "probe" };

/** The settings of a client process: JSON in its first argument. */
export interface ClientSettings {
  readonly name: string;
  readonly seed: number;
  readonly logFile: string;
  readonly endpoints: readonly { readonly url: string; readonly token: string }[];
}
