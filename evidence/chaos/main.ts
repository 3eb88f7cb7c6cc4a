import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { build } from "esbuild";
import { type LocalEndpoint, start } from "../../local/src/index.ts";
import { Idempotency } from "../../src/idempotency/index.ts";
import { Redlock } from "../../src/index.ts";
import { Draw } from "../sim/draw.ts";
import { createEventSender, type EventSender } from "./event-sender.ts";
import { type Fleet, startFleet } from "./fleet.ts";
import { type Hold, holdsOf } from "./holds.ts";
import { type Balance, Ledger } from "./ledger.ts";
import { type FaultCounts, injectFaults } from "./nemesis.ts";
import { accounts } from "./records.ts";

/** Options of a run. */
export interface ChaosOptions {
  /** For how many seconds faults are injected. */
  readonly seconds: number;
  readonly seed: number;
  /** 3 or more. */
  readonly endpoints: number;
  /** 2 or more. */
  readonly clients: number;
  /** The folder of the project. */
  readonly project: string;
  /** Ends the run early, without a result. */
  readonly signal: AbortSignal;
}

/** What was observed in a run. */
export interface Run {
  /** For how many seconds faults were injected. */
  readonly seconds: number;
  readonly faults: FaultCounts;
  /** Clients that ended without being killed. */
  readonly failures: readonly string[];
  /** How long it took after the faults until all work was done and every client had got every lock; `stuck`: why it was not, else empty. */
  readonly progress: { readonly stuck: string; readonly seconds: number };
  readonly holds: readonly Hold[];
  /** Rounds that found their resource held. */
  readonly contended: number;
  readonly balances: readonly Balance[];
  /** By event, the runs that left an effect. */
  readonly effects: ReadonlyMap<string, readonly string[]>;
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
    const setup = await setUp(options, closers);
    const { fleet, sender, ledger, endpoints, writes } = setup;
    const { seconds, faults } = await runFaults(options, setup);
    options.signal.throwIfAborted();
    const progress = await recover(fleet, () => sender.done(), options.signal);
    const last = progress.stuck ? new Map() : await finalResults(endpoints, sender.events);
    await fleet.close();
    await writes.arrived();
    return {
      seconds,
      faults,
      failures: fleet.failures,
      progress,
      ...recordsOf(fleet),
      balances: ledger.balances,
      effects: ledger.effects,
      last,
    };
  } finally {
    // In reverse order, and each one whether or not the others fail.
    for (const close of closers.reverse()) await Promise.allSettled([(async () => close())()]);
  }
}

/** Everything that takes part in a run. */
interface Setup {
  readonly endpoints: readonly LocalEndpoint[];
  readonly ledger: Ledger;
  readonly writes: WriteDelays;
  readonly sender: EventSender;
  readonly fleet: Fleet;
}

/** Starts the servers and clients. What has to be closed is added to `closers`, also when it fails. */
async function setUp(options: ChaosOptions, closers: (() => unknown)[]): Promise<Setup> {
  const { seed, project } = options;
  const directory = await mkdtemp(join(tmpdir(), "redlock-edge-chaos-"));
  closers.push(() => rm(directory, { recursive: true, force: true }));
  const program = await bundleClient(project);
  closers.push(() => rm(program, { force: true }));
  const local = await start({ engine: "redis", count: options.endpoints });
  closers.push(() => local.close());
  const ledger = new Ledger(accounts);
  const writes = createWriteDelays(new Draw(seed + 1));
  const sender = createEventSender(() => fleet, new Draw(seed + 2));
  const fleet: Fleet = await startFleet(
    {
      size: options.clients,
      program,
      directory,
      endpoints: local.endpoints.map(({ url, token }) => ({ url, token })),
      draw: new Draw(seed + 3),
    },
    {
      onLedgerRequest({ request }, answer) {
        const execute = () => answer(ledger.execute(request));
        if (request.kind === "write") writes.carry(execute);
        else execute();
      },
      onDelivered: sender.delivered,
      onLost: sender.lost,
    },
  );
  closers.push(() => fleet.close());
  return { endpoints: local.endpoints, ledger, writes, sender, fleet };
}

/** Injects faults for the run's time, while events are sent. */
async function runFaults(
  { seconds, seed, signal }: ChaosOptions,
  { endpoints, fleet, sender, writes }: Setup,
): Promise<Pick<Run, "seconds" | "faults">> {
  const over = abortsAfter(seconds * 1000, signal);
  const losing = abortsAfter(seconds * 1000 * untilLosses, signal);
  const began = performance.now();
  const sending = sendEvents(sender, over);
  const targets = { endpoints, fleet, delayWrites: writes.delay };
  const faults = await injectFaults(targets, { draw: new Draw(seed), signal: over, losing });
  await sending;
  return { seconds: (performance.now() - began) / 1000, faults };
}

function recordsOf(fleet: Fleet): Pick<Run, "holds" | "contended"> {
  const clients = fleet.records();
  const contended = clients.flat().filter(({ type }) => type === "contended").length;
  return { holds: clients.flatMap(holdsOf), contended };
}

/** Inside node_modules, so that nothing of it is ever committed. */
async function bundleClient(project: string): Promise<string> {
  const name = `chaos-client-${process.pid}.mjs`;
  const outfile = join(project, "node_modules", ".cache", "redlock-edge", name);
  await build({
    absWorkingDir: project,
    entryPoints: ["evidence/chaos/client.ts"],
    outfile,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20",
    sourcemap: "inline",
    logLevel: "silent",
  });
  return outfile;
}

/** Delays writes on their way to the ledger. None is lost. */
interface WriteDelays {
  /** Calls `execute` at once, or later. */
  carry(execute: () => void): void;
  /** Delays that share of the writes by up to `ms`. The returned function ends it and returns how many there were. */
  delay(share: number, ms: number): () => number;
  /** Resolves when all delayed writes have arrived. */
  arrived(): Promise<unknown>;
}

function createWriteDelays(draw: Draw): WriteDelays {
  let lateness = { share: 0, ms: 0 };
  let hits = 0;
  const pending = new Set<Promise<void>>();
  return {
    carry(execute) {
      if (!draw.chance(lateness.share)) return execute();
      hits += 1;
      const arrival = sleep(draw.between(0, lateness.ms)).then(execute);
      pending.add(arrival);
      void arrival.then(() => pending.delete(arrival));
    },
    delay(share, ms) {
      lateness = { share, ms };
      hits = 0;
      return () => {
        lateness = { share: 0, ms: 0 };
        return hits;
      };
    },
    arrived: () => Promise.all(pending),
  };
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

async function sendEvents(sender: EventSender, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    sender.sendNext();
    await Promise.allSettled([sleep(150, undefined, { signal })]);
  }
}

/** After the faults, every client ends its work, and then gets every lock. */
async function recover(
  fleet: Fleet,
  delivered: () => Promise<void>,
  signal: AbortSignal,
): Promise<Run["progress"]> {
  const began = performance.now();
  const limit = new AbortController();
  let stuck = "work that was begun does not end";
  async function drainAndProbe(): Promise<void> {
    await fleet.reach("drained", { type: "drain" });
    await delivered();
    stuck = "not everybody gets every lock";
    await fleet.reach("probed", { type: "probe" });
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
