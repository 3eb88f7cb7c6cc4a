import process from "node:process";

/**
 * How the ledger guards an account. `none`: it takes every write. `greater`: it takes a write whose fence is
 * greater than the last one written. `opened`: a holder opens the account with its fence, which refuses all
 * older ones from then on, reads in the same step, and writes under exactly that fence.
 */
export type Guard = "none" | "greater" | "opened";

/** One account of the ledger; its name is the locked resource. */
export interface Account {
  readonly name: string;
  readonly guard: Guard;
}

/** What all clients work on. */
export const accounts: readonly Account[] = [
  { name: "plain-1", guard: "none" },
  { name: "plain-2", guard: "none" },
  { name: "naive-1", guard: "greater" },
  { name: "fenced-1", guard: "opened" },
  { name: "fenced-2", guard: "opened" },
];

/** ms on the one monotonic clock that all processes of a machine share. Its zero means nothing. */
export function machineTime(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/**
 * What a client writes down, each line before it goes on: it may be killed at any moment. `at` is machine time.
 * `until` is a time at which the hold is certainly still valid, by the client's own `remaining()`, unless it is
 * not valid at `at` either; `extended`: it may have been extended since the last record. A run of an idempotent
 * event is a hold, too, of the event.
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
  /** A run of the event came to this; `executed` means that a quorum stored its result. */
  | { readonly type: "ran"; readonly hold: string; readonly how: string }
  /** What the sender of a delivery was told. */
  | {
      readonly type: "answered";
      readonly hold: string;
      readonly resource: string;
      readonly status: "executed" | "replayed";
      readonly value: string;
    }
);

/** A question to the ledger. */
export type Question =
  | { readonly ask: "read"; readonly account: string }
  | { readonly ask: "open"; readonly account: string; readonly fence: number }
  | { readonly ask: "write"; readonly account: string; readonly balance: number; readonly fence: number }
  | { readonly ask: "effect"; readonly event: string; readonly run: string };

/** The last thing that a client is done with. */
export type Phase = "started" | "drained" | "probed";

/** What clients send. */
export type FromClient =
  | { readonly type: "question"; readonly id: number; readonly question: Question }
  /** It has just seen that its hold is valid, and is about to write: the worst moment to be stopped. */
  | { readonly type: "checked"; readonly ttl: number }
  | { readonly type: "delivered"; readonly delivery: number }
  | { readonly type: "phase"; readonly phase: Phase };

/** What clients are sent. */
export type ToClient =
  /** The balance read or written, or null: refused. */
  | { readonly type: "answer"; readonly id: number; readonly balance: number | null }
  | { readonly type: "deliver"; readonly delivery: number; readonly event: string }
  | { readonly type: "drain" }
  | { readonly type: "probe" };

/** What a client process is started with, as JSON in its first argument. */
export interface ClientSettings {
  readonly name: string;
  readonly seed: number;
  readonly logFile: string;
  readonly endpoints: readonly { readonly url: string; readonly token: string }[];
}
