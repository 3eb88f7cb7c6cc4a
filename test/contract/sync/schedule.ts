import process from "node:process";
import { setImmediate } from "node:timers/promises";
import { expect } from "vitest";
import { type MemoryEndpoint, memoryEndpoint, VirtualTime } from "../../../local/src/memory/index.ts";
import { EndpointError } from "../../../src/errors.ts";
import {
  type Command,
  type Endpoint,
  Redlock,
  type RedlockOptions,
  type Runtime,
} from "../../../src/index.ts";

/** A client's connection to one endpoint. `cut`: nothing arrives. `deaf`: all is executed, nothing is answered. */
export type Way = "open" | "cut" | "deaf";

/** Endpoints in virtual time, with a network that delivers requests and replies in an order drawn from a seed. */
export interface Schedule {
  readonly random: () => number;
  readonly runtime: Runtime;
  readonly endpoints: readonly MemoryEndpoint[];
  /** A client; `ways` by endpoint, default open. */
  client(options: Omit<RedlockOptions, "endpoints" | "runtime">, ways?: readonly Way[]): Redlock;
  /** Waits in virtual time. */
  sleep(ms: number): Promise<void>;
  /** Delivers messages and lets time pass until `work` has settled. */
  run<Value>(work: Promise<Value>): Promise<Value>;
}

/** An endpoint whose requests and replies wait in `network` until they are delivered. */
function reach(endpoint: MemoryEndpoint, way: Way, network: (() => void)[]): Endpoint {
  const { name, dialect } = endpoint;
  return {
    name,
    dialect,
    exactReplies: true,
    send: (command: Command, signal: AbortSignal) =>
      new Promise((resolve, reject) => {
        signal.addEventListener("abort", () => reject(new EndpointError(name, "timeout", "no answer")));
        if (way === "cut") return;
        network.push(() => {
          // It is under way, so it is executed whether or not its sender still waits.
          const reply = endpoint.send(command, new AbortController().signal);
          const answer = () => void reply.then(resolve, reject);
          reply.catch(() => undefined);
          if (way === "open") network.push(answer);
        });
      }),
  };
}

/**
 * A schedule of so many endpoints.
 *
 * @param haste how likely time passes although a message is still under way, so that requests time out and arrive
 * late; with 0 nothing takes any time
 */
export function schedule(seed: number, count: number, { haste = 0.01 } = {}): Schedule {
  const runtime = new VirtualTime({ seed });
  const { random } = runtime;
  const network: (() => void)[] = [];
  const endpoints = Array.from({ length: count }, (_, index) =>
    memoryEndpoint({ name: `endpoint-${index}`, dialect: random() < 0.5 ? "upstash" : "redis", runtime }),
  );

  return {
    random,
    runtime,
    endpoints,
    client: (options, ways = []) =>
      new Redlock({
        ...options,
        runtime,
        endpoints: endpoints.map((endpoint, index) => reach(endpoint, ways[index] ?? "open", network)),
      }),
    sleep: (ms) => runtime.sleep(ms),
    async run(work) {
      let isSettled = false;
      const settle = () => {
        isSettled = true;
      };
      work.then(settle, settle);
      for (let idle = 0; ; ) {
        await setImmediate();
        if (isSettled) return work;
        const waits = network.length > 0 && random() >= haste;
        if (waits) network.splice(Math.floor(random() * network.length), 1)[0]?.();
        else idle = (await runtime.advanceToNext()) || network.length > 0 ? 0 : idle + 1;
        if (idle > 100) throw new Error(`nothing happens any more, at ${runtime.elapsed} ms`);
      }
    },
  };
}

/**
 * Runs `check` for consecutive seeds, from a random one or from `SEED`. `SCHEDULES` overrides how many.
 *
 * `hasSeenAll` returns whether everything has occurred that these schedules are about. As long as it has not, up to
 * twenty times as many seeds follow, because a test must not fail for what it happens to draw. Fewer `SCHEDULES` than
 * `count` run without it, to repeat a seed.
 */
export async function eachSeed(
  count: number,
  check: (seed: number) => Promise<void>,
  hasSeenAll: () => boolean = () => true,
): Promise<void> {
  const first = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
  const wanted = Number(process.env.SCHEDULES ?? count);
  const isWhole = wanted >= count;
  console.info(`SEED=${first}`);
  let done = 0;
  for (; done < wanted || (isWhole && !hasSeenAll() && done < 20 * count); done += 1) {
    await check(first + done).catch((error: Error) => {
      throw new Error(`again with SEED=${first + done} SCHEDULES=1: ${error.message}`, { cause: error });
    });
  }
  if (isWhole) expect(hasSeenAll(), `all has occurred in ${done} schedules`).toBe(true);
}
