import { expect, test } from "vitest";
import { Mailbox, type MailboxHandler, once, Semaphore } from "../../../src/sync/index.ts";
import { mailboxScript } from "../../../src/sync/internal/mailbox.lua.ts";
import { slotScript } from "../../../src/sync/internal/slot.lua.ts";
import { virtualWorld, watch } from "../../support/virtual-client.ts";
import { records, runner, running, silence } from "../../support/virtual-runs.ts";
import { syncWorld } from "../../support/virtual-sync.ts";

// What public reports tell of semaphores, schedules, conversations and runs, in virtual time: docs/incidents.md has the
// reports.

test("a permit that has expired gives back nothing: its late release frees no other permit", async () => {
  const { runtime, client, atOnce } = syncWorld([slotScript]);
  const semaphore = () => new Semaphore(client().redlock, "s", { limit: 1, ttl: 1_000 });
  const expired = await semaphore().acquire();
  await runtime.advance(1_000);
  const held = await atOnce(semaphore().acquire());
  expect(await expired.release()).toBe(false);
  expect(await atOnce(semaphore().tryAcquire())).toBe(null);
  expect(await held.verify()).toBe(true);
});

test("replicas whose timers are shifted run a short job once in each interval", async () => {
  const { runtime, client } = syncWorld([]);
  const ran: number[] = [];
  for (let replica = 0; replica < 3; replica += 1) {
    const { redlock } = client();
    const tick = (count: number) => {
      if (count === 0) return;
      void once(redlock, "report", { every: 60_000, wait: 0 }, () => ran.push(runtime.elapsed));
      runtime.timer(60_000, () => tick(count - 1));
    };
    // Each has started 17 s after the one before.
    runtime.timer(17_000 * replica, () => tick(5));
  }
  await runtime.advance(300_000);
  expect(ran).toHaveLength(5);
  for (const [index, at] of ran.slice(1).entries()) expect(at - ran[index]!).toBeGreaterThanOrEqual(60_000);
});

test("a conversation's second message waits for a handler that takes forty times the ttl", async () => {
  const { runtime, client } = syncWorld([mailboxScript]);
  let running = 0;
  const handled: string[] = [];
  const slowly: MailboxHandler<string> = async (messages) => {
    for await (const { value } of messages) {
      running += 1;
      expect(running).toBe(1);
      await new Promise<void>((resolve) => void runtime.timer(40_000, resolve));
      running -= 1;
      handled.push(value);
    }
  };
  const post = (value: string) =>
    new Mailbox<string>(client().redlock, "m", { ttl: 1_000 }).post({ id: value, value }, slowly);
  const first = watch(post("first"));
  await runtime.advance(35_000);
  const second = watch(post("second"));
  await runtime.advance(60_000);
  expect([first.value?.status, second.value?.status]).toEqual(["handled", "queued"]);
  expect(handled).toEqual(["first", "second"]);
});

test("a run whose process has died blocks its key for the lease, not for the retention", async () => {
  const world = virtualWorld();
  const crashed = runner(world, { lease: 1_000, retention: 3 * 86_400_000 });
  await running(crashed);
  silence(crashed.links);
  const retry = runner(world);
  const busy = watch(retry.idempotency.run("key", { wait: 0 }, () => "too early"));
  await retry.started();
  await world.runtime.advance(500);
  expect(busy.error).toMatchObject({ code: "IN_PROGRESS" });
  await world.runtime.advance(500);
  const again = await running(retry);
  again.end.open("done");
  await world.runtime.advance(0);
  expect(again.call.value).toEqual({ status: "executed", value: "done" });
  expect(records(world)).toEqual(new Array(3).fill('C1 "done"'));
});
