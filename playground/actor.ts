import type { Client } from "./client.ts";

/** A process that the reader can tell what to do. */
export interface Actor {
  readonly client: Client;
  /** What it does now, in words. */
  readonly says: string;
  /** Whether something goes on in it, so that the picture grows. */
  readonly isBusy: boolean;
  readonly actions: readonly Action[];
}

/** What a process can do. */
export interface Action {
  readonly label: string;
  isPossible(): boolean;
  act(): unknown;
}
