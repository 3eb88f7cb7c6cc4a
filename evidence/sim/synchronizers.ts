import type { Actor, SharedContext } from "./actor.ts";
import type { Draw } from "./draw.ts";
import type { Process } from "./process.ts";
import { BarrierWorkload } from "./work-barrier.ts";
import { DebounceWorkload } from "./work-debounce.ts";
import { FairWorkload } from "./work-fair.ts";
import { ReadWriteWorkload, ReentrantWorkload, SemaphoreWorkload } from "./work-holds.ts";
import { LatchWorkload } from "./work-latch.ts";
import { OnceWorkload } from "./work-once.ts";
import { RefreshWorkload } from "./work-refresh.ts";
import { SingletonWorkload } from "./work-singleton.ts";

/** How the processes of a world use one synchronizer, and the checks of what they see. */
export interface Workload {
  /** Key patterns that may delay a probe until they expire: processes that died left such keys behind. */
  readonly blockingKeys: readonly string[];
  /** ms more within which its probes are served. Default: none. */
  readonly patience?: number;
  /** Uses the synchronizer once, with random options. Called again and again while there are faults. */
  perform(actor: Actor): Promise<void>;
  /** Uses it once after the faults have ended. Every process must be served within `bound` ms. */
  probe(actor: Actor, bound: number): Promise<void>;
  /** Checks the holds of a process again, because its clock was set. */
  recheck?(process: Process): void;
  /** Checks the whole run at its end. */
  checkAtEnd?(): void;
}

const workloads = {
  semaphore: SemaphoreWorkload,
  once: OnceWorkload,
  "read-write": ReadWriteWorkload,
  reentrant: ReentrantWorkload,
  fair: FairWorkload,
  latch: LatchWorkload,
  barrier: BarrierWorkload,
  debounce: DebounceWorkload,
  singleton: SingletonWorkload,
  refresh: RefreshWorkload,
} satisfies Record<string, new (shared: SharedContext, draw: Draw) => Workload>;

export type Synchronizer = keyof typeof workloads;

export const synchronizers: readonly Synchronizer[] = Object.keys(workloads) as Synchronizer[];

/** Synchronizers that share a world with others. Without the newest: adding them would change what old seeds draw. */
export const mixed: readonly Synchronizer[] = synchronizers.filter(
  (name) => !["debounce", "singleton", "refresh"].includes(name),
);

export function isSynchronizer(work: string): work is Synchronizer {
  return work in workloads;
}

/** Creates the workloads of these synchronizers, each with a random source of its own. */
export function createWorkloads(
  shared: SharedContext,
  names: readonly Synchronizer[],
): ReadonlyMap<Synchronizer, Workload> {
  return new Map(names.map((name) => [name, new workloads[name](shared, shared.world.draw.fork())]));
}
