import { check, same } from "../../evidence/runtimes/check.ts";
import { Idempotency } from "../../src/idempotency/index.ts";
import { Redlock } from "../../src/index.ts";
import { Mailbox } from "../../src/sync/index.ts";
import { pubSub } from "../../src/wake-up/index.ts";
import { patient } from "../../test/support/beyond-tests.ts";
import { durableEndpoint, type LockServerNamespace } from "../src/index.ts";

// What runs in workerd, where lock servers are reached through their binding.

type Case = (locks: LockServerNamespace) => Promise<void>;

const fresh = () => `resource-${crypto.randomUUID()}`;
const threeOf = (locks: LockServerNamespace) =>
  ["one", "two", "three"].map((name) => durableEndpoint(locks, { name: `binding-${name}` }));

export const cases: Readonly<Record<string, Case>> = {
  async "a waiter that is woken up, and a run"(locks) {
    const endpoints = threeOf(locks);
    // Whoever is not woken up waits longer than the test.
    const backoff = { min: 3_600_000, max: 3_600_000 };
    const redlock = new Redlock({ ...patient, endpoints, wait: Infinity, backoff, wakeUp: pubSub });
    const name = fresh();
    const lock = await redlock.acquire(name, { fencing: true });
    same(await redlock.tryAcquire(name), null, "a second holder");
    const waiting = redlock.acquire(name, { fencing: true });
    await new Promise((resolve) => setTimeout(resolve, 500));
    await lock.release();
    const next = await waiting;
    check(next.fence > lock.fence, "the fence");
    await next.release();
    const idempotency = new Idempotency(redlock, { wait: Infinity });
    const { value } = await idempotency.run(fresh(), { lock: name }, () => "done");
    same(value, "done", "the run");
  },

  async "a mailbox hands out what arrives during a turn, in order"(locks) {
    const thread = new Mailbox<string>(new Redlock({ ...patient, endpoints: threeOf(locks) }), fresh());
    const handled: string[] = [];
    const never = () => check(false, "a second turn");
    const { status } = await thread.post({ id: "a", value: "a" }, async (messages) => {
      for await (const { value } of messages) {
        handled.push(value);
        if (value !== "a") continue;
        for (const id of ["b", "c"]) same((await thread.post({ id, value: id }, never)).status, "queued", id);
      }
    });
    same([status, ...handled], ["handled", "a", "b", "c"], "what was handled");
    same((await thread.post({ id: "b", value: "b" }, never)).status, "duplicate", "a repeated message");
    same(await thread.inspect(), { isHeld: false, waiting: 0 }, "what is left");
  },
};

/** Runs one case. */
export async function runCase(title: string, locks: LockServerNamespace): Promise<Response> {
  try {
    await cases[title]!(locks);
    return new Response("passed");
  } catch (error) {
    return new Response((error as Error).stack ?? String(error), { status: 500 });
  }
}
