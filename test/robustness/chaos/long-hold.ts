import { setTimeout as sleep } from "node:timers/promises";
import { startEndpoints } from "../../../src/dev/index.ts";
import { Redlock } from "../../../src/index.ts";

/** How one hold is to be kept through restarts. */
export interface LongHoldOptions {
  /** How long it is held, in seconds. */
  readonly seconds: number;
  /** ms; an endpoint restarts every 1.5 ttl, each in turn. */
  readonly ttl: number;
  readonly signal: AbortSignal;
}

/** What came of it. */
export interface LongHold {
  /** Seconds for which it was valid without a break. */
  readonly held: number;
  /** Why it was lost, if it was. */
  readonly loss: string | undefined;
  /** By endpoint: how often it was killed, and came back with nothing. */
  readonly restarts: readonly number[];
  /** How often somebody else asked for it, and how often he got it. */
  readonly asked: number;
  readonly stolen: number;
  readonly extensions: number;
  /** What the release said. */
  readonly released: boolean;
}

/**
 * Holds one lock on three real redis-servers, which are killed one after another and come back empty, while others
 * try to take it. Each extension has to put the lock back where it is gone before the next server dies.
 */
export async function holdThroughRestarts({ seconds, ttl, signal }: LongHoldOptions): Promise<LongHold> {
  const local = await startEndpoints({ engine: "redis", count: 3 });
  const endpoints = local.endpoints.map(({ url, token }) => ({ url, token }));
  const restarts = local.endpoints.map(() => 0);
  let [asked, stolen, extensions] = [0, 0, 0];
  const over = new AbortController();
  const isOver = () => over.signal.aborted || signal.aborted;
  try {
    const holder = new Redlock({
      endpoints,
      onEvent: ({ type }) => {
        if (type === "extended") extensions += 1;
      },
    });
    const began = performance.now();
    const lock = await holder.acquire("long hold", { ttl, autoExtend: true, maxHold: seconds * 2_000 });

    async function contend(): Promise<void> {
      const rival = new Redlock({ endpoints });
      while (!isOver()) {
        asked += 1;
        // An outage says nothing about who holds it.
        const got = await rival.tryAcquire("long hold", { ttl }).catch(() => null);
        if (got) stolen += 1;
        await got?.release().catch(() => false);
        await sleep(ttl / 20);
      }
    }
    async function restart(): Promise<void> {
      for (let turn = 0; !isOver(); turn += 1) {
        const index = turn % local.endpoints.length;
        await local.endpoints[index]!.stop();
        await sleep(ttl / 10);
        await local.endpoints[index]!.start({ memory: "lost" });
        restarts[index] = restarts[index]! + 1;
        await sleep(1.4 * ttl);
      }
    }
    const others = Promise.all([contend(), contend(), restart()]);
    while (performance.now() - began < seconds * 1_000 && !lock.signal.aborted && !signal.aborted) {
      await sleep(50);
    }
    over.abort();
    const held = (performance.now() - began) / 1_000;
    const loss = lock.signal.aborted ? String(lock.signal.reason) : undefined;
    await others;
    const released = await lock.release();
    return { held, loss, restarts, asked, stolen, extensions, released };
  } finally {
    over.abort();
    await local.close();
  }
}
