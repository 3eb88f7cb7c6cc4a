import { describe, expect, test } from "vitest";
import {
  type Command,
  type Endpoint,
  EndpointError,
  LockHeldError,
  QuorumError,
  Redlock,
} from "../../../src/index.ts";
import type { Link } from "../../support/link.ts";
import { rejection } from "../../support/outcomes.ts";
import {
  oneClient,
  reached,
  takes,
  type VirtualWorld,
  virtualWorld,
  watch,
} from "../../support/virtual-client.ts";

// How long the rounds of an acquire last, by when their requests are sent, in virtual time.

// The pause before the next round is 10 ms.
test.each([
  ["for at least 50 ms more", 10, 60],
  ["as long again as the others took", 200, 400],
  ["no longer than the timeout", 900, 1_000],
])("a round that is split waits for the last endpoint %s", async (_what, ms, end) => {
  const { runtime, put, slow, redlock, links } = oneClient({ timeout: 1_000, wait: 60_000 });
  put("r", [1]);
  for (const each of links.slice(0, 2)) each.fate = () => slow(ms);
  links[2]!.fate = () => "lost";
  watch(redlock.acquire("r"));
  await runtime.advance(end + 9);
  expect(links[1]!.sent).toHaveLength(1);
  await runtime.advance(2);
  expect(links[1]!.sent).toHaveLength(2);
});

describe("the timeout of a request", () => {
  // What undoes a claim is answered at once.
  const silent: Link["fate"] = (_, operation) => (operation() === "claim" ? "lost" : "delivered");

  test.each([
    ["a second", 60_000, 1_000],
    ["a third of a short ttl", 900, 300],
    ["a third of the shortest", 10, 4],
  ])("is %s, unless told otherwise", async (_what, ttl, ms) => {
    const { redlock, links, runtime } = oneClient({ timeout: undefined, wait: 0, ttl });
    for (const each of links) each.fate = silent;
    const call = watch(redlock.acquire("r"));
    await takes(runtime, call, ms);
    expect(call.error).toBeInstanceOf(QuorumError);
  });
});

describe("an endpoint of one's own", () => {
  type Send = Endpoint["send"];
  const clientOf = (world: VirtualWorld, send: Send) => {
    const endpoints = reached(world, () => ({ send }));
    return new Redlock({ endpoints, runtime: world.runtime, wait: 0, timeout: 100 });
  };

  test.each([
    ["that a command was never sent has nothing to undo", true, ["SET"]],
    ["only that it has no answer is asked to undo it", false, ["SET", "EVAL"]],
  ])("that says %s", async (_what, unsent, expected) => {
    const world = virtualWorld({ count: 1 });
    const sent: Command[0][] = [];
    const redlock = clientOf(world, ([name]) => {
      sent.push(name!);
      return Promise.reject(new EndpointError("e1", "timeout", "no answer", { unsent }));
    });
    const call = watch(redlock.acquire("r"));
    await world.runtime.advance(1_000);
    expect(call.error).toBeInstanceOf(QuorumError);
    expect(sent).toEqual(expected);
  });

  test("that can never send a release is asked again after each timeout", async () => {
    const world = virtualWorld({ count: 1 });
    let releases = 0;
    const redlock = clientOf(world, (command, signal) => {
      if (command[0] === "SET") return world.endpoints[0]!.send(command, signal);
      releases += 1;
      // Time would stand still in an endless loop.
      if (releases > 20) return new Promise(() => undefined);
      return Promise.reject(new EndpointError("e1", "timeout", "its queue is full", { unsent: true }));
    });
    const lock = await redlock.acquire("r");
    void lock.release();
    await world.runtime.advance(1_000);
    // The first one is repeated at once.
    expect(releases).toBe(12);
  });
});

test.each([
  ["of two", [0], [1], LockHeldError],
  ["of three", [0], [1, 2], LockHeldError],
  ["of three, where one is down", [0, 1], [2], QuorumError],
  ["of four, where half are down", [0, 1], [2, 3], LockHeldError],
  ["of five, where two are down", [0, 1], [2, 3, 4], LockHeldError],
  ["of five, where three are down", [0, 1, 2], [3, 4], QuorumError],
])("%s, %j fail and %j are held: the error says which of both it was", async (_what, down, held, type) => {
  const { redlock, links, put } = oneClient({ wait: 0 }, { count: down.length + held.length });
  put("r", held);
  for (const index of down) links[index]!.fate = () => "refused";
  expect(await rejection(redlock.acquire("r"))).toBeInstanceOf(type);
});
