import type { Actor, Stage } from "./actor.ts";
import type { Draw } from "./draw.ts";
import type { Process } from "./process.ts";
import { barrierWorkload } from "./work-barrier.ts";
import { debounceWorkload } from "./work-debounce.ts";
import { fairWorkload } from "./work-fair.ts";
import { latchWorkload } from "./work-latch.ts";
import { onceWorkload } from "./work-once.ts";
import { readWriteWorkload } from "./work-read-write.ts";
import { reentrantWorkload } from "./work-reentrant.ts";
import { semaphoreWorkload } from "./work-semaphore.ts";

/** What the processes of a world do with one synchronizer, and what is to be true of it. */
export interface Workload {
  /** Uses it, from beginning to end. */
  perform(actor: Actor): Promise<void>;
  /** Comes through once, however long it takes: after the faults everybody must be served within `bound` ms. */
  turn(actor: Actor, bound: number): Promise<void>;
  /** Keys that may be in the way of a turn for as long as they stand: what was left behind by those who died. */
  readonly leftovers: readonly string[];
  /** A process's clock has been set. */
  look(process: Process): void;
  /** Looks at everything at the end. */
  conclude(): void;
}

const workloads = {
  semaphore: semaphoreWorkload,
  once: onceWorkload,
  "read-write": readWriteWorkload,
  reentrant: reentrantWorkload,
  fair: fairWorkload,
  latch: latchWorkload,
  barrier: barrierWorkload,
  debounce: debounceWorkload,
} satisfies Record<string, (stage: Stage, draw: Draw) => Workload>;

export type Synchronizer = keyof typeof workloads;

export const synchronizers: readonly Synchronizer[] = Object.keys(workloads) as Synchronizer[];

/** Those that a world may have beside others; so what the seeds of such worlds draw stays as it was. */
export const mixed: readonly Synchronizer[] = synchronizers.filter((name) => name !== "debounce");

export function isSynchronizer(work: string): work is Synchronizer {
  return work in workloads;
}

/** Begins the workloads of these synchronizers in a world. */
export function beginWorkloads(
  stage: Stage,
  names: readonly Synchronizer[],
): ReadonlyMap<Synchronizer, Workload> {
  return new Map(names.map((name) => [name, workloads[name](stage, stage.world.draw.fork())]));
}
