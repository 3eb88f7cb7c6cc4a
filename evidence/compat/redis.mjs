import { assert, fresh, until } from "./program.mjs";

export const cases = {
  async "strings with conditions and expiry"({ redis }) {
    const key = fresh();
    assert.equal(await redis.set(key, { a: 1 }, { nx: true, ex: 60 }), "OK");
    assert.equal(await redis.set(key, "b", { nx: true }), null);
    assert.deepEqual(await redis.get(key), { a: 1 });
    assert.ok((await redis.ttl(key)) > 50);
    assert.deepEqual(await redis.getdel(key), { a: 1 });
    assert.equal(await redis.exists(key), 0);
  },

  async "hashes, lists, sets and sorted sets"({ redis }) {
    const [hash, list, set, zset] = [fresh(), fresh(), fresh(), fresh()];
    await redis.hset(hash, { a: 1, b: { c: 2 } });
    assert.deepEqual(await redis.hgetall(hash), { a: 1, b: { c: 2 } });
    await redis.rpush(list, "a", "b", "c");
    assert.deepEqual(await redis.lrange(list, 1, -1), ["b", "c"]);
    await redis.sadd(set, "x", "y", "x");
    assert.equal(await redis.scard(set), 2);
    await redis.zadd(zset, { score: 2, member: "two" }, { score: 1, member: "one" });
    assert.deepEqual(await redis.zrange(zset, 0, -1, { withScores: true }), ["one", 1, "two", 2]);
  },

  async "streams, read in order"({ redis }) {
    const key = fresh();
    const id = await redis.xadd(key, "*", { n: 1 });
    await redis.xadd(key, "*", { n: 2 });
    const entries = await redis.xrange(key, "-", "+");
    assert.deepEqual(Object.values(entries), [{ n: 1 }, { n: 2 }]);
    assert.equal(Object.keys(entries)[0], id);
  },

  async "positions and HyperLogLogs"({ redis }) {
    const [map, log] = [fresh(), fresh()];
    const palermo = { longitude: 13.361389, latitude: 38.115556, member: "Palermo" };
    const catania = { longitude: 15.087269, latitude: 37.502669, member: "Catania" };
    assert.equal(await redis.geoadd(map, palermo, catania), 2);
    assert.equal(await redis.geodist(map, "Palermo", "Catania", "KM"), 166.2742);
    const names = Array.from({ length: 1_000 }, (_, index) => `user ${index}`);
    assert.equal(await redis.pfadd(log, ...names), 1);
    const count = await redis.pfcount(log);
    assert.ok(Math.abs(count - 1_000) < 50, `${count} instead of 1000`);
  },

  async "a pipeline, a transaction, and commands that are sent together"({ redis }) {
    const key = fresh();
    assert.deepEqual(await redis.pipeline().set(key, 1).incr(key).get(key).exec(), ["OK", 2, 2]);
    assert.deepEqual(await redis.multi().incr(key).incrby(key, 5).exec(), [3, 8]);
    const all = await Promise.all([redis.incr(key), redis.incr(key), redis.echo("b"), redis.echo("c")]);
    assert.deepEqual(all, [9, 10, "b", "c"]);
  },

  async "a script, by text and by hash"({ redis }) {
    const script = redis.createScript("return redis.call('INCRBY', KEYS[1], ARGV[1])");
    const key = fresh();
    assert.equal(await script.eval([key], ["2"]), 2);
    assert.equal(await script.exec([key], ["3"]), 5);
  },

  async "a message to a subscriber"({ redis }) {
    const channel = fresh();
    const received = [];
    const subscriber = redis.subscribe(channel);
    subscriber.on("message", ({ message }) => received.push(message));
    await until(async () => (await redis.publish(channel, { hello: 1 })) === 1, "a subscriber");
    await until(() => received.length > 0, "the message");
    assert.deepEqual(received[0], { hello: 1 });
    await subscriber.unsubscribe();
  },
};
