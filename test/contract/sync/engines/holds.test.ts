import { describe, expect, test } from "vitest";
import { keyOf } from "../../../../src/redis/keys.ts";
import { ReentrantLock } from "../../../../src/sync/index.ts";
import { newResource } from "../../../support/local-endpoints.ts";
import { isSettled } from "../../../support/outcomes.ts";
import { allArrived, type Client, clientOf, onEach } from "../../../support/stores.ts";
import { until } from "../../../support/until.ts";
import { holders } from "../holders.ts";
import { onStores } from "../stand.ts";

// What can differ by engine, number of endpoints and dialect: replies, expiry and second executions.

onStores([1, 2, 3, 5], [3], (at, { count }) => {
  const all = (value: number) => new Array(count).fill(value);
  const contended = ({ events }: Client) => until(() => events.some(({ type }) => type === "contended"));

  describe.each(holders)("$title", ({ keys, acquire, another, tryAnother }) => {
    const keyFor = (name: string) => keyOf("redlock", keys.at(-1)!, name);
    const exists = (name: string) => onEach(at.store, "EXISTS", keyFor(name));
    const ttls = async (name: string) => (await onEach(at.store, "PTTL", keyFor(name))) as number[];

    test("stands on every endpoint for its ttl, and keeps another out until its release", async () => {
      const { first, second } = at;
      const name = newResource("{hold}:0");
      const hold = await acquire(first.redlock, name, { ttl: 500_000 });
      await allArrived(first.links);
      expect(await exists(name)).toEqual(all(1));
      for (const ms of await ttls(name)) {
        expect(ms).toBeGreaterThan(hold.remaining());
        expect(ms).toBeLessThanOrEqual(500_000);
      }
      expect([hold.ttl, hold.remaining() > 0, hold.remaining() < 500_000]).toEqual([500_000, true, true]);
      expect([await tryAnother(second.redlock, name), await hold.verify()]).toEqual([null, true]);
      expect(await hold.extend(900_000)).toBeGreaterThan(600_000);
      await allArrived(first.links);
      for (const ms of await ttls(name)) expect(ms).toBeGreaterThan(600_000);
      const waiting = clientOf(at.store);
      const next = another(waiting.redlock, name, { wait: Infinity });
      await contended(waiting);
      expect(await isSettled(next)).toBe(false);
      expect(await hold.release()).toBe(true);
      expect([hold.remaining(), hold.signal.aborted, await hold.release()]).toEqual([0, false, false]);
      expect(await (await next).release()).toBe(true);
      await allArrived([...first.links, ...waiting.links]);
      expect(await exists(name)).toEqual(all(0));
      expect(await (await tryAnother(second.redlock, name))!.release()).toBe(true);
    });
  });

  if (count > 1) return;
  test("any text can be the owner of a reentrant lock, which acquires it again", async () => {
    const { first, second } = at;
    for (const owner of ["1", "null", "{}", '"quoted"', "t:ü 🔒", " ", "x".repeat(255)]) {
      const name = newResource("reentrant");
      const hold = await new ReentrantLock(first.redlock, name, { owner }).acquire({ wait: 0 });
      expect(await new ReentrantLock(second.redlock, name).tryAcquire()).toBeNull();
      const again = await new ReentrantLock(second.redlock, name, { owner }).acquire({ wait: 0 });
      expect(await hold.extend()).toBeGreaterThan(0);
      expect([await again.release(), await hold.release()]).toEqual([true, true]);
    }
  });
});
