import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { build } from "esbuild";
import { type DevEndpoint, startEndpoints } from "../../../src/dev/index.ts";
import { Idempotency } from "../../../src/idempotency/index.ts";
import { Redlock } from "../../../src/index.ts";
import { seededRandom } from "../../support/random.ts";
import { type Fleet, startFleet } from "./fleet.ts";
import { type Hold, holdsOf } from "./holds.ts";
import { type Balance, openLedger } from "./ledger.ts";
import { type FaultCounts, injectFaults } from "./nemesis.ts";
import { createPostman } from "./postman.ts";
import { accounts } from "./records.ts";

/** How a run is to be. */
export interface ChaosOptions {
  /** How long things go wrong, in seconds. */
  readonly seconds: number;
  readonly seed: number;
  /** 3 or more. */
  readonly endpoints: number;
  /** 2 or more. */
  readonly clients: number;
  /** The folder of the project. */
  readonly project: string;
  /** Ends the run early, without a verdict. */
  readonly signal: AbortSignal;
}

/** What was seen in a run. */
export interface Run {
  readonly options: ChaosOptions;
  /** How long things went wrong. */
  readonly seconds: number;
  readonly faults: FaultCounts;
  readonly clientsStarted: number;
  /** Clients that ended without being killed. */
  readonly failures: readonly string[];
  /** How long it took until all was done and everybody had got every lock; `stuck`: why not, else empty. */
  readonly progress: { readonly stuck: string; readonly seconds: number };
  readonly events: number;
  readonly deliveries: number;
  /** HTTP requests that reached an endpoint. */
  readonly requests: number;
  readonly holds: readonly Hold[];
  /** Rounds that found their resource held. */
  readonly contended: number;
  readonly balances: readonly Balance[];
  /** By event, the runs that left an effect. */
  readonly effects: ReadonlyMap<string, readonly string[]>;
  /** By event, what it is answered in the end. */
  readonly last: ReadonlyMap<string, string | null>;
}

/** Servers begin to lose their memory after this share of a run: what is before must be without any flaw. */
const untilLosses = 2 / 3;

/** How long all clients may take to end their work, and then to get every lock, in ms, once nothing goes wrong. */
const progressLimit = 60_000;

/**
 * Lets clients contend for locks and events while a nemesis torments them, the servers and the links between. The
 * seed decides the schedule; real time has a part in what comes of it, so the same seed gives a similar run, not the
 * same. Needs redis-server on PATH. Leaves nothing behind, however it ends.
 *
 * @returns what was seen; `report.ts` judges it
 * @throws the signal's reason when it aborts
 */
export async function runChaos(options: ChaosOptions): Promise<Run> {
  const { seconds, seed, project, signal } = options;
  const closers: (() => unknown)[] = [];
  try {
    const directory = await mkdtemp(join(tmpdir(), "redlock-edge-chaos-"));
    closers.push(() => rm(directory, { recursive: true, force: true }));
    const program = await bundleClient(project);
    closers.push(() => rm(program, { force: true }));
    const local = await startEndpoints({ engine: "redis", count: options.endpoints });
    closers.push(() => local.close());
    const ledger = openLedger(directory, accounts);
    closers.push(() => ledger.close());
    const writes = lateWrites(seededRandom(seed + 1));
    const postman = createPostman(() => fleet, seededRandom(seed + 2));
    const fleet: Fleet = await startFleet(
      {
        size: options.clients,
        program,
        directory,
        endpoints: local.endpoints.map(({ url, token }) => ({ url, token })),
        random: seededRandom(seed + 3),
      },
      {
        onQuestion({ question }, answer) {
          const decide = () => answer(ledger.answer(question));
          if (question.ask === "write") writes.carry(decide);
          else decide();
        },
        onDelivered: postman.delivered,
        onLost: postman.lost,
      },
    );
    closers.push(() => fleet.close());

    const over = abortsAfter(seconds * 1000, signal);
    const losing = abortsAfter(seconds * 1000 * untilLosses, signal);
    const began = performance.now();
    const posting = post(() => postman.post(), over);
    const victims = { endpoints: local.endpoints, fleet, delayWrites: writes.delay };
    const faults = await injectFaults(victims, { random: seededRandom(seed), signal: over, losing });
    await posting;
    signal.throwIfAborted();
    const tormented = (performance.now() - began) / 1000;

    const progress = await recover(fleet, () => postman.done(), signal);
    const last = progress.stuck ? new Map() : await askAgain(local.endpoints, postman.events);
    await fleet.close();
    await writes.arrived();
    return {
      options,
      seconds: tormented,
      faults,
      clientsStarted: fleet.started,
      failures: fleet.failures,
      progress,
      deliveries: postman.deliveries,
      events: postman.events.length,
      requests: local.endpoints.reduce((sum, { log }) => sum + log.requests, 0),
      ...recordsOf(fleet),
      balances: ledger.balances(),
      effects: ledger.effects(),
      last,
    };
  } finally {
    // In order, and each whatever became of the one before.
    for (const close of closers.reverse()) await Promise.allSettled([(async () => close())()]);
  }
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
    entryPoints: ["test/robustness/chaos/client.ts"],
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

/** The way of writes to the ledger: usually short, sometimes long. Nothing on it is lost. */
function lateWrites(random: () => number): {
  carry(decide: () => void): void;
  delay(share: number, ms: number): () => number;
  arrived(): Promise<unknown>;
} {
  let lateness = { share: 0, ms: 0 };
  let hits = 0;
  const pending = new Set<Promise<void>>();
  return {
    carry(decide) {
      if (random() >= lateness.share) return decide();
      hits += 1;
      const arrival = sleep(random() * lateness.ms).then(decide);
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

/** Unlike `AbortSignal.timeout` in a composite, its timer is kept by Node 20 for as long as it takes. */
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

async function post(send: () => void, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    send();
    await Promise.allSettled([sleep(150, undefined, { signal })]);
  }
}

/** Once nothing goes wrong any more, everybody ends what is begun, and then gets every lock. */
async function recover(
  fleet: Fleet,
  delivered: () => Promise<void>,
  signal: AbortSignal,
): Promise<Run["progress"]> {
  const began = performance.now();
  const limit = new AbortController();
  let stuck = "work that was begun does not end";
  async function everything(): Promise<void> {
    await fleet.reach("drained", { type: "drain" });
    await delivered();
    stuck = "not everybody gets every lock";
    await fleet.reach("probed", { type: "probe" });
    stuck = fleet.failures.length > 0 ? "a client failed" : "";
  }
  await Promise.race([
    everything(),
    sleep(progressLimit, undefined, { signal: AbortSignal.any([signal, limit.signal]) }).catch(
      () => undefined,
    ),
  ]);
  limit.abort();
  signal.throwIfAborted();
  return { stuck, seconds: (performance.now() - began) / 1000 };
}

/** What every event is answered now that it is over: its result, or null where none is stored. */
async function askAgain(
  endpoints: readonly DevEndpoint[],
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
