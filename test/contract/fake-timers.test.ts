import { mock } from "node:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { memoryEndpoint } from "../../local/src/memory/index.ts";
import {
  type Command,
  httpEndpoint,
  LockHeldError,
  LockLostError,
  Redlock,
  type RedlockEvent,
  systemRuntime,
} from "../../src/index.ts";
import { newResource } from "../support/local-endpoints.ts";

// A test that fakes timers and clocks leaves nothing behind for the code that runs after it: no timer that never fires, no
// request that is never sent, and no clock that has been in another year. And under fakes the library follows them.

const { now: realTime } = Date;
const began = realTime();
/** Slow: a test that is held up must not lose what it has not lost by the client's clock. */
const now = () => began + (realTime() - began) / 10;

/** A server whose clock nobody fakes, and a `fetch` that reaches it: Node's own stands still while `queueMicrotask` is faked. */
const { engine } = memoryEndpoint({ dialect: "redis", runtime: { ...systemRuntime, now } });
const execute = (command: Command) => {
  try {
    return { result: engine.execute(command) };
  } catch (error) {
    return { error: (error as Error).message };
  }
};
const answer = async (url: string, { body }: { body: string }) => {
  const sent = JSON.parse(body);
  const text = JSON.stringify(url.endsWith("/pipeline") ? sent.map(execute) : execute(sent));
  const headers = new Headers({ "content-length": String(text.length) });
  return { status: 200, headers, text: () => Promise.resolve(text) };
};
beforeEach(() => void vi.stubGlobal("fetch", answer));
afterEach(() => void vi.unstubAllGlobals());

const ttl = 1_000;

/** A library that fakes time. */
interface Faker {
  on(): void;
  off(): void;
  /** Lets faked time pass. */
  advance(ms: number): void;
  /** Sets the wall clock, where that is faked. */
  set?(time: number): void;
}

type Fakes = NonNullable<NonNullable<Parameters<typeof vi.useFakeTimers>[0]>["toFake"]>;
const timers: Fakes = [
  "setTimeout",
  "clearTimeout",
  "setInterval",
  "clearInterval",
  "setImmediate",
  "clearImmediate",
];

const vitest = (toFake?: Fakes): Faker => ({
  on: () => vi.useFakeTimers(toFake && { toFake }),
  off: () => vi.useRealTimers(),
  advance: (ms) => vi.advanceTimersByTime(ms),
  ...((toFake?.includes("Date") ?? true) && { set: (time) => vi.setSystemTime(time) }),
});

const nodeTest: Faker = {
  on: () => mock.timers.enable({ apis: ["setTimeout"] }),
  off: () => mock.timers.reset(),
  advance: (ms) => mock.timers.tick(ms),
};

const fakers: Record<string, Faker> = {
  "vi.useFakeTimers()": vitest(),
  "vi.useFakeTimers(), performance left alone": vitest([...timers, "Date"]),
  "Jest's and Sinon's choice": vitest([...timers, "Date", "performance", "queueMicrotask"]),
  "node:test, setTimeout only": nodeTest,
};

const { setTimeout: realTimeout } = globalThis;
const pause = () => new Promise((resolve) => void realTimeout(resolve, 2));

/** Resolves when `look` returns something truthy, in real time. */
async function seen(look: () => unknown): Promise<void> {
  for (let turns = 0; !look(); turns += 1) {
    if (turns > 2_000) throw new Error("waited without success");
    await pause();
  }
}

describe.each(Object.entries(fakers))("%s", (_name, faker) => {
  // One client for all its tests: it lives as long as the module that a user tests.
  const events: RedlockEvent[] = [];
  const redlock = new Redlock({
    endpoints: [httpEndpoint({ url: "http://localhost:1", token: "t", dialect: "redis" })],
    ttl,
    onEvent: (event) => events.push(event),
  });

  afterEach(() => faker.off());

  /** What `promise` resolves to, while faked time passes, no slower than real time. */
  async function passing<Value>(promise: Promise<Value>): Promise<Value> {
    let isSettled = false;
    let last = realTime();
    void promise.catch(() => undefined).then(() => (isSettled = true));
    await seen(() => {
      const time = realTime();
      faker.advance(Math.max(5, time - last));
      last = time;
      return isSettled;
    });
    return promise;
  }

  /** Begins every kind of wait, and lets none end. */
  async function beginAll(): Promise<void> {
    const held = newResource();
    await redlock.acquire(held, { autoExtend: true });
    const failing = redlock.acquire(held, { wait: 10_000 });
    failing.catch(() => undefined);
    const from = events.length;
    await seen(() => events.slice(from).some(({ type }) => type === "contended"));
    // The last one: its timers are due at about the same time as those of the next lock.
    void (await redlock.acquire(newResource(), { autoExtend: true })).signal;
  }

  /** Takes a lock that ends by itself, and one that is extended while another call waits for it. */
  async function expectLocks(
    wait: <Value>(promise: Promise<Value>) => Promise<Value> = (promise) => promise,
  ) {
    const from = events.length;
    const lock = await wait(redlock.acquire(newResource()));
    expect(lock.remaining()).toBeGreaterThan(1);
    const { signal } = lock;
    await wait(new Promise((resolve) => signal.addEventListener("abort", resolve)));
    expect(signal.reason).toBeInstanceOf(LockLostError);
    const resource = newResource();
    const extended = await wait(redlock.acquire(resource, { autoExtend: true }));
    await expect(wait(redlock.acquire(resource, { wait: 0.7 * ttl }))).rejects.toThrow(LockHeldError);
    expect(extended.signal.aborted).toBe(false);
    const types = events.slice(from).map(({ type }) => type);
    expect(types).toContain("extended");
    expect(types.filter((type) => type === "contended").length).toBeGreaterThan(1);
    await wait(extended.release());
  }

  test("what is begun under fakes and never ends does not disturb the locks after it", async () => {
    faker.on();
    await Promise.race([beginAll(), new Promise((resolve) => void realTimeout(resolve, 200))]);
    faker.off();
    await expectLocks();
  });

  test("under fakes, locks follow them", async () => {
    await beginAll();
    faker.on();
    await expectLocks(passing);
  });

  if (faker.set) {
    test("a wall clock that is set by years harms no lock after it", async () => {
      for (const year of [2080, 1975]) {
        faker.on();
        const lock = await passing(redlock.acquire(newResource()));
        faker.set?.(Date.UTC(year));
        expect(lock.remaining()).toBeLessThanOrEqual(ttl);
        await passing(redlock.acquire(newResource()));
        faker.off();
        const next = await redlock.acquire(newResource(), { autoExtend: true });
        expect(next.remaining()).toBeGreaterThan(1);
        await next.release();
      }
      await expectLocks();
    });
  }
});
