import { afterEach, describe, expect, it, test, vi } from "vitest";
import type { Command } from "../../../src/endpoints/endpoint.ts";
import type { Waiter } from "../../../src/lock/wake-up.ts";
import { ChannelListener } from "../../../src/wake-up/listener.ts";
import { steppingRuntime } from "../../support/stepping-runtime.ts";
import { pauseOf, refusedBy, settingsOf, streamingEndpoint } from "./streaming-endpoint.ts";

// One listener, in virtual time, in which every random number is 0.5. Crowds and real streams: test/contract.

const opened: ChannelListener[] = [];

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  // Streams that are shared outlive a test.
  for (const listener of opened.splice(0)) listener.close();
});

function stage(endpoint = streamingEndpoint()) {
  const runtime = steppingRuntime();
  const endpoints = [endpoint];
  const round = refusedBy(endpoints);
  const open = (waiter: Waiter = { kind: "lock" }, ...names: readonly string[]) => {
    const resources = names.length > 0 ? names : ["c"];
    const listener = new ChannelListener(settingsOf(runtime, endpoints), waiter, resources);
    opened.push(listener);
    return listener;
  };
  const pause = (listener: ChannelListener, more: Parameters<typeof pauseOf>[3] = {}) =>
    pauseOf(runtime, listener, round, more);
  const count = () => endpoint.subscriptions.length;
  return { runtime, endpoint, endpoints, round, open, pause, count };
}

type Stage = ReturnType<typeof stage>;

/** A listener whose stream stands, and that has asked since. */
async function listening(the: Stage, waiter?: Waiter): Promise<ChannelListener> {
  const listener = the.open(waiter);
  const first = the.pause(listener, { poll: 200 });
  await the.runtime.advance(10);
  the.endpoint.subscriptions[0]!.send("data: subscribe,c,1");
  await the.runtime.advance(190);
  expect(await first).toBe(200);
  return listener;
}

async function tell({ endpoint, runtime }: Stage, message: string): Promise<void> {
  endpoint.subscriptions.at(-1)!.send(`data: message,c,${message}`);
  await runtime.advance(0);
}

test.each<[when: string, waiter: Waiter, told: (string | number)[], pause: number]>([
  // Four round trips, and a tenth less.
  ["after a random delay, if others ask, too", { kind: "lock" }, ["ask:other", "free", 400], 360],
  [
    "not at all, if somebody else does first; then the silence begins anew",
    { kind: "lock" },
    ["ask:other", "free", 300, "ask:other", 1_500],
    1_800,
  ],
  [
    "although somebody else does first, if several were released",
    { kind: "semaphore" },
    ["ask:other", "free", "free", "ask:other", 400],
    360,
  ],
  [
    "at once, if it has a name that is called, whoever else asks",
    { kind: "fair", name: "t1" },
    ["free", "t2", "ask:other", 300, "t1"],
    300,
  ],
])("a waiter asks %s", async (_, waiter, told, expected) => {
  const the = stage();
  const pause = the.pause(await listening(the, waiter));
  for (const each of told) {
    if (typeof each === "number") await the.runtime.advance(each);
    else await tell(the, each);
  }
  expect(await pause).toBe(expected);
});

describe("one that asks", () => {
  it("tells others at the endpoint of its stream, unless it waits for its own name", async () => {
    const the = stage();
    const sent: Command[] = [];
    const tell = (command: Command) => Promise.resolve(sent.push(command));
    const ask = (endpoint = the.endpoint) => ({ endpoint, tell }) as never;
    const named = await listening(the, { kind: "fair", name: "t1" });
    named.asking(ask());
    named.close();
    const next = stage();
    const listener = await listening(next);
    listener.asking(ask(next.endpoint));
    listener.asking(ask(streamingEndpoint()));
    expect(sent).toEqual([["PUBLISH", "p:wake-lock:{c}", expect.stringMatching(/^ask:t[0-9a-f]{32}$/)]]);
  });

  it("is not put off by its own message", async () => {
    const the = stage();
    const listener = await listening(the);
    let own = "";
    const call = { endpoint: the.endpoint, tell: (command: Command) => (own = String(command[2])) };
    listener.asking(call as never);
    const pause = the.pause(listener);
    await tell(the, own);
    await the.runtime.advance(100);
    await tell(the, "free");
    expect(await pause).toBe(100);
  });
});

test("those that come after a stream has ended share another, even if the old one is still read", async () => {
  const the = stage();
  const open = async () => {
    const listener = the.open();
    void the.pause(listener);
    await the.runtime.advance(1);
    return listener;
  };
  const first = await open();
  first.close();
  await open();
  expect(the.count()).toBe(2);
  // Only now the first stream is seen to end.
  the.endpoint.subscriptions[0]!.end();
  await the.runtime.advance(1);
  await open();
  expect(the.count()).toBe(2);
});

test("a stream that never stood is followed by another only after 30 s", async () => {
  const the = stage();
  const listener = the.open();
  const pauseFor = async (poll: number) => {
    const pause = the.pause(listener, { poll });
    await the.runtime.advance(poll);
    await pause;
  };
  await pauseFor(1_100);
  await the.runtime.advance(29_800);
  await pauseFor(10);
  expect(the.count()).toBe(1);
  await the.runtime.advance(200);
  await pauseFor(10);
  expect(the.count()).toBe(2);
});

test("a stream's body is given up when nobody waits any more, although the endpoint ignores the signal", async () => {
  const the = stage();
  const listener = await listening(the);
  const [subscription] = the.endpoint.subscriptions;
  listener.close();
  expect(subscription!.signal.aborted).toBe(true);
  await tell(the, "free");
  expect(subscription!.isCancelled).toBe(true);
});
