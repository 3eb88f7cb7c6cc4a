import { Redis } from "@upstash/redis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { eachEngine } from "../../../test/support/each-engine.ts";
import { type LocalEndpoint, type LocalEndpoints, start } from "../../src/index.ts";

const oddStrings = [
  "",
  " ",
  "OK",
  "null",
  "undefined",
  "plain",
  'it\'s "quoted"\\',
  "line\r\nbreak\u0000nul",
  "ünïcödé 你好 🔒",
  "a/b?c=d&e#f%20+",
  "x".repeat(100_000),
];

eachEngine(["redis"] as const)("REST protocol on %s", (engine) => {
  let local: LocalEndpoints;
  let endpoint: LocalEndpoint;

  beforeAll(async () => {
    local = await start({ count: 1, engine });
    endpoint = local.endpoints[0]!;
  });
  beforeEach(async () => {
    await endpoint.execute(["FLUSHALL"]);
    endpoint.log.reset();
  });
  afterAll(() => local.close());

  describe.each([["base64"], [false]] as const)(
    "@upstash/redis with responseEncoding %s",
    (responseEncoding) => {
      let redis: Redis;
      let strings: Redis;

      beforeAll(() => {
        const { url, token } = endpoint;
        const options = {
          url,
          token,
          responseEncoding,
          retry: { retries: 0 },
          enableTelemetry: false,
        } as const;
        redis = new Redis(options);
        strings = new Redis({ ...options, automaticDeserialization: false });
      });

      test("returns every string as it was stored", async () => {
        for (const value of oddStrings) {
          expect(await strings.set("key", value)).toBe("OK");
          expect(await strings.get("key")).toBe(value);
        }
      });

      test("accepts odd strings as keys", async () => {
        for (const key of oddStrings) {
          await strings.set(key, `value of ${key}`);
          expect(await endpoint.execute(["GET", key])).toBe(`value of ${key}`);
        }
      });

      test("returns JSON and numbers", async () => {
        const value = { list: [1, "two", null], nested: { ok: true } };
        await redis.set("json", value);
        expect(await redis.get("json")).toEqual(value);
        await redis.set("number", 12.5);
        expect(await redis.get("number")).toBe(12.5);
        expect(await redis.incr("counter")).toBe(1);
        expect(await redis.get("nothing")).toBeNull();
      });

      test("returns nested arrays", async () => {
        const script = "return {1, 'two', {'three', {'OK', false, 'ö'}}, redis.call('SET', KEYS[1], 'x')}";
        expect(await strings.eval(script, ["key"], [])).toEqual([
          1,
          "two",
          ["three", ["OK", null, "ö"]],
          "OK",
        ]);
      });

      test("runs EVAL, and EVALSHA after a NOSCRIPT", async () => {
        const script = "return ARGV[1] .. KEYS[1] -- by sha";
        await endpoint.execute(["SCRIPT", "FLUSH"]);
        await expect(redis.evalsha("0".repeat(40), ["b"], ["a"])).rejects.toThrow(/NOSCRIPT/);
        expect(await redis.eval(script, ["b"], ["a"])).toBe("ab");
        const sha = await redis.scriptLoad(script);
        expect(sha).toMatch(/^[0-9a-f]{40}$/);
        expect(await redis.evalsha(sha, ["b"], ["a"])).toBe("ab");
        expect(await redis.scriptExists(sha, "f".repeat(40))).toEqual([1, 0]);
      });

      test("createScript evaluates by SHA-1 and falls back to the text", async () => {
        const script = redis.createScript<string>("return 'made of ' .. ARGV[1]");
        await endpoint.execute(["SCRIPT", "FLUSH"]);
        endpoint.log.reset();
        expect(await script.exec([], ["glass"])).toBe("made of glass");
        expect(await script.exec([], ["steel"])).toBe("made of steel");
        expect(endpoint.log.entries.map(({ command }) => command[0]?.toUpperCase())).toEqual([
          "EVALSHA",
          "EVAL",
          "EVALSHA",
        ]);
      });

      test("answers a pipeline in order", async () => {
        const results = await redis.pipeline().set("a", 1).incr("a").get("a").get("missing").exec();
        expect(results).toEqual(["OK", 2, 2, null]);
        expect(endpoint.log.requests).toBe(1);
      });

      test("answers a transaction in order", async () => {
        expect(await redis.multi().set("a", "x").get("a").del("a").exec()).toEqual(["OK", "x", 1]);
      });

      test("reports errors with Redis's message", async () => {
        await redis.lpush("list", "item");
        await expect(redis.get("list")).rejects.toThrow(/WRONGTYPE Operation against a key/);
        await expect(redis.eval("return redis.call('GET', KEYS[1])", ["list"], [])).rejects.toThrow(
          /WRONGTYPE/,
        );
      });

      test("bills each command and each call of a script", async () => {
        await redis.set("key", "token");
        const release =
          "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
        expect(await redis.eval(release, ["key"], ["token"])).toBe(1);
        expect(endpoint.log.entries.map(({ billed }) => billed)).toEqual([1, 3]);
        expect(endpoint.log.billed).toBe(4);
      });
    },
  );
});
