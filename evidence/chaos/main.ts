import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type LocalEndpoint, start } from "../../local/src/index.ts";
import { Idempotency } from "../../src/idempotency/index.ts";
import { Redlock } from "../../src/index.ts";
import { Draw } from "../sim/draw.ts";
import { holdsOf } from "./checks.ts";
import { Fleet } from "./fleet.ts";
import { type Fault, type FaultKind, faultKinds, injectFaults } from "./nemesis.ts";
import { type Hold, resources } from "./records.ts";

/** Options of a run. */
export interface ChaosOptions {
  /** For how many seconds faults are injected. */
  readonly seconds: number;
  readonly seed: number;
  /** 3 or more. */
  readonly endpoints: number;
  /** 2 or more. */
  readonly clients: number;
  /** The bundled client program. */
  readonly program: string;
  /** Ends the run early, without a result. */
  readonly signal: AbortSignal;
}

/** What was observed in a run. */
export interface Run {
  /** For how many seconds faults were injected. */
  readonly seconds: number;
  readonly faults: readonly Fault[];
  /** How often each fault was injected. */
  readonly times: Readonly<Record<FaultKind, number>>;
  /** Clients that ended without being killed. */
  readonly failures: readonly string[];
  /** How long it took after the faults until every client had got every lock; `stuck`: why it did not, else empty. */
  readonly progress: { readonly stuck: string; readonly seconds: number };
  readonly holds: readonly Hold[];
  /** By event, its result at the end; null: none is stored. */
  readonly last: ReadonlyMap<string, string | null>;
}

/** Servers begin to lose their memory after this share of a run: everything before must be without any flaw. */
const untilLosses = 2 / 3;

/** ms within which, after the faults, all clients must end their work and then get every lock. */
const progressLimit = 60_000;

/**
 * Runs clients that contend for locks and events while faults are injected into them, the servers and the links
 * between. The seed decides the schedule, but what follows from it depends on real time: the same seed gives a
 * similar run, not the same. Needs redis-server on PATH. Leaves nothing behind, however it ends.
 *
 * @returns what was observed; `report.ts` evaluates it
 * @throws the signal's reason when it aborts
 */
export async function runChaos(options: ChaosOptions): Promise<Run> {
  const closers: (() => unknown)[] = [];
  try {
    const { fleet, endpoints } = await setUp(options, closers);
    const { seconds, faults } = await runFaults(options, endpoints, fleet);
    options.signal.throwIfAborted();
    const progress = await recover(fleet, options.signal);
    const holds = holdsOf(fleet.records());
    const events = [...new Set(holds.map(({ resource }) => resource))].filter(
      (name) => !resources.includes(name),
    );
    const last = progress.stuck ? new Map() : await finalResults(endpoints, events);
    await fleet.close();
    const timesOf = (kind: FaultKind) => faults.filter((fault) => fault.kind === kind).length;
    const times = Object.fromEntries(faultKinds.map((kind) => [kind, timesOf(kind)])) as Run["times"];
    return { seconds, faults, times, failures: fleet.failures, progress, holds, last };
  } finally {
    // In reverse order, and each one whether or not the others fail.
    for (const close of closers.reverse()) await Promise.allSettled([(async () => close())()]);
  }
}

/** Starts the servers and clients. What has to be closed is added to `closers`, also when it fails. */
async function setUp(
  { seed, program, endpoints: count, clients: size }: ChaosOptions,
  closers: (() => unknown)[],
): Promise<{ readonly endpoints: readonly LocalEndpoint[]; readonly fleet: Fleet }> {
  const directory = await mkdtemp(join(tmpdir(), "redlock-edge-chaos-"));
  closers.push(() => rm(directory, { recursive: true, force: true }));
  const local = await start({ engine: "redis", count });
  closers.push(() => local.close());
  const endpoints = local.endpoints.map(({ url, token }) => ({ url, token }));
  const fleet = new Fleet({ size, program, directory, endpoints, draw: new Draw(seed + 1) });
  closers.push(() => fleet.close());
  await fleet.start();
  return { endpoints: local.endpoints, fleet };
}

/** Injects faults for the run's time. */
async function runFaults(
  { seconds, seed, signal }: ChaosOptions,
  endpoints: readonly LocalEndpoint[],
  fleet: Fleet,
): Promise<Pick<Run, "seconds" | "faults">> {
  const over = abortsAfter(seconds * 1000, signal);
  const losing = abortsAfter(seconds * 1000 * untilLosses, signal);
  const began = performance.now();
  const faults = await injectFaults({ endpoints, fleet, draw: new Draw(seed), signal: over, losing });
  return { seconds: (performance.now() - began) / 1000, faults };
}

/** Unlike `AbortSignal.timeout` in `AbortSignal.any`, this timer is not garbage-collected by Node 20 before it fires. */
function abortsAfter(ms: number, signal: AbortSignal): AbortSignal {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), ms);
  function end(): void {
    clearTimeout(timer);
    controller.abort();
  }
  if (signal.aborted) end();
  else signal.addEventListener("abort", end, { once: true });
  return controller.signal;
}

/** After the faults, every client ends its work, and then gets every lock. */
async function recover(fleet: Fleet, signal: AbortSignal): Promise<Run["progress"]> {
  const began = performance.now();
  const limit = new AbortController();
  let stuck = "work that was begun does not end";
  async function drainAndProbe(): Promise<void> {
    await fleet.ask("drain");
    stuck = "not everybody gets every lock";
    await fleet.ask("probe");
    stuck = fleet.failures.length > 0 ? "a client failed" : "";
  }
  await Promise.race([
    drainAndProbe(),
    sleep(progressLimit, undefined, { signal: AbortSignal.any([signal, limit.signal]) }).catch(
      () => undefined,
    ),
  ]);
  limit.abort();
  signal.throwIfAborted();
  return { stuck, seconds: (performance.now() - began) / 1000 };
}

/** Every event's result at the end of the run, or null where none is stored. */
async function finalResults(
  endpoints: readonly LocalEndpoint[],
  events: readonly string[],
): Promise<Map<string, string | null>> {
  const redlock = new Redlock({
    endpoints: endpoints.map(({ url, token }) => ({ url, token })),
    timeout: 5000,
  });
  const idempotency = new Idempotency(redlock, { lease: 5000, wait: 10_000 });
  const last = new Map<string, string | null>();
  const notStored = new Error("nothing is stored");
  for (const event of events) {
    try {
      const { value } = await idempotency.run<string>(event, () => {
        throw notStored;
      });
      last.set(event, value);
    } catch (error) {
      if (error !== notStored) throw error;
      last.set(event, null);
    }
  }
  return last;
}
