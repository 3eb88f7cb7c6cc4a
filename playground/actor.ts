import type { Client } from "./client.ts";

/** A process that the reader can tell what to do. */
export interface Actor {
  readonly client: Client;
  /** What it does now, in words. */
  readonly says: string;
  /** Whether something goes on in it, so that the picture grows. */
  readonly isBusy: boolean;
  readonly slots: readonly Slot[];
}

/** Something that the reader can do to a part of the world. */
export interface Deed {
  readonly label: string;
  isPossible(): boolean;
  act(): unknown;
}

/** Deeds that have one button: it shows the first one that is possible. */
export type Slot = readonly Deed[];
