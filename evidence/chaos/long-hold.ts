import { setTimeout as sleep } from "node:timers/promises";
import { start } from "../../local/src/index.ts";
import { Redlock } from "../../src/index.ts";

/** Options of a long hold. */
export interface LongHoldOptions {
  /** For how many seconds the lock is held. */
  readonly seconds: number;
  /** The lock's ttl in ms. An endpoint restarts every 1.5 ttl, each in turn. */
  readonly ttl: number;
  readonly signal: AbortSignal;
}

/** The result of a long hold. */
export interface LongHold {
  /** Seconds for which it was valid without interruption. */
  readonly held: number;
  /** Why it was lost; undefined: it was not. */
  readonly loss: string | undefined;
  /** By endpoint: how often it was stopped and restarted empty. */
  readonly restarts: readonly number[];
  /** How often rivals tried to acquire it, and how often they got it. */
  readonly attempts: number;
  readonly stolen: number;
  readonly extensions: number;
  /** The result of the release. */
  readonly released: boolean;
}

/**
 * Holds one lock on three real redis-servers, which are restarted empty one after another, while rivals try to
 * acquire it. Each extension has to restore the lock on the emptied server before the next one stops.
 */
export async function holdThroughRestarts({ seconds, ttl, signal }: LongHoldOptions): Promise<LongHold> {
  const local = await start({ engine: "redis", count: 3 });
  const endpoints = local.endpoints.map(({ url, token }) => ({ url, token }));
  const restarts = local.endpoints.map(() => 0);
  let [attempts, stolen, extensions] = [0, 0, 0];
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
        attempts += 1;
        // An outage does not show who holds the lock.
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
    return { held, loss, restarts, attempts, stolen, extensions, released };
  } finally {
    over.abort();
    await local.close();
  }
}
