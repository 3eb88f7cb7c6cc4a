import process from "node:process";

/** The locks that all clients want; those of fenced resources have fences. */
export const resources = ["plain-1", "plain-2", "fenced-1", "fenced-2"];

export const isFenced = (resource: string): boolean => resource.startsWith("fenced");

/** ms on the monotonic clock that all processes of a machine share. Its zero is arbitrary. */
export function machineTime(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** One attempt to hold a resource, and its outcome. A run of an event is a hold of that event. Times are machine time. */
export interface Hold {
  readonly id: string;
  readonly resource: string;
  /** When the call was made, and when it returned a lock or its handler began. */
  readonly called: number;
  readonly granted?: number;
  readonly fence?: number;
  /** Until when, at least, the holder could rely on it by its own `remaining()`. */
  readonly until?: number;
  /** When it no longer relied on it. */
  readonly ended?: number;
  readonly refused?: string;
  /** The result of an event, stored or replayed. */
  readonly answered?: { readonly at: number; readonly value: string };
}

/** One line of a client's log: news of a hold. Each is written before the client goes on, because it may be killed at any moment. */
export type ClientRecord = Pick<Hold, "id"> & Partial<Hold>;

/** Asks a client to end its work, or to acquire every lock once. It answers when it has. */
export type Order = "drain" | "probe";

/** The settings of a client process: JSON in its first argument. */
export interface ClientSettings {
  readonly name: string;
  readonly seed: number;
  readonly logFile: string;
  readonly endpoints: readonly { readonly url: string; readonly token: string }[];
}
