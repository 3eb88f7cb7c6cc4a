import process from "node:process";
import { afterEach, describe, expect, test, vi } from "vitest";
import { VirtualTime } from "../../../local/src/memory/index.ts";
import { Redlock } from "../../../src/index.ts";
import { seeded } from "../../support/seeded.ts";
import {
  type ClientKind,
  clientKinds,
  type SlowClient,
  type Speed,
  slowServer,
} from "../../support/slow-server.ts";

// With default options, for each kind of endpoint: a second after a link has stood still, all calls are granted at up to half
// of what server and link can do, and the application's own commands on the same client are answered at once.

const { seed } = seeded(1);
let worlds = 0;

/** ms for which a foreign command may wait. */
const atOnce = 1_000;

afterEach(() => {
  vi.unstubAllGlobals();
});

function virtualTime(): VirtualTime {
  // Nothing here waits for a thread.
  const settled = () => new Promise<void>((resolve) => queueMicrotask(() => process.nextTick(resolve)));
  worlds += 1;
  return new VirtualTime({ seed: seed + worlds, settled });
}

/** How often each end occurs. */
function tally(ends: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const end of ends) counts[end] = (counts[end] ?? 0) + 1;
  return counts;
}

interface Caller {
  readonly runtime: VirtualTime;
  readonly redlock: Redlock;
}

/** Calls `using` on another name every so many ms, for `ms`. Returns how each call ends. */
async function load({ runtime, redlock }: Caller, every: number, ms: number): Promise<Promise<string>[]> {
  const ends: Promise<string>[] = [];
  for (const end = runtime.elapsed + ms; runtime.elapsed < end; await runtime.sleep(every)) {
    const call = redlock.using(`n${runtime.elapsed}`, async () => "granted");
    ends.push(call.catch(({ message }: Error) => message.replace(/".*"/, "it")));
  }
  return ends;
}

/** ms until an answer to a command of the application's own. */
async function foreignTime({ send }: SlowClient, runtime: VirtualTime): Promise<number> {
  const begin = runtime.elapsed;
  await send?.(["SET", "foreign", "1"]);
  return runtime.elapsed - begin;
}

/** What a server and its link can do: in commands a second, with the bytes that each kind of client sends for them. */
const speeds: [string, Speed, (kind: ClientKind) => number][] = [
  ["a server of 1 000 commands a second", { cost: 1 }, () => 1_000],
  ["a slow link", { rate: 200 }, (kind) => (kind === "@upstash/redis" ? 240 : 600)],
  ["a far server", { delay: 150 }, () => 400],
];

describe.each(clientKinds)("over %s", (kind) => {
  test.each(speeds)("%s: all is granted a second after a stall", async (_, speed, capacity) => {
    const runtime = virtualTime();
    const server = slowServer(runtime, "e", speed);
    const client = server.client(kind);
    const redlock = new Redlock({ endpoints: [client.endpoint], runtime });
    const stall = 500 + Math.floor(runtime.random() * 4_500);
    // A call is two commands.
    const every = Math.ceil((2 * 1_000) / (capacity(kind) * (0.25 + runtime.random() / 4)));
    async function run() {
      await load({ runtime, redlock }, every, 500);
      server.stall(stall);
      await load({ runtime, redlock }, every, stall);
      const { unanswered } = client;
      await load({ runtime, redlock }, every, 1_000);
      const foreign = foreignTime(client, runtime);
      const ends = await load({ runtime, redlock }, every, 500);
      return { ends: tally(await Promise.all(ends)), calls: ends.length, foreign: await foreign, unanswered };
    }
    const { ends, calls, foreign, unanswered } = await runtime.settle(run(), 120_000);
    expect(ends, `a stall of ${stall} ms, a call every ${every} ms`).toEqual({ granted: calls });
    expect(foreign).toBeLessThan(atOnce);
    if (kind !== "HTTP") expect(unanswered).toBeLessThan(300);
  });

  test.each(speeds)("%s: 1 000 calls at once are granted", async (_, speed) => {
    const runtime = virtualTime();
    const client = slowServer(runtime, "e", speed).client(kind);
    const redlock = new Redlock({ endpoints: [client.endpoint], runtime });
    const calls = Array.from({ length: 1_000 }, (__, index) => redlock.acquire(`n${index}`));
    const ends = Promise.all(calls);
    await runtime.advance(300);
    const foreign = await runtime.settle(foreignTime(client, runtime));
    expect(foreign).toBeLessThan(atOnce);
    expect(await runtime.settle(ends)).toHaveLength(1_000);
  });

  test("one of three links stands still: all is granted, and little waits in its client", async () => {
    const runtime = virtualTime();
    const servers = ["a", "b", "c"].map((name) => slowServer(runtime, name));
    const clients = servers.map((server) => server.client(kind));
    const redlock = new Redlock({ endpoints: clients.map(({ endpoint }) => endpoint), runtime });
    async function run() {
      servers[2]!.stall(3_000);
      const ends = await load({ runtime, redlock }, 5, 3_000);
      const { unanswered } = clients[2]!;
      const foreign = await foreignTime(clients[2]!, runtime);
      return { ends: tally(await Promise.all(ends)), calls: ends.length, foreign, unanswered };
    }
    const { ends, calls, foreign, unanswered } = await runtime.settle(run(), 120_000);
    expect(ends).toEqual({ granted: calls });
    if (kind !== "HTTP") expect(unanswered).toBeLessThan(150);
    expect(foreign).toBeLessThan(atOnce);
  });
});
