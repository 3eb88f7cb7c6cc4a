import { describe, expect, test } from "vitest";
import { LockHeldError, LockLostError, QuorumError } from "../../../src/index.ts";
import { rejection } from "../../support/outcomes.ts";
import { watch } from "../../support/virtual-client.ts";
import { newWorld } from "../../support/virtual-sync.ts";
import { holders } from "./holders.ts";

// What all synchronizers that are held have in common, in virtual time.

const nowhere = [0, 0, 0];
const ttl = 20_000;

describe.each(holders)("$title", ({ keys, acquire, another, tryAnother, tellsItsEnd }) => {
  function stage() {
    const world = newWorld();
    const holds = () => world.each("EXISTS", keys.at(-1)!, "n");
    return { ...world, holds, redlock: () => world.client().redlock };
  }

  test("is valid for its ttl without the drift, and no longer", async () => {
    const { runtime, redlock } = stage();
    const hold = await acquire(redlock(), "n", { ttl });
    const { signal } = hold;
    expect([hold.ttl, hold.remaining()]).toEqual([ttl, ttl - (200 + 2)]);
    await runtime.advance(19_797);
    expect([hold.remaining(), signal.aborted, await hold.verify()]).toEqual([1, false, true]);
    await runtime.advance(1);
    expect([hold.remaining(), signal.reason]).toEqual([0, expect.any(LockLostError)]);
  });

  test("of a dead holder is free after its ttl, for the one who waits", async () => {
    const { runtime, redlock } = stage();
    const dead = await acquire(redlock(), "n", { ttl: 405 });
    const next = watch(another(redlock(), "n"));
    // Pauses of 10 ms.
    const end = tellsItsEnd ? 405 : 410;
    await runtime.advance(end - 1);
    expect(next.settled).toBe(false);
    await runtime.advance(1);
    expect([await dead.release(), await next.value!.verify()]).toEqual([false, true]);
  });

  test("is waited for for `wait` at most", async () => {
    const { runtime, redlock } = stage();
    await acquire(redlock(), "n");
    const call = watch(another(redlock(), "n", { wait: 45 }));
    await runtime.advance(44);
    expect(call.settled).toBe(false);
    await runtime.advance(1);
    expect(call.error).toBeInstanceOf(LockHeldError);
    expect(call.error).toMatchObject({ resources: ["n"], waited: 45 });
  });

  test("limits its hold and the waiting to the deadline", async () => {
    const { runtime, redlock } = stage();
    const hold = await acquire(redlock(), "n", {}, { deadline: runtime.now() + 5_000 });
    expect(hold.remaining()).toBe(0.99 * 5_000 - 2);
    const call = watch(another(redlock(), "n", {}, { deadline: runtime.now() + 20 }));
    await runtime.advance(20);
    expect(call.error).toBeInstanceOf(LockHeldError);
  });

  test("is released at the end of `await using`, and kept until then by `autoExtend`", async () => {
    const { runtime, client, holds } = stage();
    const own = client();
    {
      await using hold = await acquire(own.redlock, "n", { ttl: 1_000, autoExtend: true });
      await runtime.advance(3_000);
      expect([hold.signal.aborted, await hold.verify()]).toEqual([false, true]);
      expect(own.events.filter(({ type }) => type === "extended")).toHaveLength(6);
    }
    expect(holds()).toEqual(nowhere);
  });

  test("has nothing in common with other names, other prefixes and plain locks", async () => {
    const { redlock } = stage();
    for (const name of ["n", "n:0", "{n}"]) await acquire(redlock(), name);
    await acquire(redlock(), "n", { prefix: "other" });
    expect(await redlock().tryAcquire("n")).not.toBe(null);
    for (const name of ["n", "n:0", "{n}"]) expect(await tryAnother(redlock(), name)).toBe(null);
  });

  test("needs a quorum: a minority may be down", async () => {
    const { redlock, client } = stage();
    const lame = client();
    lame.links[2]!.fate = () => "refused";
    const hold = await acquire(lame.redlock, "n");
    expect(await tryAnother(redlock(), "n")).toBe(null);
    expect(await hold.extend()).toBeGreaterThan(0);
    expect(await hold.release()).toBe(true);
    expect(await tryAnother(redlock(), "n")).not.toBe(null);
    lame.links[1]!.fate = () => "refused";
    expect(await rejection(acquire(lame.redlock, "m", { wait: 0 }))).toBeInstanceOf(QuorumError);
  });
});

const noted = holders.filter(({ kind }) => kind === "Semaphore" || kind === "FairLock");

test.each(noted)("$title stands with its note until its release, and no key has it", async (holder) => {
  const { runtime, client, at, each, ttls } = newWorld();
  const kind = holder.keys.at(-1)!;
  // It gets one endpoint at first, and rolls that back.
  at([0, 1], "SET", kind, "n", "other", "PX", 95);
  const options = { ttl: 20_000, wait: 60_000 };
  const holding = watch(holder.acquire(client().redlock, "n", options, { note: "shop {7} \u{1f418}" }));
  await runtime.advance(500);
  const hold = holding.value!;
  await hold.extend(30_000);
  for (const value of each("GET", kind, "n")) expect(value).toMatch(/^t[0-9a-f]{32} shop \{7\} 🐘$/u);
  expect([0, 1, 2].flatMap((index) => Object.keys(ttls(index))).join()).not.toContain("shop");
  expect([await hold.verify(), await hold.release()]).toEqual([true, true]);
  expect(each("EXISTS", kind, "n")).toEqual(nowhere);
});
