import { describe, expect, test } from "vitest";
import { oneClient, watch } from "../../support/virtual-client.ts";

// How scripts reach a server: by their text the first time, by their hash from then on. In virtual time.

describe.each(["redis", "redis-8.4", "upstash"] as const)("a script in the %s dialect", (dialect) => {
  function newWorld() {
    const { links, endpoints, ...world } = oneClient({ fencing: true, wait: 0 }, { count: 1, dialect });
    const [link] = links;
    const forget = () => endpoints[0]!.engine.execute(["SCRIPT", "FLUSH"]);
    const names = () => link!.sent.map(([name]) => name);
    return { ...world, link: link!, forget, names };
  }

  test("is sent as text once, then by its hash, and as text again where the server has forgotten it", async () => {
    const { redlock, forget, names } = newWorld();
    const held = [await redlock.acquire("a"), await redlock.acquire("b")];
    expect(names()).toEqual(["EVAL", "EVALSHA"]);
    forget();
    held.push(await redlock.acquire("c"), await redlock.acquire("d"));
    expect(names()).toEqual(["EVAL", "EVALSHA", "EVALSHA", "EVAL", "EVALSHA"]);
    for (const lock of held) expect(await lock.release()).toBe(true);
  });

  test("of many at the same time is sent as text by one, and none waits for it", async () => {
    const { redlock, names } = newWorld();
    const locks = await Promise.all(["a", "b", "c"].map((name) => redlock.acquire(name)));
    expect(names()).toEqual(["EVAL", "EVALSHA", "EVALSHA"]);
    for (const lock of locks) expect(await lock.release()).toBe(true);
  });

  test("whose text got lost is sent as text by the next", async () => {
    const { redlock, link, names, runtime } = newWorld();
    link.fate = () => (link.sent.length === 1 ? "lost" : "delivered");
    const lost = watch(redlock.acquire("a"));
    const lock = await redlock.acquire("b");
    expect(names().slice(0, 3)).toEqual(["EVAL", "EVALSHA", "EVAL"]);
    expect(await lock.release()).toBe(true);
    await runtime.advance(1_000);
    expect(lost.error).toMatchObject({ code: "NO_QUORUM" });
  });
});
