import { MultiRegionRatelimit, Ratelimit } from "@upstash/ratelimit";
import { assert, fresh, sleep } from "./program.mjs";

/** A window that does not end while a case runs. */
const day = "1 d";

/** Asks `times` times in one request, and returns how many were allowed. */
async function ask(ratelimit, identifier, times) {
  const answers = await Promise.all(Array.from({ length: times }, () => ratelimit.limit(identifier)));
  return answers.filter(({ success }) => success).length;
}

/**
 * Asks at the beginning of a window of `ms`, and returns what `run` returned for a name of its own. Repeats that if the
 * machine was so busy that the window was over before all was answered.
 */
async function inOneWindow(ms, run) {
  for (let tries = 0; tries < 4; tries++) {
    const identifier = fresh();
    // A timer may fire a little early.
    await sleep(ms - (Date.now() % ms) + 20);
    const start = Date.now();
    const answers = await run(identifier);
    if (Date.now() - start < ms - 100) return { identifier, ...answers };
  }
  throw new Error(`the machine was never fast enough for a window of ${ms} ms`);
}

const options = (redis, limiter) => ({ redis, limiter, prefix: fresh(), ephemeralCache: false });

export const cases = {
  async "fixedWindow allows its tokens, then refuses until the window ends"({ redis }) {
    const ratelimit = new Ratelimit(options(redis, Ratelimit.fixedWindow(3, "2 s")));
    const { identifier, allowed, answer } = await inOneWindow(2_000, async (name) => ({
      allowed: await ask(ratelimit, name, 5),
      answer: await ratelimit.limit(name),
    }));
    assert.equal(allowed, 3);
    assert.deepEqual([answer.success, answer.remaining, answer.limit], [false, 0, 3]);
    assert.ok(answer.reset % 2_000 === 0 && answer.reset > Date.now() - 2_000);
    await sleep(answer.reset - Date.now() + 20);
    assert.equal(await ask(ratelimit, identifier, 1), 1);
  },

  async "slidingWindow counts part of the window before"({ redis }) {
    const ratelimit = new Ratelimit(options(redis, Ratelimit.slidingWindow(10, "2 s")));
    const { before, after } = await inOneWindow(4_000, async (name) => {
      const allowed = await ask(ratelimit, name, 12);
      const { reset } = await ratelimit.limit(name);
      // Early in the next window, the ten of this one still count nearly in full.
      await sleep(reset - Date.now() + 20);
      return { before: allowed, after: await ask(ratelimit, name, 10) };
    });
    assert.equal(before, 10);
    assert.ok(after < 10, `all ${after} were allowed`);
  },

  async "tokenBucket has its tokens at first, and then those that it was refilled with"({ redis }) {
    const ratelimit = new Ratelimit(options(redis, Ratelimit.tokenBucket(2, "2 s", 5)));
    const { first, later } = await inOneWindow(4_000, async (name) => {
      const allowed = await ask(ratelimit, name, 6);
      const { reset } = await ratelimit.limit(name);
      await sleep(reset - Date.now() + 20);
      return { first: allowed, later: await ask(ratelimit, name, 6) };
    });
    assert.equal(first, 5);
    assert.equal(later, 2);
  },

  async "cachedFixedWindow answers from its cache, and counts in Redis"({ redis }) {
    const prefix = fresh();
    const limiter = Ratelimit.cachedFixedWindow(3, day);
    const ratelimit = new Ratelimit({ redis, limiter, prefix, ephemeralCache: new Map() });
    const answers = [];
    for (let asked = 0; asked < 4; asked++) answers.push(await ratelimit.limit("ann"));
    assert.deepEqual(
      answers.map(({ success }) => success),
      [true, true, true, false],
    );
    await Promise.all(answers.map(({ pending }) => pending));
    const [key] = await redis.keys(`${prefix}:ann:*`);
    assert.equal(await redis.get(key), 3);
  },

  async "many at the same time are allowed no more than the tokens"({ redis }) {
    const ratelimit = new Ratelimit(options(redis, Ratelimit.fixedWindow(7, day)));
    assert.equal(await ask(ratelimit, "ann", 30), 7);
  },

  async "the cache refuses without a request whom Redis has refused"({ redis }) {
    const limiter = Ratelimit.fixedWindow(1, day);
    const ratelimit = new Ratelimit({ redis, limiter, prefix: fresh(), ephemeralCache: new Map() });
    assert.equal(await ask(ratelimit, "ann", 2), 1);
    assert.equal((await ratelimit.limit("ann")).reason, "cacheBlock");
  },

  async "blockUntilReady waits for the next window"({ redis }) {
    const ratelimit = new Ratelimit(options(redis, Ratelimit.fixedWindow(1, "1 s")));
    const { reset } = await ratelimit.limit("ann");
    assert.equal((await ratelimit.blockUntilReady("ann", 5_000)).success, true);
    assert.ok(Date.now() >= reset);
    const daily = new Ratelimit(options(redis, Ratelimit.fixedWindow(1, day)));
    await daily.limit("ann");
    assert.equal((await daily.blockUntilReady("ann", 100)).success, false);
  },

  async "getRemaining and resetUsedTokens, of each algorithm"({ redis }) {
    const { fixedWindow, slidingWindow, tokenBucket } = Ratelimit;
    for (const limiter of [fixedWindow(5, day), slidingWindow(5, day), tokenBucket(5, day, 5)]) {
      const ratelimit = new Ratelimit(options(redis, limiter));
      await ask(ratelimit, "ann", 2);
      assert.equal((await ratelimit.getRemaining("ann")).remaining, 3);
      await ratelimit.resetUsedTokens("ann");
      assert.equal((await ratelimit.getRemaining("ann")).remaining, 5);
    }
  },

  async "setDynamicLimit changes the limit while it runs"({ redis }) {
    const limiter = Ratelimit.fixedWindow(1, day);
    const ratelimit = new Ratelimit({ ...options(redis, limiter), dynamicLimits: true });
    await ratelimit.setDynamicLimit({ limit: 3 });
    assert.deepEqual(await ratelimit.getDynamicLimit(), { dynamicLimit: 3 });
    assert.equal(await ask(ratelimit, "ann", 4), 3);
  },

  async "analytics count who was allowed and who was refused"({ redis }) {
    const limiter = Ratelimit.fixedWindow(2, day);
    const ratelimit = new Ratelimit({ ...options(redis, limiter), analytics: true });
    for (let asked = 0; asked < 3; asked++) await (await ratelimit.limit("ann")).pending;
    const usage = await ratelimit.analytics.getUsage(Date.now() - 2 * 60 * 60 * 1_000);
    assert.deepEqual(usage, { ann: { success: 2, blocked: 1 } });
  },

  async "the deny list refuses whose IP address is in it"({ redis }) {
    const prefix = fresh();
    const limiter = Ratelimit.fixedWindow(5, day);
    const ratelimit = new Ratelimit({
      redis,
      limiter,
      prefix,
      enableProtection: true,
      ephemeralCache: false,
    });
    await redis.sadd(`${prefix}:denyList:all`, "203.0.113.7");
    // Otherwise the package downloads a list of addresses.
    await redis.set(`${prefix}:ipDenyListStatus`, "valid", { ex: 60 });
    assert.equal((await ratelimit.limit("ann", { ip: "203.0.113.8" })).success, true);
    const refused = await ratelimit.limit("ann", { ip: "203.0.113.7" });
    assert.deepEqual([refused.success, refused.reason], [false, "denyList"]);
  },

  async "several regions count together"({ regions }) {
    const { fixedWindow, slidingWindow } = MultiRegionRatelimit;
    for (const limiter of [fixedWindow(4, day), slidingWindow(4, day)]) {
      const ratelimit = new MultiRegionRatelimit({
        redis: regions,
        limiter,
        prefix: fresh(),
        ephemeralCache: false,
      });
      const allowed = [];
      for (let asked = 0; asked < 6; asked++) {
        const { success, pending } = await ratelimit.limit("ann");
        allowed.push(success);
        // The regions are made equal in the background.
        await pending;
      }
      assert.deepEqual(allowed, [true, true, true, true, false, false]);
    }
  },
};
