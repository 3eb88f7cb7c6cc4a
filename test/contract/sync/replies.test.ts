import { describe, expect, test } from "vitest";
import { type Command, type Endpoint, QuorumError, Redlock } from "../../../src/index.ts";
import {
  CountDownLatch,
  CyclicBarrier,
  debounce,
  forceRelease,
  LimitMismatchError,
  Semaphore,
  type SynchronizerKind,
} from "../../../src/sync/index.ts";
import { outcomeOf, rejection } from "../../support/outcomes.ts";
import { steppingRuntime } from "../../support/stepping-runtime.ts";

// Endpoints that reply what their script cannot have given: an error of theirs, never a result. Those of members,
// intervals and queues are in the tests of their scripts.

/** Makes a reply from what the request would store. */
type Reply = (given: string) => unknown;

/** A client of one endpoint whose replies are made from the argument of this index. */
function replying(reply: Reply, index: number): Redlock {
  const endpoint: Endpoint = {
    name: "garbled",
    dialect: "redis",
    exactReplies: true,
    send: async (command: Command) => reply(String(command[index])),
  };
  return new Redlock({ endpoints: [endpoint], runtime: steppingRuntime(), wait: 0, timeout: 100 });
}

async function expectMalformed(call: Promise<unknown>): Promise<void> {
  const error = await rejection(call);
  expect(error).toBeInstanceOf(QuorumError);
  expect((error as QuorumError).votes[0]!.cause).toMatchObject({ kind: "malformed" });
}

const nothing: [string, Reply][] = [
  ["OK", () => "OK"],
  ["null", () => null],
  ["1", () => 1],
  ["nothing", () => []],
  ["another value", () => ["t0", 1, "ff"]],
  ["its own alone", (value) => [value]],
];

describe("a semaphore of two permits", () => {
  const semaphore = (reply: Reply) => new Semaphore(replying(reply, 6), "s", { limit: 2 });

  test.each<[string, Reply]>([
    ...nothing,
    ["a fourth item", (value) => [value, 1, "ff", 0]],
    ["no slot of its own", (value) => [value, 0, "ff"]],
    ["a slot that there is not", (value) => [value, 3, "ff"]],
    ["half a slot", (value) => [value, 0.5, "ff"]],
    ["no states", (value) => [value, 2, ""]],
    ["no states, and a slot that there is not", (value) => [value, 3, ""]],
    ["too few states", (value) => [value, 1, "f"]],
    ["too many states", (value) => [value, 1, "fff"]],
    ["another state, first", (value) => [value, 2, "xf"]],
    ["another state, last", (value) => [value, 1, "fx"]],
    ["states as a number", (value) => [value, 1, 11]],
    ["states as a list", (value) => [value, 1, ["f", "f"]]],
    ["a refusal with a slot", () => [0, 1, "tt"]],
    ["a refusal without states", () => [0, 0]],
    ["a refusal of true", () => [true, 0, "tt"]],
    ["its own limit as another one", () => [0, 2, ""]],
    ["another limit that is half", () => [0, 1.5, ""]],
  ])("%s is an error of the endpoint", (_, reply) => expectMalformed(semaphore(reply).tryAcquire()));

  test("states as a list of one are an error, too", () =>
    expectMalformed(
      new Semaphore(
        replying((value) => [value, 1, ["f"]], 5),
        "s",
        { limit: 1 },
      ).tryAcquire(),
    ));

  test("a slot, a refusal and another limit are none", async () => {
    expect(await semaphore((value) => [value, 2, "tf"]).tryAcquire()).toMatchObject({ slot: 0 });
    expect(await semaphore(() => [0, 0, "tt"]).tryAcquire()).toBe(null);
    expect(await rejection(semaphore(() => [0, 1, ""]).tryAcquire())).toBeInstanceOf(LimitMismatchError);
  });
});

describe("a latch", () => {
  const latch = (reply: Reply) => new CountDownLatch(replying(reply, 4), "l", { count: 3 });
  const nonsense: [string, Reply][] = [
    ...nothing,
    ["another nonce", () => ["t0", "g0", ["ia"]]],
    ["a fourth item", (nonce) => [nonce, "g0", ["ia"], 0]],
    ["a generation as a number", (nonce) => [nonce, 0, ["ia"]]],
    ["no ids", (nonce) => [nonce, "g0"]],
    ["ids as a text", (nonce) => [nonce, "g0", "ia"]],
    ["no generation at all", (nonce) => [nonce, "x", ["ia"]]],
    ["more than a generation", (nonce) => [nonce, "g0 ", ["ia"]]],
    ["a generation behind something", (nonce) => [nonce, " g0", ["ia"]]],
    ["a generation without a number", (nonce) => [nonce, "g", ["ia"]]],
    ["its own count as another one", (nonce) => [nonce, "n", 3]],
    ["half a count", (nonce) => [nonce, "n", 2.5]],
    ["another nonce with another count", () => ["t0", "n", 2]],
  ];

  test.each(nonsense)("%s is an error of the endpoint", (_, reply) =>
    expectMalformed(latch(reply).arrive("a")),
  );

  test.each<[string, Reply]>([
    ["no generation", (nonce) => [nonce, "", ["ia"]]],
    ["an earlier generation", (nonce) => [nonce, "g", ["ia"]]],
    ["no arrival of its own", (nonce) => [nonce, "g0", ["ib"]]],
  ])("%s after an arrival is one, too", (_, reply) => expectMalformed(latch(reply).arrive("a")));

  test("a state, none, and another count are none", async () => {
    const given = await Promise.all([
      latch((nonce) => [nonce, "g0", ["ia", "ib"]]).arrive("a"),
      latch((nonce) => [nonce, "g1", []]).arrive("a"),
      latch((nonce) => [nonce, "", []]).inspect(),
    ]);
    expect(given.map(({ open, arrived }) => [open, arrived])).toEqual([
      [false, 2],
      [true, 3],
      [false, 0],
    ]);
    expect(await rejection(latch((nonce) => [nonce, "n", 2]).inspect())).toBeInstanceOf(LimitMismatchError);
  });

  test("nonsense is no arrival at a barrier either", async () => {
    for (const [, reply] of nonsense) {
      const barrier = new CyclicBarrier(replying(reply, 4), "b", { parties: 3 });
      await expectMalformed(barrier.arriveAndWait("a"));
    }
  });
});

describe("a call of debounce", () => {
  const call = (reply: Reply) =>
    debounce(replying(reply, 4), "n", { window: 1 }, () => expect.unreachable("it must not run"));
  const later = (text: string) => `d0${"9".repeat(14)}0${text}`;

  test.each<[string, Reply]>([
    ...nothing.slice(0, -1),
    ["a refusal alone", () => [0]],
    ["a refusal for a number", () => [0, 1]],
    ["a refusal for another text", () => [0, "somebody"]],
    ["a refusal of false", () => [false, later(`t${"0".repeat(32)}`)]],
    ["a call with too short a token", () => [0, later(`t${"0".repeat(31)}`)]],
    ["a call with too long a token", () => [0, later(`t${"0".repeat(33)}`)]],
    ["a call behind something", () => [0, ` ${later(`t${"0".repeat(32)}`)}`]],
    ["a call with a token of another kind", () => [0, later(`v${"0".repeat(32)}`)]],
    ["a call with a sequence that is too large", () => [0, `d${"9".repeat(16)}t${"0".repeat(32)}`]],
  ])("%s is an error of the endpoint", (_, reply) => expectMalformed(call(reply)));
});

const kinds: readonly SynchronizerKind[] = [
  "Semaphore",
  "ReadWriteLock",
  "FairLock",
  "ReentrantLock",
  "CountDownLatch",
  "CyclicBarrier",
  "once",
  "debounce",
];

describe("forceRelease", () => {
  /** Replies made from the nonce, which follows the keys. */
  function freeing(kind: SynchronizerKind, reply: Reply) {
    const endpoint: Endpoint = {
      name: "garbled",
      dialect: "redis",
      exactReplies: true,
      send: async (command: Command) => reply(String(command[3 + Number(command[2])])),
    };
    const redlock = new Redlock({ endpoints: [endpoint], runtime: steppingRuntime(), timeout: 100 });
    return forceRelease(redlock, kind, "n");
  }

  test.each<[string, Reply]>([
    ...nothing,
    ["no", () => [0, 1]],
    ["more than one", (nonce) => [nonce, 2]],
    ["half of it", (nonce) => [nonce, 0.5]],
    ["true", (nonce) => [nonce, true]],
    ["a generation as a number", (nonce) => [nonce, 0, 5, 0]],
    ["a ttl as a text", (nonce) => [nonce, 0, "", "5"]],
    ["an endless ttl", (nonce) => [nonce, 0, "", Infinity]],
  ])("%s is an error of the endpoint, whatever is freed", async (_, reply) => {
    for (const kind of kinds) await expectMalformed(freeing(kind, reply));
  });

  test("that there was anything, or nothing, is none", async () => {
    for (const kind of ["FairLock", "once"] as const) {
      expect(await outcomeOf(freeing(kind, (nonce) => [nonce, 1]))).toEqual({ value: true });
      expect(await outcomeOf(freeing(kind, (nonce) => [nonce, 0]))).toEqual({ value: false });
    }
  });
});
