import { afterAll, beforeAll, expect, test } from "vitest";
import { textOf } from "../../../../src/redis/script.ts";
import { arrivalScript } from "../../../../src/sync/internal/arrival.lua.ts";
import { eachEngine } from "../../../support/each-engine.ts";
import { newResource } from "../../../support/local-endpoints.ts";
import { type OpenStore, storesOf } from "../../../support/stores.ts";

eachEngine(storesOf([1]))("arrivalScript on $title", ({ open, dialect }) => {
  let store: OpenStore;
  beforeAll(async () => {
    store = await open();
  });
  afterAll(() => store.close());

  function run(key: string, to: string, id: string, { count = 3, ttl = 60_000 } = {}): Promise<unknown> {
    const text = textOf(arrivalScript.source, dialect);
    return store.execute(0, ["EVAL", text, 1, key, "t0", to, count, ttl, id]);
  }
  const ttlOf = (key: string) => store.execute(0, ["PTTL", key]) as Promise<number>;

  test("adds each arrival once", async () => {
    const key = newResource();
    expect(await run(key, "g1", "ia")).toEqual(["t0", "g1", ["ia"]]);
    expect(await run(key, "g1", "ia")).toEqual(["t0", "g1", ["ia"]]);
    const [nonce, at, ids] = (await run(key, "g1", "ig")) as [string, string, string[]];
    expect([nonce, at, ids.sort()]).toEqual(["t0", "g1", ["ia", "ig"]]);
  });

  test("only looks without a generation, and changes nothing", async () => {
    const key = newResource();
    expect(await run(key, "", "")).toEqual(["t0", "", []]);
    expect(await store.execute(0, ["EXISTS", key])).toBe(0);
    await run(key, "g1", "ia");
    expect(await run(key, "", "")).toEqual(["t0", "g1", ["ia"]]);
  });

  test("moves to a later generation without arrivals, and never back", async () => {
    const key = newResource();
    await run(key, "g1", "ia");
    expect(await run(key, "g2", "")).toEqual(["t0", "g2", []]);
    expect(await run(key, "g1", "ib")).toEqual(["t0", "g2", []]);
    expect(await run(key, "g2", "ib")).toEqual(["t0", "g2", ["ib"]]);
    expect(await run(key, "g4", "ic")).toEqual(["t0", "g4", ["ic"]]);
  });

  test("refuses another number, and returns the one in use", async () => {
    const key = newResource();
    await run(key, "g1", "ia");
    for (const to of ["", "g1", "g2"]) expect(await run(key, to, "ib", { count: 4 })).toEqual(["t0", "n", 3]);
    expect(await run(key, "", "")).toEqual(["t0", "g1", ["ia"]]);
  });

  test("never shortens the ttl; a new arrival renews it, a repeated one only in the second half", async () => {
    const key = newResource();
    await run(key, "g1", "ia");
    expect(await ttlOf(key)).toBeGreaterThan(50_000);
    await run(key, "g1", "ib", { ttl: 100 });
    await run(key, "g2", "ib", { ttl: 100 });
    expect(await ttlOf(key)).toBeGreaterThan(50_000);
    await store.execute(0, ["PEXPIRE", key, 40_000]);
    await run(key, "g2", "ib");
    expect(await ttlOf(key)).toBeLessThanOrEqual(40_000);
    await run(key, "g2", "ia");
    expect(await ttlOf(key)).toBeGreaterThan(50_000);
    await store.execute(0, ["PEXPIRE", key, 20_000]);
    await run(key, "", "");
    expect(await ttlOf(key)).toBeLessThanOrEqual(20_000);
    await run(key, "g2", "ib");
    expect(await ttlOf(key)).toBeGreaterThan(50_000);
  });
});
