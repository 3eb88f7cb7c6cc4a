import { expect, test } from "vitest";
import { keyOf } from "../../../src/redis/keys.ts";
import { gate } from "../../support/link.ts";
import { delays, virtualWorld, watch } from "../../support/virtual-client.ts";
import { records, runner } from "../../support/virtual-runs.ts";

// Runs with locks whose begin is executed late at one endpoint, in virtual time. The timeout of a request is 100 ms.

const done = 'C1 "done"';

/** A run whose begin is executed at the third endpoint after `ms`, and whose end gets no further there than its script. */
async function lateBegin(ms: number) {
  const world = virtualWorld();
  const client = runner(world, { waitUntil: () => undefined });
  const [, , third] = client.links;
  let requests = 0;
  third!.fate = () => {
    requests += 1;
    if (requests === 1) return delays(world.runtime).late(ms);
    // The end finds nothing; then the result is lost on its way.
    return requests === 3 ? "lost" : "delivered";
  };
  const end = gate<string>();
  const call = watch(client.idempotency.run("key", { lock: "a" }, () => end.passed));
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

test("nothing more is sent where the end finds what a slow begin has left", async () => {
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
