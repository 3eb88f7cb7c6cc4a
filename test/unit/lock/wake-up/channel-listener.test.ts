import { afterEach, describe, expect, it, vi } from "vitest";
import { ChannelListener } from "../../../../src/lock/wake-up/channel-listener.ts";
import type { Waiter } from "../../../../src/lock/wake-up/wake-up.ts";
import { steppingRuntime } from "../../../support/stepping-runtime.ts";
import { pauseOf, settingsOf, streamingEndpoint } from "./streaming-endpoint.ts";

// One listener, in virtual time, in which every random number is 0.5. The herd and real streams: test/contract/locks.

const opened: ChannelListener[] = [];

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  // Streams that are shared outlive a test.
  for (const listener of opened.splice(0)) listener.close();
});

function listenerOf(...args: ConstructorParameters<typeof ChannelListener>): ChannelListener {
  const listener = new ChannelListener(...args);
  opened.push(listener);
  return listener;
}

/** Asks when it is told, and not because its stream stands. */
const waiter: Waiter = { kind: "lock", firstTurn: () => Infinity };

function stage(own: Waiter = waiter) {
  const runtime = steppingRuntime();
  const endpoint = streamingEndpoint();
  const settings = settingsOf(runtime, [endpoint]);
  const open = (other: Waiter = own) => listenerOf(settings, other, ["c"]);
  return { runtime, endpoint, open, listener: open() };
}

/** The stream stands from 10 ms on. */
async function stand({ runtime, endpoint }: ReturnType<typeof stage>) {
  await runtime.advance(10);
  endpoint.subscriptions[0]!.send("data: subscribe,c,1");
  await runtime.advance(0);
}

describe("which endpoint streams", () => {
  const answered = { outcome: "held" } as const;
  const failed = { outcome: "error" } as const;

  it.each<[string, readonly unknown[], readonly number[], number | undefined]>([
    ["the first, if its answer is missing still", [undefined, answered], [], 0],
    ["not one that has failed", [failed, answered], [], 1],
    ["not one that has not answered in time", [answered, answered], [0, 1], 1],
    ["none, if none is healthy", [failed, failed], [], undefined],
    ["the first, if it is not much farther", [answered, answered], [50, 10], 0],
    ["not one that is far", [answered, answered], [51, 10], 1],
    ["one that is far, if no other is healthy", [answered, failed], [51, 10], 0],
    [
      "not one of which no answer has come for so long as if it were far",
      [undefined, answered],
      [NaN, 26],
      1,
    ],
    ["the first, if its answer is not late yet", [undefined, answered], [NaN, 27], 0],
  ])("%s", async (_, answers, known, chosen) => {
    const runtime = steppingRuntime();
    const endpoints = [streamingEndpoint(), streamingEndpoint()];
    const latencies = new Map(
      known.flatMap((ms, index) => (Number.isNaN(ms) ? [] : [[endpoints[index]!, ms] as const])),
    );
    const listener = listenerOf(settingsOf(runtime, endpoints, { latencies }), waiter, ["c"]);
    const round = { calls: answers.map((answer) => ({ answer })) as never, elapsed: () => 100 };
    const over = pauseOf(runtime, listener, { round, poll: 500, longest: 600 });
    await runtime.advance(600);
    expect(endpoints.map(({ subscriptions }) => subscriptions.length > 0)).toEqual(
      [0, 1].map((index) => index === chosen),
    );
    // Without a stream it polls.
    expect(await over).toBe(chosen === undefined ? 500 : 600);
  });

  it("changes during a pause from one that turns out to be far, and not back before it has answered", async () => {
    const runtime = steppingRuntime();
    const endpoints = [streamingEndpoint(), streamingEndpoint()];
    const latencies = new Map([[endpoints[1]!, 2]]);
    const listener = listenerOf(settingsOf(runtime, endpoints, { latencies }), waiter, ["c"]);
    const open = () =>
      endpoints.map(({ subscriptions }) => subscriptions.filter(({ signal }) => !signal.aborted).length);
    const pause = (answers: readonly unknown[]) => {
      const began = runtime.monotonic() - 2;
      const round = {
        calls: answers.map((answer) => ({ answer })) as never,
        elapsed: () => runtime.monotonic() - began,
      };
      return pauseOf(runtime, listener, { round, longest: 100 });
    };
    const first = pause([undefined, answered]);
    await runtime.advance(24);
    expect(open()).toEqual([1, 0]);
    await runtime.advance(2);
    expect(open()).toEqual([0, 1]);
    await runtime.advance(100);
    await first;
    const second = pause([undefined, answered]);
    await runtime.advance(1);
    expect(open()).toEqual([0, 1]);
    await runtime.advance(100);
    await second;
    for (const [ms, expected] of [
      [300, [0, 1]],
      [3, [1, 0]],
      [0, [0, 1]],
    ] as const) {
      latencies.set(endpoints[0]!, ms);
      const next = pause([ms > 0 ? answered : failed, answered]);
      await runtime.advance(100);
      await next;
      expect(open()).toEqual(expected);
    }
  });

  it("stays at one that has failed once", async () => {
    const runtime = steppingRuntime();
    const endpoints = [streamingEndpoint(), streamingEndpoint()];
    const listener = listenerOf(settingsOf(runtime, endpoints), waiter, ["c"]);
    for (const outcome of [answered, failed]) {
      const round = { calls: [{ answer: outcome }, { answer: answered }] as never, elapsed: () => 2 };
      const over = pauseOf(runtime, listener, { round, longest: 100 });
      await runtime.advance(100);
      await over;
    }
    expect(endpoints.map(({ subscriptions }) => subscriptions.length)).toEqual([1, 0]);
  });
});

describe("when a waiter asks", () => {
  it.each<[what: string, Waiter, messages: Record<number, string>, pauses: number[], longest?: number]>([
    // Its turn is half of 6 slots.
    ["after its turn, if that is one of the first four", waiter, { 10: "6" }, [10 + 3 * 150]],
    ["after a turn when its stream stands, although nobody published", { kind: "lock" }, {}, [10]],
    // As without messages, from when the stream stood.
    [
      "late, with a substitute's turn and no interval",
      { kind: "lock", firstTurn: () => 5 },
      {},
      [10 + 2_500],
    ],
    [
      "as a substitute, after two intervals without a message, and its turn, once",
      waiter,
      { 110: "10" },
      [110 + 2 * 100 + 5 * 150, 2_500],
    ],
    [
      "by the longest interval, of which each shorter one takes a tenth",
      waiter,
      { 110: "10", 410: "10", 460: "10" },
      [10 + 450 + 2 * 270 + 5 * 150],
    ],
    [
      "in a later pause, if its turn has not come before",
      waiter,
      { 10: "6" },
      [300, 10 + 3 * 150 - 300],
      300,
    ],
    [
      "late after a message to others, if it has no turn",
      { ...waiter, name: "b" },
      { 2010: "1:a" },
      [2_010 + 2_500],
    ],
  ])("%s", async (_, own, messages, pauses, longest = 20_000) => {
    const the = stage(own);
    for (const [index, expected] of pauses.entries()) {
      const over = pauseOf(the.runtime, the.listener, index === 0 ? { longest } : {});
      if (index === 0) await stand(the);
      for (let ms = index === 0 ? 10 : 0; ms < expected; ms += 1) {
        const message = index === 0 ? messages[ms] : undefined;
        if (message) the.endpoint.subscriptions[0]!.send(`data: message,c,${message}`);
        await the.runtime.advance(1);
      }
      expect(await over).toBe(expected);
    }
  });

  it("in a later pause, if its time as a substitute has passed", async () => {
    const the = stage();
    const first = pauseOf(the.runtime, the.listener, { longest: 300 });
    await stand(the);
    await the.runtime.advance(100);
    the.endpoint.subscriptions[0]!.send("data: message,c,10");
    await the.runtime.advance(1_000);
    expect(await first).toBe(300);
    // At 1 060, which has passed: at once, and once.
    expect(await pauseOf(the.runtime, the.listener)).toBe(0);
    const third = pauseOf(the.runtime, the.listener);
    await the.runtime.advance(5_000);
    expect(await third).toBe(2_500);
  });

  it("by messages that came while it asked", async () => {
    const the = stage();
    const first = pauseOf(the.runtime, the.listener, { longest: 100 });
    await stand(the);
    await the.runtime.advance(200);
    await first;
    // During its round nobody waits for it.
    the.endpoint.subscriptions[0]!.send("data: message,c,2");
    await the.runtime.advance(50);
    const over = pauseOf(the.runtime, the.listener);
    await the.runtime.advance(5_000);
    expect(await over).toBe(100);
  });
});

/** Signals of one request throw in another, as on Workers. Returns a function that runs something as a request. */
function stubRequests() {
  let current = 0;
  const owners = new WeakMap<AbortSignal, number>();
  const isAborted = Object.getOwnPropertyDescriptor(AbortSignal.prototype, "aborted")!.get!;
  vi.spyOn(AbortSignal.prototype, "aborted", "get").mockImplementation(function (this: AbortSignal) {
    // Those of the process, before: of none of the requests.
    if ((owners.get(this) ?? 0) === current) return isAborted.call(this);
    throw new Error("Cannot perform I/O on behalf of a different request.");
  });
  class OfRequest extends AbortController {
    constructor() {
      super();
      owners.set(this.signal, current);
    }
  }
  vi.stubGlobal("AbortController", OfRequest);
  return async <Value>(request: number, run: () => Promise<Value>): Promise<Value> => {
    current = request;
    try {
      return await run();
    } finally {
      current = 0;
    }
  };
}

describe("who shares a stream", () => {
  const count = (the: ReturnType<typeof stage>) => the.endpoint.subscriptions.length;

  async function open(the: ReturnType<typeof stage>): Promise<ChannelListener> {
    const listener = the.open();
    void pauseOf(the.runtime, listener);
    await the.runtime.advance(1);
    return listener;
  }

  it.each([
    ["another runtime", { userAgent: "Node.js/24" }],
    ["a runtime that does not say its name", {}],
    ["Node 20, which has no navigator", undefined],
  ])("the calls of a process: %s", async (_, navigator) => {
    vi.stubGlobal("navigator", navigator);
    const the = stage();
    await open(the);
    await open(the);
    expect(count(the)).toBe(1);
  });

  it("the calls of a process, also when the stream of another channel has ended", async () => {
    const the = stage();
    const other = listenerOf(settingsOf(the.runtime, [the.endpoint]), waiter, ["d"]);
    void pauseOf(the.runtime, other);
    await open(the);
    expect(count(the)).toBe(2);
    other.close();
    await the.runtime.advance(1);
    await open(the);
    expect(count(the)).toBe(2);
  });

  it("the calls of one request, where no request may use what another has opened", async () => {
    const asRequest = stubRequests();
    const the = stage();
    for (const [request, streams] of [
      [1, 1],
      [2, 2],
      [1, 2],
      [2, 2],
      [3, 3],
    ] as const) {
      await asRequest(request, () => open(the));
      expect(count(the)).toBe(streams);
    }
  });

  it("of three channels at most, on Workers: the others poll", async () => {
    const asRequest = stubRequests();
    vi.stubGlobal("navigator", { userAgent: "Cloudflare-Workers" });
    const the = stage();
    const settings = settingsOf(the.runtime, [the.endpoint]);
    const listeners = ["c", "d", "e", "f"].map((channel) => listenerOf(settings, waiter, [channel]));
    const pausesOf = (some: readonly ChannelListener[]) =>
      asRequest(1, async () => {
        const all = some.map((listener) => pauseOf(the.runtime, listener, { poll: 500, longest: 600 }));
        await the.runtime.advance(600);
        return Promise.all(all);
      });
    expect(await pausesOf(listeners)).toEqual([600, 600, 600, 500]);
    for (const listener of listeners) listener.close();
    expect(await pausesOf(listeners.slice(3))).toEqual([600]);
  });

  it("those that come after one has ended, also while the old one is still read", async () => {
    const the = stage();
    const first = await open(the);
    await stand(the);
    first.close();
    await open(the);
    expect(count(the)).toBe(2);
    // Only now the first stream is seen to end.
    the.endpoint.subscriptions[0]!.end();
    await the.runtime.advance(1);
    await open(the);
    expect(count(the)).toBe(2);
  });

  it("calls a waiter that joins an open stream by its own turn, or not at all", async () => {
    const the = stage();
    await open(the);
    await stand(the);
    const own = pauseOf(the.runtime, the.open({ kind: "lock", firstTurn: () => 2 }));
    const none = pauseOf(the.runtime, the.open({ kind: "lock" }));
    await the.runtime.advance(5_000);
    expect(await own).toBe(2 * 150);
    expect(await none).toBe(2_500);
    expect(count(the)).toBe(1);
  });
});

describe("a stream that ends", () => {
  it("is followed by another only after 30 s, if it never stood", async () => {
    const the = stage();
    const first = pauseOf(the.runtime, the.listener, { longest: 1_100 });
    await the.runtime.advance(1_100);
    await first;
    for (const [ms, count] of [
      [29_800, 1],
      [200, 2],
    ] as const) {
      await the.runtime.advance(ms);
      void pauseOf(the.runtime, the.listener, { longest: 10 });
      await the.runtime.advance(10);
      expect(the.endpoint.subscriptions).toHaveLength(count);
    }
  });
});

describe("a stream's body", () => {
  it("is given up when nobody waits any more, although the endpoint ignores the signal", async () => {
    const the = stage();
    void pauseOf(the.runtime, the.listener);
    await stand(the);
    const [subscription] = the.endpoint.subscriptions;
    the.listener.close();
    expect(subscription!.signal.aborted).toBe(true);
    subscription!.send("data: message,c,1");
    await the.runtime.advance(1);
    expect(subscription!.isCancelled).toBe(true);
  });
});
