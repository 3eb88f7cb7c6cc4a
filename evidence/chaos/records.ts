import process from "node:process";

/** The locks that all clients want; those of fenced resources have fences. */
export const resources = ["plain-1", "plain-2", "fenced-1", "fenced-2"];

export const isFenced = (resource: string): boolean => resource.startsWith("fenced");

/** ms on the monotonic clock that all processes of a machine share. Its zero is arbitrary. */
export function machineTime(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/**
 * One line of a client's log. Each is written before the client goes on, because it may be killed at any moment. `at` is machine
 * time. `until`: up to then the hold is certainly valid by the client's own `remaining()`. A run of an event counts as a hold of
 * that event.
 */
export type ClientRecord = { readonly at: number; readonly hold: string } & (
  | { readonly type: "called"; readonly resource: string }
  | { readonly type: "granted"; readonly until: number; readonly fence?: number }
  | { readonly type: "valid"; readonly until: number }
  /** From now on the client no longer relies on it. */
  | { readonly type: "ended" }
  | { readonly type: "refused"; readonly code: string }
  /** The result of an event, stored or replayed. */
  | { readonly type: "answered"; readonly value: string }
);

/** The last phase that a client has completed. */
export type Phase = "started" | "drained" | "probed";

/** Asks a client to end its work, or to acquire every lock once. It answers with the phase. */
export type Order = "drain" | "probe";

/** The settings of a client process: JSON in its first argument. */
export interface ClientSettings {
  readonly name: string;
  readonly seed: number;
  readonly logFile: string;
  readonly endpoints: readonly { readonly url: string; readonly token: string }[];
}
