import { describe, expect, test } from "vitest";
import { QuorumError } from "../../../../src/index.ts";
import { delays, watch } from "../../../support/virtual-client.ts";
import { lockOf, locksIn, newWorld, nowhere, queueOf, queuesIn } from "./world.ts";

// What stays of a failed round and after the release of a fair lock, in virtual time.

const acquires = (command: readonly unknown[]) => command[2] === 4;

describe("a failed round", () => {
  test("acquires nothing when it is executed after its rollback", async () => {
    const world = newWorld();
    const { late } = delays(world.runtime);
    const own = world.client();
    for (const link of own.links) {
      link.fate = (command) =>
        acquires(command) ? late(30_000) : link.sent.length > 2 ? "refused" : "delivered";
    }
    const call = watch(lockOf(own).acquire({ wait: 0 }));
    await world.runtime.advance(100);
    expect(call.error).toBeInstanceOf(QuorumError);
    await world.runtime.advance(30_000);
    expect([locksIn(world), queuesIn(world)]).toEqual([nowhere, nowhere]);
  });

  test("whose late rollback follows a later round leaves that one's lock alone", async () => {
    const world = newWorld();
    const { runtime, at, client } = world;
    const { slow } = delays(runtime);
    const held = await lockOf(client()).acquire();
    at([2], "DEL", "fair", "f");
    const own = client();
    // The first round acquires it at the third endpoint, which answers late.
    own.links[2]!.fate = () => (own.links[2]!.sent.length === 1 ? slow(60) : "delivered");
    const turn = watch(lockOf(own).acquire());
    await runtime.advance(5);
    await held.release();
    await runtime.advance(5);
    expect(await turn.value!.verify()).toBe(true);
    const values = world.each("GET", "fair", "f");
    expect([values[0] === values[1], values[1] === values[2]]).toEqual([true, false]);
    await runtime.advance(60);
    expect(world.each("GET", "fair", "f")).toEqual([values[0], values[0], null]);
    expect(await turn.value!.release()).toBe(true);
  });
});

describe("a release", () => {
  test("removes the holder's ticket where the lock was not free yet", async () => {
    const world = await queueOf(1);
    const { runtime, held, waiters } = world;
    const [{ turn, links }] = waiters as [(typeof waiters)[0]];
    world.at([0, 1], "DEL", "fair", "f");
    await runtime.advance(10);
    // The third endpoint has the old holder's lock, and the ticket of the new one.
    expect([await turn.value!.verify(), queuesIn(world)]).toEqual([true, [0, 0, 1]]);
    const before = links.map(({ sent }) => sent.length);
    expect(await turn.value!.release()).toBe(true);
    expect(links.map(({ sent }, index) => sent.length - before[index]!)).toEqual([1, 1, 1]);
    // Where the lock was granted, three words less name no ticket.
    expect(links.map(({ sent }) => sent.at(-1)![2])).toEqual([1, 1, 3]);
    expect([queuesIn(world), locksIn(world)]).toEqual([nowhere, [0, 0, 1]]);
    expect(Object.values(world.ttls(2)).at(-1)).toBe(60_000);
    expect(await held.verify()).toBe(false);
  });

  test("while an endpoint has still not answered removes the ticket there, too", async () => {
    const world = newWorld();
    const { late } = delays(world.runtime);
    const own = world.client({ timeout: 1_000, waitUntil: () => undefined });
    own.links[2]!.fate = (command) => (acquires(command) ? late(400) : "delivered");
    const hold = await lockOf(own).acquire();
    expect(await hold.release()).toBe(true);
    await world.runtime.advance(399);
    expect(Object.values(world.ttls(2))).toEqual([60_000 - 149]);
    await world.runtime.advance(600);
    expect([locksIn(world), own.events.filter(({ type }) => type === "endpointError")]).toEqual([
      nowhere,
      [],
    ]);
  });

  test("of a lock that one endpoint granted late leaves nothing there", async () => {
    const world = newWorld();
    const { late } = delays(world.runtime);
    const own = world.client({ timeout: 1_000, waitUntil: () => undefined });
    own.links[2]!.fate = (command) => (acquires(command) ? late(50) : "delivered");
    const hold = await lockOf(own).acquire();
    expect(await hold.release()).toBe(true);
    await world.runtime.advance(1_000);
    expect([locksIn(world), queuesIn(world)]).toEqual([nowhere, nowhere]);
  });
});
