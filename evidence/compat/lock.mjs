import { Lock } from "@upstash/lock";
import { assert, fresh, until } from "./program.mjs";

const once = { attempts: 1, delay: 1 };

export const cases = {
  async "acquire, getStatus and release"({ redis }) {
    const lock = new Lock({ id: fresh(), redis });
    assert.equal(await lock.getStatus(), "FREE");
    assert.equal(await lock.acquire(), true);
    assert.equal(await lock.getStatus(), "ACQUIRED");
    assert.equal(await lock.release(), true);
    assert.equal(await lock.getStatus(), "FREE");
    assert.equal(await lock.release(), false);
  },

  async "one holder at a time"({ redis }) {
    const id = fresh();
    const locks = Array.from({ length: 10 }, () => new Lock({ id, redis, retry: once }));
    const acquired = await Promise.all(locks.map((lock) => lock.acquire()));
    assert.equal(acquired.filter(Boolean).length, 1);
    const holder = locks[acquired.indexOf(true)];
    const other = locks[acquired.indexOf(false)];
    assert.equal(await other.release(), false);
    assert.equal(await holder.getStatus(), "ACQUIRED");
  },

  async "a lease ends by itself, and others wait for it by retries"({ redis }) {
    const id = fresh();
    const first = new Lock({ id, redis, lease: 300 });
    assert.equal(await first.acquire(), true);
    const second = new Lock({ id, redis, retry: { attempts: 100, delay: 20 } });
    assert.equal(await second.acquire(), true);
    assert.equal(await first.getStatus(), "FREE");
    assert.equal(await first.release(), false);
  },

  async "extend adds to the lease of the holder alone"({ redis }) {
    const id = fresh();
    const lock = new Lock({ id, redis, lease: 5_000 });
    await lock.acquire();
    assert.equal(await lock.extend(20_000), true);
    const ttl = await redis.pttl(id);
    assert.ok(ttl > 20_000 && ttl <= 25_000, `expires in ${ttl} ms`);
    const other = new Lock({ id, redis, retry: once });
    assert.equal(await other.acquire({ uuid: "other" }), false);
    assert.equal(await other.extend(1_000), false);
  },

  async "ten contenders are served one after the other"({ redis }) {
    const id = fresh();
    const counter = fresh();
    let inside = 0;
    await Promise.all(
      Array.from({ length: 10 }, async () => {
        const lock = new Lock({ id, redis, retry: { attempts: 500, delay: 5 } });
        await until(() => lock.acquire(), "the lock");
        assert.equal(++inside, 1);
        // Not atomic, so that it loses counts if two are inside.
        await redis.set(counter, Number((await redis.get(counter)) ?? 0) + 1);
        inside--;
        assert.equal(await lock.release(), true);
      }),
    );
    assert.equal(Number(await redis.get(counter)), 10);
  },
};
