import { Redis } from "@upstash/redis";
import { describe, expect, test } from "vitest";
import { redisServer } from "../../../test/support/redis-servers.ts";
import { oneEndpoint } from "./one-endpoint.ts";

const quoted = 'it\'s "quoted"\\ a/b?c=d&e#f%20+';
const oddStrings = [
  "",
  "OK",
  "null",
  quoted,
  "line\r\nbreak\u0000nul",
  "ünïcödé 你好 🔒",
  "x".repeat(100_000),
];

describe.skipIf(!redisServer)("@upstash/redis", () => {
  const one = oneEndpoint({ engine: "redis" });

  describe.each([["base64"], [false]] as const)("with responseEncoding %s", (responseEncoding) => {
    const client = () => {
      const { url, token } = one.endpoint;
      const options = { automaticDeserialization: false, retry: false, enableTelemetry: false } as const;
      return new Redis({ url, token, responseEncoding, ...options });
    };

    test("returns every string as it was stored, also as a key", async () => {
      const strings = client();
      for (const value of oddStrings) {
        expect(await strings.set(value, value)).toBe("OK");
        expect(await strings.get(value)).toBe(value);
        expect(await one.endpoint.execute(["GET", value])).toBe(value);
      }
    });

    test("returns nested arrays", async () => {
      const script = "return {1, 'two', {'three', {'OK', false, 'ö'}}, redis.call('SET', KEYS[1], 'x')}";
      const expected = [1, "two", ["three", ["OK", null, "ö"]], "OK"];
      expect(await client().eval(script, ["key"], [])).toEqual(expected);
    });

    test("evaluates scripts by SHA-1, answers pipelines in order, and reports errors with Redis's message", async () => {
      const redis = client();
      const script = redis.createScript<string>("return 'made of ' .. ARGV[1]");
      expect(await script.exec([], ["glass"])).toBe("made of glass");
      expect(await script.exec([], ["steel"])).toBe("made of steel");
      const names = one.endpoint.log.entries.map(({ command }) => command[0]?.toUpperCase());
      expect(names).toEqual(["EVALSHA", "EVAL", "EVALSHA"]);
      one.endpoint.log.reset();
      const results = await redis.pipeline().set("a", 1).incr("a").get("a").get("missing").exec();
      expect(results).toEqual(["OK", 2, "2", null]);
      expect(one.endpoint.log.requests).toBe(1);
      expect(await redis.multi().set("a", "x").get("a").del("a").exec()).toEqual(["OK", "x", 1]);
      await redis.lpush("list", "item");
      await expect(redis.get("list")).rejects.toThrow(/WRONGTYPE Operation against a key/);
    });
  });
});
