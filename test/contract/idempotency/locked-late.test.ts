import { expect, test } from "vitest";
import { keyOf } from "../../../src/redis/keys.ts";
import { gate } from "../../support/link.ts";
import { delays, virtualWorld, watch } from "../../support/virtual-client.ts";
import { records, runner } from "../../support/virtual-runs.ts";

// Runs with locks whose begin is executed late at one endpoint, in virtual time. The timeout of a request is 100 ms.

const done = 'C1 "done"';

/** A run whose begin is executed at the third endpoint after `ms`; `lost`: the request of its end that is lost there. */
async function lateBegin(ms: number, lost = 3, options: { readonly lock?: string } = { lock: "a" }) {
  const world = virtualWorld();
  const client = runner(world, { waitUntil: () => undefined });
  const [, , third] = client.links;
  let requests = 0;
  third!.fate = () => {
    requests += 1;
    if (requests === 1) return delays(world.runtime).late(ms);
    // The end finds nothing; then the result is lost on its way.
    return requests === lost ? "lost" : "delivered";
  };
  const end = gate<string>();
  const call = watch(client.idempotency.run("key", options, () => end.passed));
  await client.started();
  end.open("done");
  await world.runtime.advance(0);
  expect(call.value).toEqual({ status: "executed", value: "done" });
  return { ...world, world, third: third! };
}

test("locks that a begin takes after the end of its run are freed when it is answered", async () => {
  const { world, runtime, third } = await lateBegin(50);
  expect(world.values("a")).toEqual([null, null, null]);
  await runtime.advance(49);
  expect(third.sent).toHaveLength(3);
  await runtime.advance(1);
  expect(third.sent).toHaveLength(4);
  expect([records(world), world.values("a")]).toEqual([
    [done, done, null],
    [null, null, null],
  ]);
  await runtime.advance(60_000);
  expect(third.sent).toHaveLength(4);
  expect(runtime.pending).toBe(0);
});

test("once, at its timeout, where it is not answered", async () => {
  const { world, runtime, third } = await lateBegin(60_000);
  await runtime.advance(99);
  expect(third.sent).toHaveLength(3);
  await runtime.advance(1_000);
  expect(third.sent).toHaveLength(4);
  expect(third.sent[3]).toContain(keyOf("redlock", "lock", "a"));
  expect(world.values("a")).toEqual([null, null, null]);
});

test("also where the end is not answered", async () => {
  const { world, runtime, third } = await lateBegin(50, 2);
  expect(third.sent).toHaveLength(2);
  await runtime.advance(150);
  expect(world.values("a")).toEqual([null, null, null]);
});

test("a late begin without locks is left alone", async () => {
  const { runtime, third } = await lateBegin(50, 3, {});
  await runtime.advance(1_000);
  expect(third.sent).toHaveLength(3);
});

test("nothing more is sent where an endpoint has answered the begin, whatever the end finds there", async () => {
  const world = virtualWorld();
  const client = runner(world, { waitUntil: () => undefined });
  const [first, , third] = client.links;
  third!.fate = () => delays(world.runtime).slow(20);
  const call = watch(
    client.idempotency.run("key", { lock: "a" }, () => {
      const { engine } = world.endpoints[0]!;
      engine.execute(["DEL", ...(engine.execute(["KEYS", "redlock:idem:*"]) as string[])]);
      return "done";
    }),
  );
  await client.started();
  expect(call.value).toEqual({ status: "executed", value: "done" });
  await world.runtime.advance(1_000);
  // The begin, the end, and the result in a record of its own.
  expect(first!.sent).toHaveLength(3);
});

test("nothing more is sent where the end finds the end finds what a slow begin has left", async () => {
  const world = virtualWorld();
  const client = runner(world, { waitUntil: () => undefined });
  const [, , third] = client.links;
  third!.fate = () => delays(world.runtime).slow(20);
  const call = watch(client.idempotency.run("key", { lock: "a" }, () => "done"));
  await client.started();
  expect(call.value).toEqual({ status: "executed", value: "done" });
  await world.runtime.advance(1_000);
  expect(third!.sent).toHaveLength(2);
  expect([records(world), world.values("a")]).toEqual([
    [done, done, done],
    [null, null, null],
  ]);
});

test("the platform keeps alive no more than without locks where every endpoint has answered the begin", async () => {
  const kept = async (options: { readonly lock?: string }) => {
    let count = 0;
    const waitUntil = () => {
      count += 1;
    };
    const client = runner(virtualWorld({ count: 1 }), { waitUntil });
    await client.idempotency.run("key", options, () => 1);
    return count;
  };
  expect(await kept({ lock: "a" })).toBe(await kept({}));
});
