import { check, same } from "../../evidence/runtimes/check.ts";
import { Idempotency } from "../../src/idempotency/index.ts";
import { Redlock } from "../../src/index.ts";
import { channelOf } from "../../src/wake-up/channel.ts";
import { pubSub } from "../../src/wake-up/index.ts";
import { patient } from "../../test/support/beyond-tests.ts";
import { durableEndpoint, type LockServerNamespace } from "../src/index.ts";

/** Runs in workerd, where lock servers are reached through their binding: a waiter that is woken up, and a run. */
export async function throughBinding(locks: LockServerNamespace): Promise<void> {
  const endpoints = ["one", "two", "three"].map((name) => durableEndpoint(locks, { name }));
  // A client that is not woken up waits longer than the test.
  const backoff = { min: 3_600_000, max: 3_600_000 };
  const redlock = new Redlock({ ...patient, endpoints, wait: Infinity, backoff, wakeUp: pubSub });
  const lock = await redlock.acquire("a", { fencing: true });
  same(await redlock.tryAcquire("a"), null, "a second holder");
  const waiting = redlock.acquire("a", { fencing: true });
  const { signal } = new AbortController();
  const listens = async () => {
    const channel = channelOf("redlock", "lock", "a");
    const replies = await Promise.all(
      endpoints.map((endpoint) => endpoint.send(["PUBSUB", "NUMSUB", channel], signal)),
    );
    return replies.some((reply) => String(reply) !== `${channel},0`);
  };
  while (!(await listens()));
  await lock.release();
  const next = await waiting;
  check(next.fence > lock.fence, "the fence");
  await next.release();
  for (let asked = 0; await listens(); asked += 1) check(asked < 1_000, "the end of the streams");
  const { value } = await new Idempotency(redlock, { wait: Infinity }).run(
    "key",
    { lock: "a" },
    () => "done",
  );
  same(value, "done", "the run");
}
