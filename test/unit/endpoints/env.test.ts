import { expect, test } from "vitest";
import { endpointsFromEnv } from "../../../src/endpoints/env.ts";

const one = (name: string, suffix = "") => ({
  [`UPSTASH_REDIS_REST_URL${suffix}`]: `https://${name}.upstash.io`,
  [`UPSTASH_REDIS_REST_TOKEN${suffix}`]: `token-${name}`,
});
const vercel = { KV_REST_API_URL: "https://kv.upstash.io", KV_REST_API_TOKEN: "token-kv" };

const environments: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "a single one": one("a"),
  "Vercel's": vercel,
  "the single one before Vercel's": { ...vercel, ...one("a") },
  "Vercel's where the other is empty": { ...vercel, UPSTASH_REDIS_REST_URL: "" },
  "numbered ones before Vercel's": { ...vercel, ...one("b", "_1") },
  // As `start` sets them for a single endpoint.
  "a database once that has both names": { ...one("a"), ...one("a", "_1") },
  "numbered ones from _0": { ...one("a", "_0"), ...one("b", "_1") },
  "numbered ones where the single one is empty": { UPSTASH_REDIS_REST_URL: "", ...one("b", "_1") },
  "numbered ones by number, not by text": { ...one("ten", "_10"), ...one("two", "_2"), ...one("one", "_1") },
  "numbered ones with gaps": { ...one("x", "_3"), ...one("y", "_7") },
  "nothing of other names": {
    ...one("a", "_1"),
    UPSTASH_REDIS_REST_URL_EU: "https://eu.upstash.io",
    OLD_UPSTASH_REDIS_REST_URL_2: "https://b.example",
    UPSTASH_REDIS_REST_URL_3_OLD: "https://c.example",
  },
  nothing: {},
  "no token": { UPSTASH_REDIS_REST_URL: "https://a.upstash.io" },
  "an empty token": { ...one("a"), UPSTASH_REDIS_REST_TOKEN: "" },
  "no Vercel token": { KV_REST_API_URL: "https://kv.upstash.io" },
  "no token for a number": { ...one("a", "_1"), UPSTASH_REDIS_REST_URL_2: "https://b.upstash.io" },
  // With one endpoint fewer than its neighbours, a process would find quorums that theirs do not meet.
  "no url for a number": { ...one("a", "_1"), UPSTASH_REDIS_REST_TOKEN_2: "token-b" },
  "an empty url for a number": { ...one("a", "_1"), UPSTASH_REDIS_REST_URL_1: "" },
  "a url that is not a text": { ...one("a"), UPSTASH_REDIS_REST_URL: 5 },
  // It is not clear whether it is one of the quorum.
  "one without a number beside _2": { ...one("a"), ...one("b", "_2") },
  "one without a number beside _1 and _2": { ...one("a"), ...one("b", "_1"), ...one("c", "_2") },
};

test("variables are endpoints, or a TypeError without their values, as in env.txt", async () => {
  const lines = Object.entries(environments).flatMap(([what, env]) => {
    try {
      return [what, ...endpointsFromEnv(env).map((endpoint) => `    ${JSON.stringify(endpoint)}`)];
    } catch (error) {
      expect(error).toBeInstanceOf(TypeError);
      expect(String(error)).not.toMatch(/token-/);
      return [what, `    ${error}`];
    }
  });
  await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("env.txt");
});
