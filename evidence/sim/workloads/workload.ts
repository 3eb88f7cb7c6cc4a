import type { Holds } from "../checks/holds.ts";
import type { Work } from "../world/scenario.ts";
import type { Actor } from "./actor.ts";

/** How the processes of a world use one part of the library, and the checks of what they see. */
export interface Workload {
  /** Key patterns that may delay a probe until they expire: processes that died left such keys behind. Default: none. */
  readonly blockingKeys?: readonly string[];
  /** ms more within which its probes are served. Default: none. */
  readonly patience?: number;
  /** What its calls hold. Fences increase there. Default: nothing. */
  readonly holds?: Holds;
  /** Makes one call with random options. Called again and again while there are faults. */
  perform(actor: Actor, kind: Work): Promise<void>;
  /** Makes a call after the faults have ended. Every process must be served within `bound` ms. Default: there is none. */
  probe?(actor: Actor, bound: number): Promise<void>;
  /** Checks the whole run at its end. */
  checkAtEnd?(): void;
}
