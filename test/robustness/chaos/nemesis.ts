import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import type { DevEndpoint, FaultRule } from "../../../src/dev/index.ts";
import type { Fleet } from "./fleet.ts";
import { machineTime } from "./records.ts";

/** What can be done to a run; the report counts each. */
export const troubles = [
  "server killed, memory kept",
  "server killed, memory lost",
  "server stopped",
  "link refused",
  "link silent",
  "quorum down",
  "link slow",
  "reply slow",
  "reply dropped",
  "request duplicated",
  "request reordered",
  "HTTP 500",
  "ledger write late",
  "client stopped after its check",
  "client stopped anywhere",
  "client killed",
] as const;

export type Trouble = (typeof troubles)[number];

/** A span of machine time in which an endpoint lost its memory. */
export interface Loss {
  readonly from: number;
  readonly to: number;
}

/** What the nemesis did. */
export interface FaultCounts {
  /** How often each trouble was begun. */
  readonly times: Record<Trouble, number>;
  /** How many requests were hit by the troubles of links and of the ledger. */
  readonly hits: Partial<Record<Trouble, number>>;
  readonly losses: readonly Loss[];
  /** ms without a quorum of endpoints. */
  readonly quorumDown: number;
}

/** Whom it torments. */
export interface Victims {
  readonly endpoints: readonly DevEndpoint[];
  readonly fleet: Fleet;
  /** Holds back that share of the ledger's writes for up to `ms`; the returned function ends it and tells the hits. */
  delayWrites(share: number, ms: number): () => number;
}

/** Rules of faults end by themselves after so many hits; what is left tells how often they did hit. */
const endless = 1_000_000;

/** What may go wrong on a link while its endpoint still counts as up. */
const linkRules: readonly (readonly [Trouble, FaultRule])[] = [
  ["link slow", { fault: "delay", ms: [20, 400], probability: 0.7 }],
  ["reply slow", { fault: "delay-reply", ms: [20, 600], probability: 0.5 }],
  ["reply dropped", { fault: "drop-reply", probability: 0.4 }],
  ["request duplicated", { fault: "duplicate", probability: 0.7 }],
  ["request reordered", { fault: "reorder", probability: 0.4 }],
  ["HTTP 500", { fault: "status", status: 500, probability: 0.5 }],
];

/** What takes an endpoint away; only one of these at a time at each. */
const outages: readonly Trouble[] = [
  "server killed, memory kept",
  "server killed, memory kept",
  "server stopped",
  "link refused",
  "link silent",
];

/**
 * Torments until `signal` aborts, and has mended everything when it resolves. Several hands work at the same time,
 * so troubles overlap; of endpoints so many stay up that a quorum is possible, except that one hand takes the
 * quorum away now and then, for a short time. Each hand deals its troubles from a shuffled deck: none is left out.
 *
 * `random` decides what, whom and how long. What comes of it depends on real time as well: the same seed gives a
 * similar run, not the same.
 *
 * @param losing aborts when servers may begin to lose their memory
 */
export async function injectFaults(
  { endpoints, fleet, delayWrites }: Victims,
  { random, signal, losing }: { random: () => number; signal: AbortSignal; losing: AbortSignal },
): Promise<FaultCounts> {
  const times = Object.fromEntries(troubles.map((trouble) => [trouble, 0])) as Record<Trouble, number>;
  const hits: Partial<Record<Trouble, number>> = {};
  const losses: Loss[] = [];
  const down = new Set<DevEndpoint>();
  const most = endpoints.length - (Math.floor(endpoints.length / 2) + 1);
  let quorumDown = 0;

  const between = (least: number, greatest: number) => least + random() * (greatest - least);
  const oneOf = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)]!;
  const rest = (least: number, greatest: number) => restFor(between(least, greatest), signal);

  function hit(trouble: Trouble, count: number): void {
    hits[trouble] = (hits[trouble] ?? 0) + count;
  }

  function inject(endpoint: DevEndpoint, trouble: Trouble, rule: FaultRule): () => void {
    times[trouble] += 1;
    const remove = endpoint.faults.add({ ...rule, times: endless });
    return () => {
      const left = endpoint.faults.list().find(({ fault }) => fault === rule.fault)?.times ?? 0;
      hit(trouble, endless - left);
      remove();
    };
  }

  async function killServer(endpoint: DevEndpoint, trouble: Trouble): Promise<void> {
    times[trouble] += 1;
    const from = machineTime();
    // Sometimes the server alone dies, and its gateway answers with errors; sometimes the whole machine.
    if (random() < 0.5) process.kill(endpoint.pid!, "SIGKILL");
    else await endpoint.stop();
    await rest(200, 1200);
    await endpoint.stop();
    await comeBack(endpoint, trouble === "server killed, memory lost" ? "lost" : "kept");
    if (trouble === "server killed, memory lost") losses.push({ from, to: machineTime() });
  }

  async function takeDown(endpoint: DevEndpoint, trouble: Trouble): Promise<void> {
    down.add(endpoint);
    if (trouble.startsWith("server killed")) await killServer(endpoint, trouble);
    else if (trouble === "server stopped") {
      times[trouble] += 1;
      const { pid } = endpoint;
      process.kill(pid!, "SIGSTOP");
      await rest(200, 2000);
      process.kill(pid!, "SIGCONT");
    } else {
      const mend = inject(endpoint, trouble, cut(trouble));
      await rest(200, 1500);
      mend();
    }
    down.delete(endpoint);
  }

  async function serverHand(until: AbortSignal, deal: () => Trouble): Promise<void> {
    while (!until.aborted) {
      const endpoint = oneOf(endpoints);
      if (down.size < most && !down.has(endpoint)) await takeDown(endpoint, deal());
      await restFor(between(100, 700), until);
    }
  }

  async function quorumHand(): Promise<void> {
    for (await rest(2000, 4000); !signal.aborted; await rest(4000, 9000)) {
      const deal = dealer(
        endpoints.filter((endpoint) => !down.has(endpoint)),
        random,
      );
      const taken = Array.from({ length: most + 1 - down.size }, deal);
      const from = machineTime();
      times["quorum down"] += 1;
      const mends = taken.map((endpoint) => {
        down.add(endpoint);
        const trouble = oneOf(["link refused", "link silent"] as const);
        return inject(endpoint, trouble, cut(trouble));
      });
      await rest(300, 1500);
      for (const mend of mends) mend();
      for (const endpoint of taken) down.delete(endpoint);
      quorumDown += machineTime() - from;
    }
  }

  async function linkHand(): Promise<void> {
    for (const deal = dealer(linkRules, random); !signal.aborted; await rest(0, 300)) {
      const [trouble, rule] = deal();
      const endpoint = oneOf(endpoints);
      if (endpoint.faults.list().some(({ fault }) => fault === rule.fault)) continue;
      const mend = inject(endpoint, trouble, rule);
      await rest(400, 2000);
      mend();
    }
  }

  async function ledgerHand(): Promise<void> {
    for (await rest(500, 1500); !signal.aborted; await rest(500, 2000)) {
      times["ledger write late"] += 1;
      const mend = delayWrites(0.3, 2500);
      await rest(500, 1500);
      hit("ledger write late", mend());
    }
  }

  async function stopHand(): Promise<void> {
    const deck: Trouble[] = [
      "client stopped after its check",
      "client stopped after its check",
      "client stopped anywhere",
    ];
    for (const deal = dealer(deck, random); !signal.aborted; await rest(50, 400)) {
      const trouble = deal();
      const victim =
        trouble === "client stopped anywhere"
          ? { seat: Math.floor(random() * fleet.size), ttl: 1000 }
          : await fleet.nextCheck(signal);
      if (!victim) return;
      fleet.stop(victim.seat);
      times[trouble] += 1;
      // Longer than the ttl: others get the lock meanwhile, and the client wakes up in the middle of its hold.
      await rest(victim.ttl * 1.1, victim.ttl * 1.8 + 300);
      fleet.resume(victim.seat);
    }
  }

  async function killHand(): Promise<void> {
    for (await rest(1000, 2500); !signal.aborted; await rest(1500, 5000)) {
      const seat = Math.floor(random() * fleet.size);
      times["client killed"] += 1;
      await fleet.kill(seat);
      await rest(50, 500);
      await fleet.respawn(seat);
    }
  }

  async function serverHands(): Promise<void> {
    await serverHand(losing, dealer(outages, random));
    const lost: Trouble = "server killed, memory lost";
    const deal = dealer([...outages, lost], random);
    const first = [lost];
    await serverHand(signal, () => first.pop() ?? deal());
  }

  // All are heard out: what one hand has failed to do, the others must not leave half done.
  const ended = await Promise.allSettled([
    serverHands(),
    quorumHand(),
    linkHand(),
    linkHand(),
    ledgerHand(),
    stopHand(),
    killHand(),
  ]);
  for (const hand of ended) if (hand.status === "rejected") throw hand.reason;
  return { times, hits, losses, quorumDown };
}

function cut(trouble: Trouble): FaultRule {
  return { fault: trouble === "link refused" ? "down" : "drop-request" };
}

/** Deals all cards in a random order, again and again. */
function dealer<Card>(cards: readonly Card[], random: () => number): () => Card {
  let deck: Card[] = [];
  return () => {
    if (deck.length === 0) deck = [...cards];
    return deck.splice(Math.floor(random() * deck.length), 1)[0]!;
  };
}

/** Rests for `ms`, or until `signal` aborts. */
async function restFor(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await Promise.allSettled([sleep(ms, undefined, { signal })]);
}

/** While a server was away, a connection of somebody else may have been given its port: then it comes back later. */
async function comeBack(endpoint: DevEndpoint, memory: "kept" | "lost"): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await endpoint.start({ memory });
    } catch (error) {
      if (attempt === 50) throw error;
      await sleep(100);
    }
  }
}
