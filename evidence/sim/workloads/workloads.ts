import type { Draw } from "../draw.ts";
import type { Work } from "../world/scenario.ts";
import type { SharedContext } from "./actor.ts";
import { BarrierWorkload } from "./barrier.ts";
import { DebounceWorkload } from "./debounce.ts";
import { FairWorkload } from "./fair.ts";
import { FlightWorkload } from "./flight.ts";
import { ForgetWorkload } from "./forget.ts";
import { ReadWriteWorkload, ReentrantWorkload, SemaphoreWorkload } from "./holds.ts";
import { RunWorkload } from "./idempotency.ts";
import { LatchWorkload } from "./latch.ts";
import { LockWorkload } from "./lock.ts";
import { MailboxWorkload } from "./mailbox.ts";
import { OnceWorkload } from "./once.ts";
import { OperatorWorkload } from "./operator.ts";
import { RefreshWorkload } from "./refresh.ts";
import { SingletonWorkload } from "./singleton.ts";
import type { Workload } from "./workload.ts";

/** Who makes the calls of each kind. */
const workloads: Readonly<Record<Work, new (shared: SharedContext, draw: Draw) => Workload>> = {
  lock: LockWorkload,
  using: LockWorkload,
  burst: LockWorkload,
  operate: OperatorWorkload,
  idempotency: RunWorkload,
  "locked run": RunWorkload,
  attempts: RunWorkload,
  forget: ForgetWorkload,
  flight: FlightWorkload,
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
  mailbox: MailboxWorkload,
};

/** Creates the workloads of these kinds, each with a random source of its own. Kinds may have one in common. */
export function createWorkloads(shared: SharedContext, kinds: readonly Work[]): ReadonlyMap<Work, Workload> {
  const own = new Map(
    [...new Set(kinds.map((kind) => workloads[kind]))].map((each) => [
      each,
      new each(shared, shared.world.draw.fork()),
    ]),
  );
  return new Map(kinds.map((kind) => [kind, own.get(workloads[kind])!]));
}
