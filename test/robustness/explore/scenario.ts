import type { Dialect } from "../../../src/endpoints/endpoint.ts";
import type { Actor } from "./actor.ts";
import type { Faults } from "./options.ts";

/** What one client does. */
export type Program = (actor: Actor) => Promise<void>;

/** A small world: what its clients do, and which deviations from the straight order are explored. */
export interface Scenario extends Faults {
  readonly name: string;
  readonly about: string;
  readonly endpoints: number;
  /** Default `upstash`. */
  readonly dialect?: Dialect;
  /** false: through a client in between that repeats requests. Default true. */
  readonly exactReplies?: boolean;
  /** How fast endpoints' clocks run. Default 1.008, which the drift allowance of 1 % covers. */
  readonly rate?: number;
  /** For how many ms fences are remembered after their locks. Default: for longer than the scenario lasts. */
  readonly retention?: number;
  readonly clients: readonly Program[];
  /** By client: by how many ms its wall clock is ahead. Default 0. */
  readonly clocks?: readonly number[];
  /** A schedule that every one begins with, at no cost. Default: none. */
  readonly given?: string;
  /** The bound of `npm test`, and that of the long run. */
  readonly bounds: { readonly test: number; readonly long: number };
}
